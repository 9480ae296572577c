"""TODO docstring."""

from __future__ import annotations

from typing import Any

from lacuner.losses.crf import crf_loss
from lacuner.losses.cross_entropy import cross_entropy
from lacuner.models.heads.crf import Unknown
from lacuner.models.types import CRFScores
from lacuner.training.dataset import TrainingSet
from lacuner.training.loop import Step, StepLoss


def believe(data: TrainingSet, unknown: Unknown = "marginal") -> Step:
    """The plain step: whatever is known is right. Cross entropy, or the likelihood of a CRF."""

    def step(indices: Any) -> StepLoss:
        batch, targets = data.batch(indices)
        scores = data.model(batch)
        known, positions = float((targets.known & scores.mask).sum()), float(scores.mask.sum())
        losses = crf_loss(scores, targets, unknown) if isinstance(scores, CRFScores) else cross_entropy(scores, targets)
        # a mean over words, for spans too: over all spans the gradients would be so small that Adam's epsilon shows
        return StepLoss(losses.sum(), float(batch.mask.sum()), known, positions)

    return step
