"""Kullback-Leibler divergence of words or spans."""

import torch
from torch import Tensor

from lacuner.models.types import SpanScores, Targets, TokenScores


def kl_divergence(scores: TokenScores | SpanScores, targets: Targets) -> Tensor:
    """`sum_c y_c log(y_c / p_c)` for soft labels `y = targets.probs`, one number per word or span.

    What it does: 0 where the model predicts the soft labels, and where the position is unknown; positive elsewhere.
    Assumes: the soft labels are those of a model, for example of the same model without a perturbation.
    Departs from the authors: nothing.
    Reference: Miyato et al. (2018), "Virtual adversarial training: a regularization method for supervised and
        semi-supervised learning".

    >>> mask = torch.ones(1, 2, dtype=torch.bool)
    >>> probs = torch.tensor([[[0.5, 0.5], [1.0, 0.0]]])
    >>> kl_divergence(TokenScores(torch.zeros(1, 2, 2), mask), Targets(mask.long(), mask, torch.ones(1, 2), probs))
    tensor([[0.0000, 0.6931]])
    """
    assert targets.probs is not None
    at = (targets.known & scores.mask).nonzero(as_tuple=True)
    probs = targets.probs[at]
    losses: Tensor = (torch.special.xlogy(probs, probs) - probs * scores.logits[at].log_softmax(dim=-1)).sum(dim=-1)
    return losses.new_zeros(targets.labels.shape).index_put(at, losses * targets.weight[at])
