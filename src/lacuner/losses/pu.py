"""Positive-unlabeled learning: the non-negative risk of each class."""

import torch
from torch import Tensor
from torch.nn import functional

from lacuner.losses.conf_mpu import Base
from lacuner.models.types import Targets, TokenScores


def pu_risk(
    scores: TokenScores, targets: Targets, ratio: Tensor, positive: float = 1.0, beta: float = 0.0, base: Base = "mae"
) -> Tensor:
    """Non-negative risk of each class against all others, one number per class except O.

    What it does: `positive * pi R_P(+) + max(beta, R_U(-) - pi R_P(-))` per class. A word that should have the class
        costs `1 - p`, and one that should not `p` (`base="mae"`, bounded), or `-log p` and `-log(1 - p)`
        (`base="ce"`, whose gradient does not vanish where `p` is wrong). All known words are the unlabeled sample,
        those labeled with the class the positive sample. `ratio` `[classes]` is the class prior `pi` divided by the
        share of labeled words. Means are over all words, so batches without a positive word are no special case.
    Assumes: labels are right, and missing at random within a class; the prior is right.
    Departs from the authors: they train one binary model per class; ours share one softmax. Soft labels are refused:
        a word is labeled with a class or unlabeled.
    Reference: Kiryo et al. (2017), "Positive-unlabeled learning with non-negative risk estimator"; Peng et al. (2019),
        "Distantly supervised named entity recognition using positive-unlabeled learning".

    >>> scores = TokenScores(torch.zeros(1, 4, 2), mask=torch.ones(1, 4, dtype=torch.bool))
    >>> targets = Targets(torch.tensor([[1, 0, 0, 0]]), scores.mask, torch.ones(1, 4))
    >>> pu_risk(scores, targets, ratio=torch.tensor([2.0]))  # twice as many entity words as labeled ones
    tensor([0.5000])
    """
    if targets.probs is not None:
        raise ValueError("pu_risk does not support soft labels")
    at = (targets.known & scores.mask).nonzero(as_tuple=True)
    as_class, as_other = _losses(scores.logits[at], base)
    labels = targets.labels[at]
    labeled = functional.one_hot(labels, scores.logits.shape[-1])[:, 1:]
    count = max(len(labels), 1)
    missed = ratio * (labeled * as_class).sum(dim=0) / count
    false = as_other.sum(dim=0) / count - ratio * (labeled * as_other).sum(dim=0) / count
    return positive * missed + false.clamp(min=beta)


def _losses(logits: Tensor, base: Base) -> tuple[Tensor, Tensor]:
    """What each class except O costs at each word if it is right, and if it is wrong: `[known, classes]` each."""
    if base == "mae":
        probs = logits.softmax(dim=-1)[:, 1:]
        return 1 - probs, probs
    logs = logits.log_softmax(dim=-1)[:, 1:]
    certain = -1e-6  # where p rounds to 1, log(1 - p) is infinite
    return -logs, -torch.log(-torch.expm1(logs.clamp(max=certain)))
