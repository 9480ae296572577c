"""Tie or break: the loss of gaps between words, and of the chunks between breaks."""

import torch
from torch import Tensor
from torch.nn import functional

from lacuner.models.types import Targets, TieOrBreakScores


def tie_or_break_loss(scores: TieOrBreakScores, targets: Targets) -> Tensor:
    """Binary cross-entropy of gaps and cross-entropy of chunks, `[batch, words, 2]`, the shape of `targets.labels`.

    What it does: `labels[..., 0]` is 1 if a word is tied to the word before it, `labels[..., 1]` is the class of the
        chunk that begins at a word. A chunk ends before the next word that is not tied. Unknown gaps and chunks have no
        loss.
    Assumes: known labels are right; all words of a known chunk are known.
    Departs from the authors: a chunk has one label, where they allow a set of labels. Soft labels are refused.
    Reference: Shang et al. (2018), "Learning named entity tagger using domain-specific dictionary" (AutoNER).

    >>> mask = torch.ones(1, 2, 2, dtype=torch.bool)
    >>> scores = TieOrBreakScores(torch.zeros(1, 2, 5), mask)  # two classes, all alike
    >>> labels, known = torch.tensor([[[0, 1], [1, 0]]]), torch.tensor([[[False, True], [True, False]]])
    >>> tie_or_break_loss(scores, Targets(labels, known, torch.ones(1, 2, 2)))  # one chunk of two words
    tensor([[[0.0000, 0.6931],
             [0.6931, 0.0000]]])
    """
    if targets.probs is not None:
        raise ValueError("tie_or_break_loss does not support soft labels")
    tie, first, last = scores.split()
    known = targets.known & scores.mask
    gaps = known[..., 0].nonzero(as_tuple=True)
    tied = targets.labels[..., 0]
    gap_losses = functional.binary_cross_entropy_with_logits(tie[gaps], tied[gaps].to(tie.dtype), reduction="none")
    row, start = known[..., 1].nonzero(as_tuple=True)
    end = chunk_ends((tied > 0) & scores.mask[..., 0])[row, start]
    logits = first[row, start] + last[row, end]
    chunk_losses = functional.cross_entropy(logits, targets.labels[row, start, 1], reduction="none")
    losses = gap_losses.new_zeros(targets.labels.shape)
    losses = losses.index_put((*gaps, torch.zeros_like(gaps[0])), gap_losses)
    return losses.index_put((row, start, torch.ones_like(row)), chunk_losses) * targets.weight


def chunk_ends(tied: Tensor) -> Tensor:
    """The last word of the chunk that begins at each word, `[batch, words]`, from which words are tied to their left.

    >>> chunk_ends(torch.tensor([[False, True, False, True, True]])).tolist()
    [[1, 1, 4, 4, 4]]
    """
    words = tied.shape[1]
    at = torch.arange(words, device=tied.device).expand_as(tied)
    breaks = functional.pad(at.masked_fill(tied, words)[:, 1:], (0, 1), value=words)
    return breaks.flip(1).cummin(dim=1).values.flip(1) - 1
