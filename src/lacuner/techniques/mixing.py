"""What recipes share that learn from gold and from something else at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lacuner.data import Document, Lost
from lacuner.errors import TrainingError
from lacuner.models.model import Model
from lacuner.training.dataset import TrainingSet, training_set


@dataclass(frozen=True)
class Mixed:
    """Gold and weak documents made ready together."""

    data: TrainingSet
    golds: int
    """How many documents are gold; they come first."""

    def of_sentences(self, gold: float, weak: np.ndarray) -> np.ndarray:
        """A number for each sentence: `gold` for those of gold documents, else that of the weak document."""
        values: np.ndarray = np.concatenate([np.full(self.golds, gold), weak])[self.data.sentences.document]
        return values


def mix(model: Model, gold: Sequence[Document], weak: Sequence[Document], lost: Lost) -> Mixed:
    """Documents to learn from; `lost` has what the model cannot learn."""
    return Mixed(training_set(model, [*gold, *weak], lost), len(gold))


def need_entities(gold: Sequence[Document]) -> None:
    """Refuse gold from which no entity can be learned."""
    if not any(doc.spans for doc in gold):
        raise TrainingError("there is no labelled span in gold: a model cannot learn from it what an entity is")


def only_in_weak(gold: Sequence[Document], weak: Sequence[Document]) -> list[str]:
    """Labels that gold has not one example of."""
    mine, yours = ({span.label for doc in docs for span in doc.spans} for docs in (gold, weak))
    return sorted(yours - mine)
