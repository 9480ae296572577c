"""The likelihood of a CRF in which the unknown words have a distribution over tags."""

from __future__ import annotations

import torch
from torch import Tensor

from lacuner.models.heads.crf import allowed_tags, log_partition
from lacuner.models.types import CRFScores, Targets


def weighted_crf_loss(scores: CRFScores, targets: Targets) -> Tensor:
    """Minus the log of the likelihood weighted by a distribution `q` of each word's tags, one number a sentence.

    What it does: `-log sum_y q(y) p(y)` over the tag sequences that agree with the known words, where `q(y)` is the
        product of `targets.probs` over the words that are not known. With `q` on a single sequence that is the CRF's
        likelihood of it; with the same `q` for all tags it is the partial CRF's, but for a constant. Words that are
        not known and have no `q` (a row of zeros) weigh all tags alike.
    Assumes: that what is known is right.
    Departs from the authors: in nothing that this function decides.
    Reference: Jie et al. (2019), "Better modeling of incomplete annotations for named entity recognition".
    """
    if targets.probs is None:
        raise ValueError("the weighted likelihood needs a distribution of the unknown words' tags")
    known = (targets.known & scores.mask).unsqueeze(-1)
    weighed = ~known & (targets.probs > 0).any(dim=-1, keepdim=True)
    # the weights are no matter of the model: they shift the scores above the line, and have no gradient
    logs = torch.where(weighed, targets.probs.clamp(min=1e-30).log(), 0.0).to(scores.logits.dtype)
    fixed = allowed_tags(scores, targets) & (~weighed | (targets.probs > 0))
    above = log_partition(scores, scores.logits + logs, scores.mask, fixed, None)
    below = log_partition(scores, scores.logits, scores.mask, torch.ones_like(fixed), None)
    return torch.where((known | weighed).any(dim=2).any(dim=1), below - above, 0.0)
