"""A CRF's likelihood for labels of which only a share is right: what is probably wrong is made less likely."""

from __future__ import annotations

from math import log

import torch
from torch import Tensor

from lacuner.models.heads.crf import log_likelihood
from lacuner.models.types import CRFScores, Targets

_HALF = log(2)


def noise_aware_loss(scores: CRFScores, targets: Targets, confidence: Tensor) -> Tensor:
    """`C l + (1 - C) l-`, one number a sentence: `l = -log P` of what is known, and `l- = -log (1 - P)`.

    What it does: `confidence` `[batch]` is the probability `C` that all labels of a sentence are right. With 1 the
        loss is that of the CRF, and `l-` is not even computed. The least is where the model gives the labels the
        probability `C`: it neither believes nor doubts them more than they deserve.
    Assumes: that the confidences are calibrated. Of a sentence of which nothing is known nothing is learned. `1 - P`
        of a long sentence is the difference of two large sums: it is computed in double precision, whatever the scores
        have.
    Departs from the authors: where words are unknown, `P` is that of all sequences that agree with the known ones.
    Reference: Jiang et al. (2021), "Named entity recognition with small strongly labeled and large weakly labeled
        data" (NEEDLE).
    """
    start, end = scores.start.double(), scores.end.double()
    exact = CRFScores(scores.logits.double(), scores.transitions.double(), start, end, scores.mask)
    plain = -log_likelihood(exact, targets)
    sure = confidence.to(plain)
    doubted = ((sure < 1) & (targets.known & scores.mask).any(dim=1)).nonzero().squeeze(1)
    against = (1 - sure[doubted]) * unlikelihood(plain[doubted])
    return (sure * plain).index_add(0, doubted, against).to(scores.logits)


def unlikelihood(loss: Tensor) -> Tensor:
    """`-log (1 - exp (-loss))` for a loss of 0 or more, without losing digits where it is small or large.

    At 0 it would be infinite: the loss counts as no less than what its type can tell from 0, which also keeps the
    gradient finite. Sums of a CRF may end a little below 0; that is 0, too.
    """
    gap = loss.clamp(min=0) + torch.finfo(loss.dtype).eps
    # each formula sees only what it is good for: the gradient of the other one must not be NaN
    near = torch.log(-torch.expm1(-gap.clamp(max=_HALF)))
    far = torch.log1p(-torch.exp(-gap.clamp(min=_HALF)))
    return -torch.where(gap < _HALF, near, far)
