"""Training on gold and weak documents together."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from lacuner.data import Document, Lost
from lacuner.errors import TrainingError
from lacuner.models.model import Model
from lacuner.training.dataset import TrainingSet, training_set


@dataclass(frozen=True)
class MixedSet:
    """Gold and weak documents prepared together; the gold ones come first."""

    data: TrainingSet
    gold_documents: int

    def weight_sentences(self, weak_weights: np.ndarray) -> None:
        """Weight every position by its sentence: 1 for gold, the given weight of its document `[weak]` for weak."""
        weights = np.concatenate([np.ones(self.gold_documents), weak_weights])[self.data.sentences.document]
        self.data.targets.weight = torch.from_numpy(np.repeat(weights, self.data.features.lengths)).float()


def mix(model: Model, gold: Sequence[Document], weak: Sequence[Document], lost: Lost) -> MixedSet:
    """Prepare gold and weak documents for a model; `lost` counts what the model cannot represent."""
    return MixedSet(training_set(model, [*gold, *weak], lost), len(gold))


def need_entities(gold: Sequence[Document]) -> None:
    """Raise an error if gold has no entity to learn from."""
    if not any(doc.spans for doc in gold):
        raise TrainingError("there is no labeled span in gold: a model cannot learn from it what an entity is")
