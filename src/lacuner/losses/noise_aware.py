"""Noise-aware CRF loss: likelihood of labels that are probably right, unlikelihood of those that are not."""

from math import log

import torch
from torch import Tensor

from lacuner.models.heads.crf import log_likelihood
from lacuner.models.types import CRFScores, Targets

_HALF = log(2)


def noise_aware_loss(scores: CRFScores, targets: Targets, confidence: Tensor) -> Tensor:
    """`C * -log P + (1 - C) * -log (1 - P)`, one number per sentence; `P` is the probability of its known labels.

    What it does: `confidence` `[batch]` is the probability `C` that all labels of a sentence are right; the minimum is
        at `P = C`. `1 - P` of a long sentence is the difference of two large sums: it is computed in double precision.
    Assumes: confidences are calibrated.
    Departs from the authors: where words are unknown, `P` sums over all sequences that agree with the known words.
    Reference: Jiang et al. (2021), "Named entity recognition with small strongly labeled and large weakly labeled
        data" (NEEDLE).

    >>> zeros, mask = torch.zeros(2), torch.ones(2, 1, dtype=torch.bool)
    >>> scores = CRFScores(torch.tensor([[[2.0, 0.0]], [[2.0, 0.0]]]), torch.zeros(2, 2), zeros, zeros, mask)
    >>> targets = Targets(torch.zeros(2, 1, dtype=torch.long), mask, torch.ones(2, 1))
    >>> noise_aware_loss(scores, targets, confidence=torch.tensor([1.0, 0.5]))
    tensor([0.1269, 1.1269])
    """
    start, end = scores.start.double(), scores.end.double()
    exact = CRFScores(scores.logits.double(), scores.transitions.double(), start, end, scores.mask)
    losses = -log_likelihood(exact, targets)
    confidence = confidence.to(losses)
    uncertain = ((confidence < 1) & (targets.known & scores.mask).any(dim=1)).nonzero().squeeze(1)
    against = (1 - confidence[uncertain]) * unlikelihood(losses[uncertain])
    return (confidence * losses).index_add(0, uncertain, against).to(scores.logits)


def unlikelihood(loss: Tensor) -> Tensor:
    """`-log (1 - exp (-loss))` for a loss of 0 or more, precise for small and for large losses.

    At 0 it would be infinite: a loss counts as at least the smallest number that its type can tell from 0, which also
    keeps the gradient finite. Sums of a CRF may end slightly below 0; they count as 0.

    >>> unlikelihood(torch.tensor([0.5]).log().neg())  # P = 1/2, so 1 - P = 1/2
    tensor([0.6931])
    """
    gap = loss.clamp(min=0) + torch.finfo(loss.dtype).eps
    # each formula gets only the values that it is precise for: the gradient of the other one must not be NaN
    near = torch.log(-torch.expm1(-gap.clamp(max=_HALF)))
    far = torch.log1p(-torch.exp(-gap.clamp(min=_HALF)))
    return -torch.where(gap < _HALF, near, far)
