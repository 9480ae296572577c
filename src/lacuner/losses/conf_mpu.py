"""Risks for positive-unlabeled learning with several classes: MPN, and Conf-MPU with a confidence per word."""

from typing import Literal

from torch import Tensor
from torch.nn import functional

from lacuner.models.types import Targets, TokenScores

Base = Literal["mae", "ce"]
"""The loss of a word: mean absolute error between the one-hot label and the probabilities, or cross-entropy."""


def mpn_risk(
    scores: TokenScores, targets: Targets, prior: Tensor, positive: float = 10.0, base: Base = "mae"
) -> Tensor:
    """Risk of labeled words and of unlabeled words, weighted by class priors: one number for the batch.

    What it does: `positive * sum_c pi_c mean l(p, c)` over the words labeled with class `c`, plus `(1 - sum_c pi_c)
        mean l(p, O)` over the words without a label. `prior` `[classes]` holds the `pi_c`, O left out.
    Assumes: labels are right; few unlabeled words belong to entities.
    Departs from the authors: nothing.
    Reference: Li et al. (2025), "Re-examine distantly supervised NER: a new benchmark and a simple approach" (CuPUL).

    >>> import torch
    >>> scores = TokenScores(torch.zeros(1, 2, 2), torch.ones(1, 2, dtype=torch.bool))
    >>> targets = Targets(torch.tensor([[1, 0]]), scores.mask, torch.ones(1, 2))
    >>> mpn_risk(scores, targets, torch.tensor([0.2]), positive=10.0)  # 10 * 0.2 * 0.5 + 0.8 * 0.5
    tensor(1.4000)
    """
    losses, labels = _losses_by_class(scores, targets, base)
    own = losses.gather(1, labels.unsqueeze(1)).squeeze(1)
    means = _means_by_class(own, labels, losses.shape[1])
    return positive * (prior * means[1:]).sum() + (1 - prior.sum()) * means[0]


def conf_mpu_risk(
    scores: TokenScores,
    targets: Targets,
    prior: Tensor,
    positive: float = 10.0,
    base: Base = "mae",
    confident: float = 0.5,
) -> Tensor:
    """Risk in which unlabeled words that are probably entities do not count as O: one number for the batch.

    What it does: `targets.probs` holds probabilities of other models; `lambda = 1 - P(O)` is the confidence that a word
        belongs to an entity. The negative part is the mean `l(p, O)` over unlabeled words with `lambda <= confident`.
        What that leaves out is estimated from labeled words: `sum_c pi_c [mean l(p, O) / lambda` over those with
        `lambda > confident`, minus `mean l(p, O)`, plus `mean l(p, c)]`. A negative sum is a sign of overfitting and
        counts 0.
    Assumes: labels are right; the prior is right; the confidence ranks entities above other words.
    Departs from the authors: nothing in the formula. The released code of CuPUL calls `mpn_risk` instead.
    Reference: Zhou et al. (2022), "Distantly supervised named entity recognition via confidence-based multi-class
        positive and unlabeled learning"; Li et al. (2025), as above.

    >>> import torch
    >>> scores = TokenScores(torch.zeros(1, 2, 2), torch.ones(1, 2, dtype=torch.bool))
    >>> probs = torch.tensor([[[0.2, 0.8], [0.9, 0.1]]])
    >>> targets = Targets(torch.tensor([[1, 0]]), scores.mask, torch.ones(1, 2), probs)
    >>> conf_mpu_risk(scores, targets, torch.tensor([0.2]))  # 10 * 0.2 * (0.5 / 0.8 - 0.5 + 0.5) + 0.5
    tensor(1.7500)
    """
    if targets.probs is None:
        raise ValueError("conf_mpu_risk needs probabilities of other models in `probs`")
    losses, labels = _losses_by_class(scores, targets, base)
    confidence = (1 - targets.probs[..., 0])[targets.known & scores.mask]
    sure = confidence > confident
    classes = losses.shape[1]
    own, as_o = losses.gather(1, labels.unsqueeze(1)).squeeze(1), losses[:, 0]
    unlabeled = (labels == 0) & ~sure
    negative = as_o[unlabeled].sum() / unlabeled.sum().clamp(min=1)
    scaled = as_o / confidence.clamp(min=1e-3)
    sure_means = _means_by_class(scaled[sure], labels[sure], classes)
    part = sure_means - _means_by_class(as_o, labels, classes) + _means_by_class(own, labels, classes)
    return positive * (prior * part[1:]).sum().clamp(min=0) + negative


def _losses_by_class(scores: TokenScores, targets: Targets, base: Base) -> tuple[Tensor, Tensor]:
    """What each class would cost at each known word `[known, classes]`, and the labels `[known]`."""
    at = targets.known & scores.mask
    logits, labels = scores.logits[at], targets.labels[at]
    if base == "ce":
        return -logits.log_softmax(dim=-1), labels
    return 2 * (1 - logits.softmax(dim=-1)) / logits.shape[-1], labels


def _means_by_class(values: Tensor, labels: Tensor, classes: int) -> Tensor:
    """The mean value of the words of each class `[classes]`, 0 for a class without words."""
    member = functional.one_hot(labels, classes).to(values.dtype)
    return (member * values.unsqueeze(1)).sum(dim=0) / member.sum(dim=0).clamp(min=1)
