"""Positive-unlabeled learning: the non-negative risk of each class."""

from torch import Tensor
from torch.nn import functional

from lacuner.models.types import Targets, TokenScores


def pu_risk(scores: TokenScores, targets: Targets, ratio: Tensor, positive: float = 1.0, beta: float = 0.0) -> Tensor:
    """Non-negative risk of each class against all others, one number per class except O.

    What it does: `positive * pi R_P(+) + max(beta, R_U(-) - pi R_P(-))` per class, with the bounded loss `1 - p` for a
        word that should have the class and `p` for one that should not. All known words are the unlabeled sample,
        those labeled with the class the positive sample. `ratio` `[classes]` is the class prior `pi` divided by the
        share of labeled words. Means are over all words, so batches without a positive word are no special case.
    Assumes: labels are right, and missing at random within a class; the prior is right.
    Departs from the authors: they train one binary model per class; ours share one softmax. Soft labels are refused:
        a word is labeled with a class or unlabeled.
    Reference: Kiryo et al. (2017), "Positive-unlabeled learning with non-negative risk estimator"; Peng et al. (2019),
        "Distantly supervised named entity recognition using positive-unlabeled learning".

    >>> import torch
    >>> scores = TokenScores(torch.zeros(1, 4, 2), mask=torch.ones(1, 4, dtype=torch.bool))
    >>> targets = Targets(torch.tensor([[1, 0, 0, 0]]), scores.mask, torch.ones(1, 4))
    >>> pu_risk(scores, targets, ratio=torch.tensor([2.0]))  # twice as many entity words as labeled ones
    tensor([0.5000])
    """
    if targets.probs is not None:
        raise ValueError("pu_risk does not support soft labels")
    at = (targets.known & scores.mask).nonzero(as_tuple=True)
    probs = scores.logits[at].softmax(dim=-1)[:, 1:]
    labels = targets.labels[at]
    labeled = functional.one_hot(labels, scores.logits.shape[-1])[:, 1:]
    count = max(len(labels), 1)
    missed = ratio * (labeled * (1 - probs)).sum(dim=0) / count
    false = probs.sum(dim=0) / count - ratio * (labeled * probs).sum(dim=0) / count
    return positive * missed + false.clamp(min=beta)
