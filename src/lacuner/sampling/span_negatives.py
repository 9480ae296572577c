"""Negative sampling: which unlabeled spans of a batch are used as negatives.

What it does: the candidates of a sentence with the highest random keys (log weight plus Gumbel noise) are taken, which
    is sampling without replacement in proportion to the weights. `sampling_weights` has the forms of weighted sampling,
    made of the entropy `u` of a span and the margin `v` of O over the best class.
Assumes: few unlabeled spans are entities, so that a small sample rarely contains one.
Departs from the authors: they sample span by span in Python; the distribution is the same. Their formula is
    `weighting="printed"`. The paper does not say whether O itself belongs to the classes over which `v` is taken:
    `margin` has both readings.
Reference: Li, Liu and Shi (2021), "Empirical analysis of unlabeled entity problem in named entity recognition"; Li, Liu
    and Shi (2022), "Rethinking negative sampling for handling missing entity annotations".
"""

from typing import Literal

import torch
from torch import Tensor

Margin = Literal["types", "all"]
Weighting = Literal["margin", "product", "printed"]
Rank = Literal["top", "middle", "bottom"]


def negatives_per_sentence(words: Tensor, rate: float) -> Tensor:
    """`ceil(rate * n)` for sentences of `n` words; a product that is whole up to rounding stays whole.

    >>> negatives_per_sentence(torch.tensor([3, 20]), rate=0.35)
    tensor([2, 7])
    """
    return torch.ceil(words.double() * rate - 1e-9).long()


def sample_negatives(candidates: Tensor, counts: Tensor, log_weights: Tensor | None = None) -> Tensor:
    """Sample `counts` of each sentence's candidates, or all if there are fewer.

    `candidates` is a mask `[batch, ...]`, `counts` has shape `[batch]`; returns a mask of the candidates' shape.

    >>> candidates = torch.tensor([[True, True, True, False]])
    >>> sample_negatives(candidates, torch.tensor([2])).sum().item()
    2
    """
    noise = torch.rand(candidates.shape, device=candidates.device)
    if log_weights is None:
        return _highest(noise, candidates, counts)
    gumbel = -torch.log(-torch.log(noise.clamp(1e-20, 1 - 1e-7)))
    return _highest(log_weights + gumbel, candidates, counts)


def sample_by_rank(candidates: Tensor, counts: Tensor, uncertainty: Tensor, rank: Rank) -> Tensor:
    """Sample the most (`top`), least (`bottom`) or moderately uncertain candidates: an experiment of the paper.

    Ties are broken at random. Returns a mask of the candidates' shape.

    >>> uncertainty = torch.tensor([[0.1, 0.9, 0.5]])
    >>> sample_by_rank(torch.ones(1, 3, dtype=torch.bool), torch.tensor([1]), uncertainty, "top")
    tensor([[False,  True, False]])
    """
    keys = uncertainty + 1e-6 * torch.rand(uncertainty.shape, device=uncertainty.device)
    if rank != "middle":
        return _highest(keys if rank == "top" else -keys, candidates, counts)
    order = keys.masked_fill(~candidates, -torch.inf).flatten(1).argsort(dim=1, descending=True)
    place = order.argsort(dim=1)
    first = (candidates.flatten(1).sum(dim=1) - counts).clamp(min=0) // 2
    chosen = (place >= first[:, None]) & (place < (first + counts)[:, None])
    return chosen.view_as(candidates) & candidates


def _highest(keys: Tensor, candidates: Tensor, counts: Tensor) -> Tensor:
    """Mask of the `counts` candidates with the highest keys of each sentence."""
    flat = keys.masked_fill(~candidates, -torch.inf).flatten(1)
    most = min(int(counts.max()) if len(counts) else 0, flat.shape[1])
    places = flat.topk(most, dim=1).indices
    within_count = torch.arange(most, device=flat.device) < counts[:, None]
    chosen = torch.zeros_like(flat, dtype=torch.bool).scatter_(1, places, within_count)
    return chosen.view_as(candidates) & candidates


def span_entropy(logits: Tensor) -> Tensor:
    """Entropy of each span's class probabilities, in nats: `[..., classes]` to `[...]`.

    >>> span_entropy(torch.tensor([[0.0, 0.0], [2.0, 0.0]]))
    tensor([0.6931, 0.3653])
    """
    entropy: Tensor = torch.special.entr(logits.detach().float().softmax(dim=-1)).sum(dim=-1)
    return entropy


def sampling_weights(logits: Tensor, mu: float, margin: Margin = "types", weighting: Weighting = "margin") -> Tensor:
    """Log sampling weight of each span at temperature 1, unnormalised: `[..., classes]` to `[...]`.

    With the entropy `u` of a span, and the margin `v` of O over the best type (`margin="types"`) or over the best
    class, O included (`all`), the weight is `(1 + v)^mu` (`margin`), `u (1 + v)^mu` (`product`) or
    `exp(u (1 + v)^mu)` (`printed`).

    >>> logits = torch.tensor([[0.0, 0.0], [2.0, 0.0]])  # an uncertain span, and one that is no entity
    >>> sampling_weights(logits, mu=2.0).exp(), sampling_weights(logits, 8.0, weighting="printed")
    (tensor([1.0000, 3.1032]), tensor([ 0.6931, 33.8795]))
    """
    probs = logits.detach().float().softmax(dim=-1)
    best = probs.max(dim=-1).values if margin == "all" else probs[..., 1:].max(dim=-1).values
    v = probs[..., 0] - best
    if weighting == "printed":
        return span_entropy(logits) * (1 + v) ** mu
    log_weights = mu * torch.log((1 + v).clamp(min=1e-6))
    if weighting == "product":
        log_weights = log_weights + torch.log(span_entropy(logits).clamp(min=1e-6))
    return log_weights
