"""Likelihood of a CRF, for complete and for partial annotation."""

from torch import Tensor

from lacuner.models.heads.crf import Unknown, log_likelihood
from lacuner.models.types import CRFScores, Targets


def crf_loss(scores: CRFScores, targets: Targets, unknown: Unknown = "marginal") -> Tensor:
    """Negative log-likelihood of the known words, one number per sentence.

    What it does: marginalises over all tag sequences that agree with the known words (`marginal`), or drops the scores
        of unknown words (`drop`, `observed`). A sentence has the mean weight of its known words.
    Assumes: known labels are right, and some O are known.
    Departs from the authors: weights are ours. Soft labels are refused: the sum over sequences has no place for them.
    Reference: Tsuboi et al. (2008), "Training conditional random fields using incomplete annotations".

    >>> import torch
    >>> zeros, mask = torch.zeros(2), torch.ones(1, 3, dtype=torch.bool)
    >>> scores = CRFScores(torch.zeros(1, 3, 2), torch.zeros(2, 2), zeros, zeros, mask)  # all sequences alike
    >>> known = torch.tensor([[True, False, True]])  # two of three words known: probability 1/4
    >>> crf_loss(scores, Targets(torch.zeros(1, 3, dtype=torch.long), known, torch.ones(1, 3))).exp()
    tensor([4.])
    """
    if targets.probs is not None:
        raise ValueError("crf_loss does not support soft labels")
    known = (targets.known & scores.mask).to(targets.weight.dtype)
    weight = (targets.weight * known).sum(dim=1) / known.sum(dim=1).clamp(min=1)
    return -weight * log_likelihood(scores, targets, unknown)
