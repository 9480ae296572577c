"""Read-only training callbacks, for diagnostics that compare with gold labels hidden from the recipe.

A callback returns nothing and cannot influence training: a run with a callback ends with the same weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from lacuner.models.model import Model
    from lacuner.training.dataset import TrainingSet


class TrainingCallback(Protocol):
    """What a run reports while it trains. A resumed run reports only the epochs after the resumption."""

    def on_negatives_sampled(
        self, epoch: int, data: TrainingSet, indices: np.ndarray, sampled: Tensor, logits: Tensor
    ) -> None:
        """A step used the spans marked in `sampled` `[batch, words, widths]` of these sentences as negatives."""

    def on_epoch_end(self, stage: str, epoch: int, model: Model) -> None:
        """An epoch has ended. The model may be used; it is put back into training mode afterwards."""
