"""Expected entity ratio: the share of entity words that a CRF expects, held near a given share."""

import torch
from torch import Tensor

from lacuner.models.heads.crf import log_partition
from lacuner.models.types import CRFScores


def expected_entity_ratio(scores: CRFScores) -> Tensor:
    """The share of the batch's words that belong to entities, in expectation over all tag sequences: one number.

    What it does: one minus the mean marginal probability of O (tag 0), with a gradient. Marginals are the gradient of
        the log partition function, so the gradient of the ratio is a second derivative.
    Assumes: nothing.
    Departs from the authors: nothing.
    Reference: Effland and Collins (2021), "Partially supervised named entity recognition via the expected entity ratio
        loss".

    >>> zeros, mask = torch.zeros(3), torch.ones(1, 4, dtype=torch.bool)
    >>> logits = torch.zeros(1, 4, 3, requires_grad=True)  # three tags, all alike
    >>> round(expected_entity_ratio(CRFScores(logits, torch.zeros(3, 3), zeros, zeros, mask)).item(), 4)
    0.6667
    """
    total = log_partition(scores, scores.logits, scores.mask, torch.ones_like(scores.logits, dtype=torch.bool), None)
    (marginals,) = torch.autograd.grad(total.sum(), scores.logits, create_graph=True)
    return 1 - marginals[..., 0][scores.mask].mean()


def entity_ratio_loss(scores: CRFScores, ratio: float, margin: float) -> Tensor:
    """How far the expected entity ratio of a batch is from `ratio`, beyond `margin`: one number.

    What it does: `max(0, |expected - ratio| - margin)`. Every word of the batch takes part, known or not: that is the
        purpose, because the ratio is all that is known about unlabeled words.
    Assumes: the ratio of a batch is near that of the corpus; the margin leaves room for chance.
    Departs from the authors: nothing.
    Reference: Effland and Collins (2021), as above.

    >>> zeros, mask = torch.zeros(2), torch.ones(1, 4, dtype=torch.bool)
    >>> logits = torch.zeros(1, 4, 2, requires_grad=True)
    >>> entity_ratio_loss(CRFScores(logits, torch.zeros(2, 2), zeros, zeros, mask), 0.25, margin=0.125).item()
    0.125
    """
    return ((expected_entity_ratio(scores) - ratio).abs() - margin).clamp(min=0)
