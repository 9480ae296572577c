"""Cross entropy, of words or of spans."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from lacuner.models.types import EntityTypeScores, SpanScores, Targets, TokenScores


def cross_entropy(scores: TokenScores | EntityTypeScores | SpanScores, targets: Targets) -> Tensor:
    """Minus the log probability of the target, one number a word or span, in the shape of `targets.labels`.

    What it does: `-log p(label)` times the weight where the label is known, 0 where it is not; with soft labels
        `-sum_c probs_c log p_c`.
    Assumes: that what is known is right.
    Departs from the authors: nothing to depart from.
    Reference: Good (1952), "Rational decisions", for the rule that it is.
    """
    # Unknown positions never enter the computation: no gradient reaches them, not even NaN times zero.
    at = (targets.known & scores.mask).nonzero(as_tuple=True)
    logs = functional.log_softmax(scores.logits[at], dim=-1)
    if targets.probs is None:
        losses = functional.nll_loss(logs, targets.labels[at], reduction="none")
    else:
        losses = -(targets.probs[at] * logs).sum(dim=-1)
    empty = losses.new_zeros(targets.labels.shape)
    return empty.index_put(at, losses * targets.weight[at])
