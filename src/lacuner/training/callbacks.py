"""Somebody who looks on: for experiments that know what a recipe must not know, such as where the gaps are.

Nothing comes back from a watch, so that a run that is watched ends with the same weights as one that is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from lacuner.models.model import Model
    from lacuner.training.dataset import TrainingSet


class Watch(Protocol):
    """What may be looked at. A run that is continued is watched only from where it goes on."""

    def drew(self, epoch: int, data: TrainingSet, indices: np.ndarray, drawn: Tensor, logits: Tensor) -> None:
        """A step took these spans `[batch, words, widths]` of these sentences for negatives."""

    def epoch_done(self, stage: str, epoch: int, model: Model) -> None:
        """An epoch is over; the model may be used, and is put back into training mode afterwards."""
