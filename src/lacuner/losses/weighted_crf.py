"""CRF likelihood in which unknown words have a distribution over tags."""

import torch
from torch import Tensor

from lacuner.models.heads.crf import allowed_tags, log_partition
from lacuner.models.types import CRFScores, Targets


def weighted_crf_loss(scores: CRFScores, targets: Targets) -> Tensor:
    """Negative log-likelihood weighted by a distribution `q` over each unknown word's tags, one number per sentence.

    What it does: `-log sum_y q(y) p(y)` over the tag sequences that agree with the known words; `q(y)` is the product
        of `targets.probs` over the unknown words; a uniform `q` gives the partial CRF, up to a constant. Unknown words
        without `q` (a row of zeros) weight all tags alike.
    Assumes: known labels are right.
    Departs from the authors: nothing that this function decides.
    Reference: Jie et al. (2019), "Better modeling of incomplete annotations for named entity recognition".

    >>> zeros, mask = torch.zeros(2), torch.ones(1, 1, dtype=torch.bool)
    >>> scores = CRFScores(torch.tensor([[[2.0, 0.0]]]), torch.zeros(2, 2), zeros, zeros, mask)
    >>> probs = torch.tensor([[[1.0, 0.0]]])  # the unknown word is O
    >>> weighted_crf_loss(scores, Targets(mask.long(), ~mask, torch.ones(1, 1), probs))
    tensor([0.1269])
    """
    if targets.probs is None:
        raise ValueError("weighted_crf_loss needs a distribution over the unknown words' tags")
    known = (targets.known & scores.mask).unsqueeze(-1)
    weighted = ~known & (targets.probs > 0).any(dim=-1, keepdim=True)
    # the weights shift the scores of the numerator and have no gradient
    logs = torch.where(weighted, targets.probs.clamp(min=1e-30).log(), 0.0).to(scores.logits.dtype)
    allowed = allowed_tags(scores, targets) & (~weighted | (targets.probs > 0))
    numerator = log_partition(scores, scores.logits + logs, scores.mask, allowed, None)
    denominator = log_partition(scores, scores.logits, scores.mask, torch.ones_like(allowed), None)
    return torch.where((known | weighted).any(dim=2).any(dim=1), denominator - numerator, 0.0)
