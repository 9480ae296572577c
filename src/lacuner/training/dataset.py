"""Documents prepared for training: windows, encoder features and targets, computed once.

Words and annotations of sentences are Python objects, which take ten times the memory of the arrays made from them.
So documents are cut into sentences part by part, and only the arrays are kept: in memory, or, for documents that are
stored on disk, in files beside them that are mapped.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lacuner.corpus.stored import StoredDocuments
from lacuner.data import Document, Lost
from lacuner.errors import TrainingError
from lacuner.mapped import join_parts, open_arrays, write_arrays
from lacuner.models.model import Model
from lacuner.models.ragged import NumberedWords, offsets_of
from lacuner.models.targets import CorpusTargets
from lacuner.models.types import Annotation, Batch, Encoder, Features, Targets
from lacuner.models.windows import Sentences, Window, cut_sentences
from lacuner.training.distributed import first_then_others

PART = 5000
"""Documents that are cut into sentences at a time."""
_FORM = 1
"""Version of the arrays on disk: other versions are prepared anew."""


@dataclass(frozen=True)
class TrainingSentences:
    """Where the sentences of a training set come from. Their words and annotations are cut anew in each call."""

    docs: Sequence[Document]
    encoder: Encoder
    document: np.ndarray
    """Index of each sentence's document."""
    edges: np.ndarray
    """The window of each sentence: `[sentences, 4]`, with the fields of `Window`."""
    treat_as_complete: bool = False

    @property
    def windows(self) -> list[Window]:
        """The window of each sentence."""
        return [Window(*edges) for edges in self.edges.tolist()]

    def words(self) -> list[list[str]]:
        """The words of each sentence."""
        return [words for part in cut_parts(self.docs, self.encoder, Lost()) for words in part.words]

    def annotations(self) -> list[Annotation]:
        """The annotation of each sentence."""
        cut = (annotation for part in cut_parts(self.docs, self.encoder, Lost()) for annotation in part.annotations)
        return [_complete(annotation) if self.treat_as_complete else annotation for annotation in cut]


def cut_parts(docs: Sequence[Document], encoder: Encoder, lost: Lost) -> Iterator[Sentences]:
    """Cut documents into sentences to train on, a few thousand documents at a time."""
    for start in range(0, max(len(docs), 1), PART):  # at least one part, which may be empty
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
    arrays, words = _prepare(model, docs, lost, both_readings=False)
    return _as_annotated(model, docs, arrays, _features(model, words, arrays, lost))


def _as_annotated(
    model: Model, docs: Sequence[Document], arrays: dict[str, np.ndarray], features: Features
) -> TrainingSet:
    sentences = TrainingSentences(docs, model.encoder, arrays["document"], arrays["windows"])
    offsets = offsets_of(features.lengths)
    return TrainingSet(
        model, sentences, features, CorpusTargets(_tensor(arrays["labels"]), _tensor(arrays["known"]), offsets)
    )


def _features(model: Model, words: list[str], arrays: dict[str, np.ndarray], lost: Lost) -> Features:
    features = model.encoder.prepare(NumberedWords(words, arrays["row"], arrays["lengths"]))
    lost.count("word too long to be read to its end", features.truncated)
    return features


def _tensor(array: np.ndarray) -> Tensor:
    """An array as a tensor on the same memory. A mapped array is read-only, which torch does not support: it warns."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)


def _prepare(
    model: Model, docs: Sequence[Document], lost: Lost, both_readings: bool
) -> tuple[dict[str, np.ndarray], list[str]]:
    """The arrays of a training set, and the distinct words; on disk if the documents are."""
    numbers: dict[str, int] = {}
    cut_lost = Lost()
    parts = _cut_arrays(model, docs, cut_lost, both_readings, numbers)
    if not isinstance(docs, StoredDocuments):
        arrays = join_parts(parts)
        _add_counts(lost, cut_lost.counts)
        return arrays, list(numbers)
    identity = [_FORM, docs.key, _describe(model), both_readings]
    folder = docs.folder / f"arrays-{hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]}"

    def prepare_once() -> tuple[dict[str, np.ndarray], list[str]]:
        prepared = open_arrays(folder, identity)
        if prepared is None:
            write_arrays(folder, identity, parts, lambda: {"words": list(numbers), "lost": cut_lost.counts})
            prepared = open_arrays(folder, identity)
            assert prepared is not None
        _add_counts(lost, prepared.facts["lost"])
        return prepared.arrays, prepared.facts["words"]

    return first_then_others(prepare_once)


def _describe(model: Model) -> dict[str, Any]:
    """What the arrays of a training set depend on, beside the documents: how sentences are cut, and the head."""
    files = {name: hashlib.sha256(data).hexdigest() for name, data in model.encoder.files().items()}
    head = {name: value for name, value in model.head.config().items() if name not in ("dropout", "threshold")}
    limit = model.encoder.limit
    return {"kind": model.encoder.config()["kind"], "limit": limit, "files": files, "head": head}


def _cut_arrays(
    model: Model, docs: Sequence[Document], lost: Lost, both_readings: bool, numbers: dict[str, int]
) -> Iterator[dict[str, np.ndarray]]:
    """The arrays of a training set, part by part; `numbers` collects the distinct words."""
    number_of = numbers.setdefault
    for part_number, part in enumerate(cut_parts(docs, model.encoder, lost)):
        row = [number_of(word, len(numbers)) for words in part.words for word in words]
        targets = model.head.targets(part.annotations, lost)
        arrays = {
            "row": np.array(row, dtype=np.uint32),
            "lengths": np.fromiter(map(len, part.words), dtype=np.uint32, count=len(part.words)),
            "document": part.document + part_number * PART,
            "windows": np.array(part.windows, dtype=np.int32).reshape(-1, len(Window._fields)),
            "labels": targets.labels.numpy(),
            "known": targets.known.numpy(),
        }
        if both_readings:
            complete = model.head.targets([_complete(annotation) for annotation in part.annotations], Lost())
            # labels are the same under both readings
            arrays["known_as_complete"] = complete.known.numpy()
            arrays["unlabeled"] = (complete.known & (complete.labels == 0) & ~targets.known).numpy()
        yield arrays


def _add_counts(lost: Lost, counts: Mapping[str, int]) -> None:
    for reason, times in counts.items():
        lost.count(reason, times)


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
    arrays, words = _prepare(model, docs, lost, both_readings=True)
    annotated = _as_annotated(model, docs, arrays, _features(model, words, arrays, lost))
    labels = annotated.targets.labels if isinstance(docs, StoredDocuments) else annotated.targets.labels.clone()
    targets = replace(annotated.targets, labels=labels, known=_tensor(arrays["known_as_complete"]))
    complete = replace(annotated, sentences=replace(annotated.sentences, treat_as_complete=True), targets=targets)
    own_lengths = torch.from_numpy((arrays["windows"][:, 3] - arrays["windows"][:, 2]).astype(np.int64))
    return WeakTrainingSet(annotated, complete, _tensor(arrays["unlabeled"]), own_lengths)


def assign_folds(docs: Sequence[Document], folds: int) -> np.ndarray:
    """The fold of each document `[documents]`. Folds are of similar size, and copies of a text share one.

    >>> assign_folds([Document("1", "b"), Document("2", "a"), Document("3", "b"), Document("4", "c")], 2).tolist()
    [1, 0, 1, 0]
    """
    fold_of = {text: rank % folds for rank, text in enumerate(sorted({doc.text for doc in docs}))}
    return np.array([fold_of[doc.text] for doc in docs], dtype=np.int64)
