"""The loss of a CRF, whole or partial."""

from __future__ import annotations

from torch import Tensor

from lacuner.models.heads.crf import Unknown, log_likelihood
from lacuner.models.types import CRFScores, Targets


def crf_loss(scores: CRFScores, targets: Targets, unknown: Unknown = "marginal") -> Tensor:
    """Minus the log likelihood of what is known, one number a sentence.

    What it does: sums over all tag sequences that agree with the known words (`marginal`), or leaves the unknown words'
        scores out (`drop`); see `lacuner.models.heads.crf`. A sentence counts by the mean weight of its known words.
    Assumes: that what is known is right, and that some O are known.
    Departs from the authors: weights are ours; with all of them 1 there is no difference. Soft labels have no place
        in the sum, so `probs` is refused.
    Reference: Tsuboi et al. (2008), "Training conditional random fields using incomplete annotations".
    """
    if targets.probs is not None:
        raise ValueError("a CRF cannot learn from soft labels by this loss")
    known = (targets.known & scores.mask).to(targets.weight.dtype)
    weight = (targets.weight * known).sum(dim=1) / known.sum(dim=1).clamp(min=1)
    return -weight * log_likelihood(scores, targets, unknown)
