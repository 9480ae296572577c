"""Squared error of probabilities: a bounded loss."""

from torch import Tensor
from torch.nn import functional

from lacuner.models.types import SpanScores, Targets, TokenScores


def squared_error(scores: TokenScores | SpanScores, targets: Targets) -> Tensor:
    """`sum_c (p_c - y_c)^2` over the classes, one number per word or span, in the shape of `targets.labels`.

    What it does: at most 2 per known word, which limits the effect of a wrong label; 0 where the label is unknown.
    Assumes: wrong labels are random, right ones are not.
    Departs from the authors: a sum over the tags, not a mean.
    Reference: Ghosh et al. (2017), "Robust loss functions under label noise for deep neural networks".

    >>> import torch
    >>> scores = TokenScores(torch.zeros(1, 2, 2), mask=torch.ones(1, 2, dtype=torch.bool))
    >>> targets = Targets(torch.tensor([[1, 0]]), torch.tensor([[True, False]]), torch.ones(1, 2))
    >>> squared_error(scores, targets)
    tensor([[0.5000, 0.0000]])
    """
    at = (targets.known & scores.mask).nonzero(as_tuple=True)
    probs = functional.softmax(scores.logits[at], dim=-1)
    expected = functional.one_hot(targets.labels[at], probs.shape[-1]) if targets.probs is None else targets.probs[at]
    losses = (probs - expected.to(probs.dtype)).square().sum(dim=-1)
    return losses.new_zeros(targets.labels.shape).index_put(at, losses * targets.weight[at])
