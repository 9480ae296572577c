"""One training step: a loss function on scores and targets, turned into what the loop needs."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from torch import Tensor

from lacuner.losses.crf import crf_loss
from lacuner.losses.cross_entropy import cross_entropy
from lacuner.losses.tie_or_break import tie_or_break_loss
from lacuner.models.types import CRFScores, Targets, TieOrBreakScores
from lacuner.training.data_parallel import score_batch
from lacuner.training.dataset import TrainingSet


class StepLoss(NamedTuple):
    """The summed loss of a batch, what it is divided by, and how many of the batch's positions are known."""

    total: Tensor
    size: float
    known: float
    positions: float


Step = Callable[[np.ndarray], StepLoss]
"""From sentence indices to their loss. Draw random numbers from torch's global generator only: its state is saved.

Several processes call it with the same batch. `score_batch` divides the work between them; all that follows must use
parameters through the scores only, because the gradients of all processes are summed.
"""
MakeStep = Callable[[int], Step]
"""The step of an epoch. It may be called twice for the same epoch, when an interrupted run resumes."""
LossFunction = Callable[[Any, Targets], Tensor]
"""An unreduced loss of the head's scores."""


def supervised_loss(scores: Any, targets: Targets) -> Tensor:
    """Cross-entropy at the known positions, the likelihood of a (partial) CRF, or the loss of gaps and chunks."""
    if isinstance(scores, TieOrBreakScores):
        return tie_or_break_loss(scores, targets)
    return crf_loss(scores, targets) if isinstance(scores, CRFScores) else cross_entropy(scores, targets)


def loss_step(
    data: TrainingSet,
    loss: LossFunction = supervised_loss,
    *,
    retarget: Callable[[Any, Targets, np.ndarray], Targets] | None = None,
    known: Callable[[Targets], Tensor] | None = None,
    per: Literal["word", "known"] = "word",
) -> Step:
    """Make a training step from an unreduced loss.

    `retarget` changes the targets of a batch once its scores are there (it draws negatives, for instance). `known`
    says which positions count as known, by default `targets.known`; a batch without any is skipped. The loss is
    divided by the number of words, or of known positions. Words, for span heads too: a mean over all spans would make
    gradients so small that Adam's epsilon shows.
    """

    def step(indices: np.ndarray) -> StepLoss:
        targets = data.targets_of(indices)
        scores = score_batch(data.model, data.features, indices)
        if retarget is not None:
            targets = retarget(scores, targets, indices)
        total = loss(scores, targets).sum()
        mask = targets.known if known is None else known(targets)
        count = float((mask & scores.mask).sum())
        size = float(data.features.lengths[indices].sum()) if per == "word" else max(count, 1.0)
        return StepLoss(total, size, count, float(scores.mask.sum()))

    return step
