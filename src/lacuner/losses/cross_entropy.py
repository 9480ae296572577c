"""Cross-entropy of words or spans."""

from torch import Tensor
from torch.nn import functional

from lacuner.models.types import EntityTypeScores, SpanScores, Targets, TokenScores


def cross_entropy(scores: TokenScores | EntityTypeScores | SpanScores, targets: Targets) -> Tensor:
    """Negative log probability of the target, one number per word or span, in the shape of `targets.labels`.

    What it does: `-log p(label)` times the weight where the label is known, 0 elsewhere; with soft labels
        `-sum_c probs_c log p_c`.
    Assumes: known labels are right.
    Departs from the authors: nothing to depart from.
    Reference: Good (1952), "Rational decisions".

    >>> import torch
    >>> scores = TokenScores(torch.zeros(1, 2, 4), mask=torch.ones(1, 2, dtype=torch.bool))  # four equal tags
    >>> targets = Targets(torch.tensor([[3, 0]]), torch.tensor([[True, False]]), torch.ones(1, 2))
    >>> cross_entropy(scores, targets)  # log 4, and 0 for the unknown word
    tensor([[1.3863, 0.0000]])
    """
    # Unknown positions never enter the computation: no gradient reaches them, not even NaN times zero.
    at = (targets.known & scores.mask).nonzero(as_tuple=True)
    logs = functional.log_softmax(scores.logits[at], dim=-1)
    if targets.probs is None:
        losses = functional.nll_loss(logs, targets.labels[at], reduction="none")
    else:
        losses = -(targets.probs[at] * logs).sum(dim=-1)
    return losses.new_zeros(targets.labels.shape).index_put(at, losses * targets.weight[at])
