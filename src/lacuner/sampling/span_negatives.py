"""Which unlabelled spans are taken for negatives: samplers for a whole batch at once.

What it does: each candidate gets a random key, the log of its weight plus Gumbel noise; the highest `count` of a
    sentence are drawn. That is drawing one after another without replacement, each time in proportion to the weights.
    `uniform` gives all the same weight; `weighted` prefers spans of which the model is unsure and that do not look
    like entities: `u (1 + v)^mu`, with the entropy `u` and the lead `v` of O over the best class.
Assumes: few of the spans that nobody labelled are entities, so that a few random ones rarely are.
Departs from the authors: they draw span by span in Python; the distribution is the same. Whether O itself belongs to
    the classes over which `v` is taken cannot be told from the paper: `margin` has both readings.
Reference: Li, Liu and Shi (2021), "Empirical analysis of unlabeled entity problem in named entity recognition"; Li, Liu
    and Shi (2022), "Rethinking negative sampling for handling missing entity annotations".
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Margin = Literal["types", "all"]
Rank = Literal["top", "middle", "bottom"]


def negatives_per_sentence(words: Tensor, rate: float) -> Tensor:
    """`ceil(rate * n)` for sentences of `n` words; products that are whole but for rounding stay whole."""
    return torch.ceil(words.double() * rate - 1e-9).long()


def sample_negatives(candidates: Tensor, counts: Tensor, log_weights: Tensor | None = None) -> Tensor:
    """Of each sentence's candidates `[batch, ...]` so many at random, or all if there are fewer: a mask."""
    noise = torch.rand(candidates.shape, device=candidates.device)
    if log_weights is None:
        return _highest(noise, candidates, counts)
    gumbel = -torch.log(-torch.log(noise.clamp(1e-20, 1 - 1e-7)))
    return _highest(log_weights + gumbel, candidates, counts)


def sample_by_rank(candidates: Tensor, counts: Tensor, uncertainty: Tensor, rank: Rank) -> Tensor:
    """The most, least or middling uncertain candidates: an experiment of the paper. Equals are ordered at random."""
    shaken = uncertainty + 1e-6 * torch.rand(uncertainty.shape, device=uncertainty.device)
    if rank != "middle":
        return _highest(shaken if rank == "top" else -shaken, candidates, counts)
    order = shaken.masked_fill(~candidates, -torch.inf).flatten(1).argsort(dim=1, descending=True)
    place = order.argsort(dim=1)
    there = candidates.flatten(1).sum(dim=1)
    first = (there - counts).clamp(min=0) // 2
    chosen = (place >= first[:, None]) & (place < (first + counts)[:, None])
    return chosen.view_as(candidates) & candidates


def _highest(keys: Tensor, candidates: Tensor, counts: Tensor) -> Tensor:
    """Of each sentence's candidates so many with the highest keys."""
    flat = keys.masked_fill(~candidates, -torch.inf).flatten(1)
    most = min(int(counts.max()) if len(counts) else 0, flat.shape[1])
    places = flat.topk(most, dim=1).indices
    wanted = torch.arange(most, device=flat.device) < counts[:, None]
    chosen = torch.zeros_like(flat, dtype=torch.bool).scatter_(1, places, wanted)
    return chosen.view_as(candidates) & candidates


def span_entropy(logits: Tensor) -> Tensor:
    """How uncertain the model is of each span, in nats."""
    return _entropy(logits.detach().float().softmax(dim=-1))


def _entropy(probs: Tensor) -> Tensor:
    found: Tensor = torch.special.entr(probs).sum(dim=-1)
    return found


def sampling_weights(logits: Tensor, mu: float, margin: Margin) -> Tensor:
    """`u (1 + v)^mu`, to be divided by a temperature: the log weight of each span."""
    probs = logits.detach().float().softmax(dim=-1)
    best = probs.max(dim=-1).values if margin == "all" else probs[..., 1:].max(dim=-1).values
    return _entropy(probs) * (1 + probs[..., 0] - best) ** mu
