"""Documents prepared for training: windows, encoder features and targets, computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from lacuner.data import Document, Lost
from lacuner.errors import TrainingError
from lacuner.models.model import Model
from lacuner.models.targets import CorpusTargets
from lacuner.models.types import Batch, Features, Targets
from lacuner.models.windows import Sentences, cut_sentences


@dataclass(frozen=True)
class TrainingSet:
    """Sentences with their features and targets. A recipe may overwrite the target tensors between epochs."""

    model: Model
    sentences: Sentences
    features: Features
    targets: CorpusTargets

    def batch(self, indices: np.ndarray) -> tuple[Batch, Targets]:
        """The sentences with these indices as padded tensors, on the model's device."""
        device = next(self.model.parameters()).device
        return self.model.encoder.collate(self.features, indices).to(device), self.targets_of(indices)

    def targets_of(self, indices: np.ndarray) -> Targets:
        """The targets of the sentences with these indices, padded, on the model's device."""
        device = next(self.model.parameters()).device
        targets = self.targets.collate(indices)
        if device.type != "cpu":
            probs = None if targets.probs is None else targets.probs.to(device)
            labels, known, weight = (tensor.to(device) for tensor in (targets.labels, targets.known, targets.weight))
            targets = Targets(labels, known, weight, probs)
        return targets

    def only(self, sentences: np.ndarray) -> TrainingSet:
        """The same data, but only the sentences of this mask are trained on (the loop skips those that cost 0)."""
        return replace(self, features=replace(self.features, costs=np.where(sentences, self.features.costs, 0)))

    def weight_documents(self, weights: np.ndarray) -> None:
        """Weight every position by its document's weight `[documents]`."""
        by_sentence = weights[self.sentences.document]
        self.targets.weight = torch.from_numpy(np.repeat(by_sentence, self.features.lengths)).float()


def training_set(model: Model, docs: Sequence[Document], lost: Lost) -> TrainingSet:
    """Prepare documents for a model; `lost` counts the annotation that the model cannot represent."""
    sentences = cut_sentences(docs, model.encoder, lost)
    features = model.encoder.prepare(sentences.words)
    lost.count("word too long to be read to its end", features.truncated)
    return TrainingSet(model, sentences, features, model.head.targets(sentences.annotations, lost))


def need_entities(gold: Sequence[Document]) -> None:
    """Raise an error if gold has no entity to learn from."""
    if not any(doc.spans for doc in gold):
        raise TrainingError("there is no labeled span in gold: a model cannot learn from it what an entity is")


@dataclass(frozen=True)
class WeakTrainingSet:
    """Weak documents under both readings: unlabeled positions are unknown, or they are O.

    A position is a word or, for span heads, a span. What touches an `unsure` span is unknown under both readings.
    """

    as_annotated: TrainingSet
    """Unlabeled positions are unknown, except in documents that are marked complete."""
    as_complete: TrainingSet
    """Unlabeled positions are O: the documents treated as complete."""
    unlabeled: Tensor
    """Which positions are O under the second reading only: `[words]` or `[words, widths]`, boolean."""
    own_lengths: Tensor
    """Words per sentence; in a window, only those that no other window owns: `[sentences]`."""

    @property
    def labeled(self) -> Tensor:
        """Which positions carry a label: same shape, boolean."""
        return self.as_complete.targets.known & (self.as_complete.targets.labels > 0)

    def unlabeled_in(self, indices: np.ndarray) -> Tensor:
        """The unlabeled positions of some sentences, padded: `[batch, words]` or `[batch, words, widths]`."""
        return replace(self.as_complete.targets, known=self.unlabeled).collate(indices).known


def weak_training_set(model: Model, docs: Sequence[Document], lost: Lost) -> WeakTrainingSet:
    """Prepare weak documents for a model under both readings; `lost` counts what the model cannot represent."""
    data = training_set(model, docs, lost)
    annotations = [replace(annotation, complete=True) for annotation in data.sentences.annotations]
    targets = model.head.targets(annotations, Lost())
    complete = replace(data, sentences=replace(data.sentences, annotations=annotations), targets=targets)
    own_lengths = torch.tensor([window.own_end - window.own_start for window in data.sentences.windows])
    unlabeled = targets.known & (targets.labels == 0) & ~data.targets.known
    return WeakTrainingSet(data, complete, unlabeled, own_lengths)


def assign_folds(docs: Sequence[Document], folds: int) -> np.ndarray:
    """The fold of each document `[documents]`. Folds are of similar size, and copies of a text share one.

    >>> assign_folds([Document("1", "b"), Document("2", "a"), Document("3", "b"), Document("4", "c")], 2).tolist()
    [1, 0, 1, 0]
    """
    fold_of = {text: rank % folds for rank, text in enumerate(sorted({doc.text for doc in docs}))}
    return np.array([fold_of[doc.text] for doc in docs], dtype=np.int64)
