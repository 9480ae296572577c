"""The mean squared error of probabilities: a loss that no single label can make large."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from lacuner.models.types import Targets, TokenScores


def squared_error(scores: TokenScores, targets: Targets) -> Tensor:
    """`sum_c (p_c - y_c)^2` of the tags of a word, one number a word, in the shape of `targets.labels`.

    What it does: the squared distance of the probabilities from the target, times the weight, where the label is known,
        0 where it is not. It is never above 2, so that a wrong label pulls only so much.
    Assumes: that wrong labels are random and right ones are not.
    Departs from the authors: a sum over the tags, not a mean.
    Reference: Ghosh et al. (2017), "Robust loss functions under label noise for deep neural networks".
    """
    at = (targets.known & scores.mask).nonzero(as_tuple=True)
    probs = functional.softmax(scores.logits[at], dim=-1)
    if targets.probs is None:
        wanted = functional.one_hot(targets.labels[at], probs.shape[-1]).to(probs.dtype)
    else:
        wanted = targets.probs[at].to(probs.dtype)
    losses = (probs - wanted).square().sum(dim=-1)
    return losses.new_zeros(targets.labels.shape).index_put(at, losses * targets.weight[at])
