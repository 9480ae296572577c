"""Documents prepared for training: windows, encoder features and targets, computed once.

Words and annotations of sentences are Python objects, which take ten times the memory of the arrays made from them.
So documents are cut into sentences part by part, and only the arrays are kept.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lacuner.data import Document, Lost
from lacuner.errors import TrainingError
from lacuner.models.model import Model
from lacuner.models.targets import CorpusTargets, join_targets
from lacuner.models.types import Annotation, Batch, Encoder, Features, Targets
from lacuner.models.windows import Sentences, Window, cut_sentences

PART = 5000
"""Documents that are cut into sentences at a time."""


@dataclass(frozen=True)
class TrainingSentences:
    """Where the sentences of a training set come from. Their words and annotations are cut anew in each call."""

    docs: Sequence[Document]
    encoder: Encoder
    document: np.ndarray
    """Index of each sentence's document."""
    windows: list[Window]
    treat_as_complete: bool = False

    def words(self) -> list[list[str]]:
        """The words of each sentence."""
        return [words for part in cut_parts(self.docs, self.encoder, Lost()) for words in part.words]

    def annotations(self) -> list[Annotation]:
        """The annotation of each sentence."""
        cut = (annotation for part in cut_parts(self.docs, self.encoder, Lost()) for annotation in part.annotations)
        return [_complete(annotation) if self.treat_as_complete else annotation for annotation in cut]


class NumberedWords(Sequence[list[str]]):
    """Lists of words, kept as numbers of distinct words: four bytes per word.

    >>> words = NumberedWords()
    >>> words.extend([["Mara", "left"], ["Nora", "left"]])
    >>> words[1], len(words)
    (['Nora', 'left'], 2)
    """

    def __init__(self) -> None:
        self._number_of: dict[str, int] = {}
        self._distinct: list[str] = []
        self._numbers, self._ends = array("I"), array("q")

    def extend(self, sentences: Iterable[Sequence[str]]) -> None:
        """Add sentences."""
        number_of = self._number_of
        for sentence in sentences:
            self._numbers.extend([number_of.setdefault(word, len(number_of)) for word in sentence])
            self._ends.append(len(self._numbers))
        self._distinct += islice(number_of, len(self._distinct), None)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        at = range(len(self))[at]
        return [self._distinct[i] for i in self._numbers[self._ends[at - 1] if at else 0 : self._ends[at]]]


def cut_parts(docs: Sequence[Document], encoder: Encoder, lost: Lost) -> Iterator[Sentences]:
    """Cut documents into sentences to train on, a few thousand documents at a time."""
    for start in range(0, len(docs), PART):
        yield cut_sentences(docs[start : start + PART], encoder, lost)


def _complete(annotation: Annotation) -> Annotation:
    return replace(annotation, complete=True)


@dataclass(frozen=True)
class TrainingSet:
    """Sentences with their features and targets. A recipe may overwrite the target tensors between epochs."""

    model: Model
    sentences: TrainingSentences
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
    return _prepare(model, docs, lost, both_readings=False)[0]


def _prepare(model: Model, docs: Sequence[Document], lost: Lost, both_readings: bool) -> list[TrainingSet]:
    """The training set of the documents as they are, and as if all were complete, if both are asked for."""
    words = NumberedWords()
    document: list[np.ndarray] = [np.zeros(0, dtype=np.int64)]
    windows: list[Window] = []
    known_windows: dict[Window, Window] = {}  # one object per distinct window
    targets: list[list[CorpusTargets]] = [[], []]
    for number, part in enumerate(cut_parts(docs, model.encoder, lost)):
        words.extend(part.words)
        windows += [known_windows.setdefault(window, window) for window in part.windows]
        document.append(part.document + number * PART)
        targets[0].append(model.head.targets(part.annotations, lost))
        if both_readings:
            targets[1].append(model.head.targets([_complete(annotation) for annotation in part.annotations], Lost()))
    features = model.encoder.prepare(words)
    lost.count("word too long to be read to its end", features.truncated)
    sentences = TrainingSentences(docs, model.encoder, np.concatenate(document), windows)
    readings = [sentences, replace(sentences, treat_as_complete=True)]
    empty = model.head.targets([], Lost())
    return [
        TrainingSet(model, reading, features, join_targets(parts or [empty]))
        for reading, parts in zip(readings, targets[: 2 if both_readings else 1], strict=False)
    ]


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
    annotated, complete = _prepare(model, docs, lost, both_readings=True)
    own_lengths = torch.tensor([window.own_end - window.own_start for window in annotated.sentences.windows])
    unlabeled = complete.targets.known & (complete.targets.labels == 0) & ~annotated.targets.known
    return WeakTrainingSet(annotated, complete, unlabeled, own_lengths)


def assign_folds(docs: Sequence[Document], folds: int) -> np.ndarray:
    """The fold of each document `[documents]`. Folds are of similar size, and copies of a text share one.

    >>> assign_folds([Document("1", "b"), Document("2", "a"), Document("3", "b"), Document("4", "c")], 2).tolist()
    [1, 0, 1, 0]
    """
    fold_of = {text: rank % folds for rank, text in enumerate(sorted({doc.text for doc in docs}))}
    return np.array([fold_of[doc.text] for doc in docs], dtype=np.int64)
