"""Learning from positive and unlabelled words."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from lacuner.models.types import Targets, TokenScores


def pu_risk(scores: TokenScores, targets: Targets, ratio: Tensor, positive: float = 1.0, beta: float = 0.0) -> Tensor:
    """The non-negative risk of each class against all others, one number a class; O has none.

    What it does: `positive * pi R_P(+) + max(beta, R_U(-) - pi R_P(-))` a class, with the bounded loss `1 - p` for a
        word that should be of the class and `p` for one that should not; `p` is the softmax. All known words are the
        unlabelled sample, those with the class's label the positive one. `ratio` is `pi` over the share of words that
        have the label: how many there are for each that is labelled. Means are over all words, so that batches
        without a positive word are no special case.
    Assumes: that labels are right, and missing at random within a class; that the ratio is right.
    Departs from the authors: they train a binary model a class; ours share all but the last layer, and one softmax.
        The risk is estimated in each batch, as theirs is.
    Reference: Kiryo et al. (2017), "Positive-unlabeled learning with non-negative risk estimator"; Peng et al. (2019),
        "Distantly supervised named entity recognition using positive-unlabeled learning".
    """
    at = (targets.known & scores.mask).nonzero(as_tuple=True)
    probs = scores.logits[at].softmax(dim=-1)[:, 1:]
    labels = targets.labels[at]
    labelled = functional.one_hot(labels, scores.logits.shape[-1])[:, 1:]
    count = max(len(labels), 1)
    missed = ratio * (labelled * (1 - probs)).sum(dim=0) / count
    false = probs.sum(dim=0) / count - ratio * (labelled * probs).sum(dim=0) / count
    return positive * missed + false.clamp(min=beta)
