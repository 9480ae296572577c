"""Documents prepared for training: windows, encoder features and targets, computed once.

Words and annotations of sentences are Python objects, which take ten times the memory of the arrays made from them.
So documents are cut into sentences part by part, and only the arrays are kept: in memory, or, for documents that are
stored on disk, in files beside them that are mapped.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lacuner.corpus.stored import StoredDocuments, store_documents
from lacuner.corpus.words import words_of
from lacuner.data import Document, Lost
from lacuner.errors import TrainingError
from lacuner.mapped import ArrayFolder, Parts, join_parts, open_arrays, release_pages, write_arrays
from lacuner.models.model import Model
from lacuner.models.ragged import NumberedWords, offsets_of, run_positions
from lacuner.models.targets import CorpusTargets
from lacuner.models.types import Annotation, Batch, Encoder, Features, Targets
from lacuner.models.windows import Sentences, Window, cut_sentences
from lacuner.processes import lock_folder
from lacuner.training.distributed import first_then_others

PART = 5000
"""Documents that are cut into sentences at a time."""
WORDS = 1 << 20
"""Words whose rows of a tensor are computed at a time."""
_FORM = 1
"""Version of the arrays on disk: other versions are prepared again."""


@dataclass(frozen=True)
class TrainingSentences:
    """Where the sentences of a training set come from. Their words and annotations are cut again in each call."""

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
    """Sentences with their features and targets. A recipe may overwrite the target tensors, unless they are on disk."""

    model: Model
    sentences: TrainingSentences
    features: Features
    targets: CorpusTargets
    folder: Path | None = None
    """Where the arrays are kept; None if they are in memory."""

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
        """The same data, of which only the sentences of this mask are trained on (the loop skips those that cost 0)."""
        return replace(self, features=replace(self.features, costs=np.where(sentences, self.features.costs, 0)))

    def weight_documents(self, weights: np.ndarray) -> None:
        """Weight every position by its document's weight `[documents]`."""
        offsets, by_sentence = self.targets.offsets, weights[self.sentences.document].astype(np.float32)

        def weights_of(words: slice) -> Tensor:
            places = np.arange(words.start, min(words.stop, offsets[-1]))
            return torch.from_numpy(by_sentence[np.searchsorted(offsets, places, side="right") - 1])

        digest = hashlib.sha256(by_sentence.tobytes()).hexdigest()
        self.targets.weight = derive_tensor(self, ["weights", digest], weights_of)


def derive_tensor(data: TrainingSet, key: Sequence[object], compute: Callable[[slice], Tensor]) -> Tensor:
    """A tensor with one row per word of a training set, computed part by part; on disk if the training set is.

    Args:
        data: the training set.
        key: what the tensor depends on beside the training set; it is computed once.
        compute: the rows of a range of words.
    """

    parts = ({"rows": compute(words).numpy()} for words in cut_range(int(data.targets.offsets[-1])))
    return keep_rows(data, key, parts)["rows"]


def cut_range(count: int, size: int | None = None) -> Iterator[slice]:
    """Yield slices that cover `count` words, or other rows, at most `size` (default: `WORDS`) at a time.

    After each, the pages that were read of mapped arrays are released.

    >>> [(part.start, part.stop) for part in cut_range(5, 3)]
    [(0, 3), (3, 6)]
    """
    size = size or WORDS
    for start in range(0, max(count, 1), size):
        yield slice(start, start + size)
        release_pages()


def keep_rows(data: TrainingSet, key: Sequence[object], parts: Parts) -> dict[str, Tensor]:
    """Tensors with one row per word of a training set, given part by part; on disk, by `key`, if the training set is.

    What is on disk already is not computed again.
    """

    def release() -> Parts:
        for part in parts:
            yield part
            release_pages()

    arrays = join_parts(parts) if data.folder is None else _keep_arrays(data.folder, list(key), release()).arrays
    return {name: _tensor(array) for name, array in arrays.items()}


def training_set(model: Model, docs: Sequence[Document], lost: Lost) -> TrainingSet:
    """Prepare documents for a model; `lost` counts the annotation that the model cannot represent."""
    return _as_annotated(model, docs, _prepare(model, docs, lost, both_readings=False), lost)


def _as_annotated(model: Model, docs: Sequence[Document], prepared: _Prepared, lost: Lost) -> TrainingSet:
    arrays = prepared.arrays
    features = model.encoder.prepare(NumberedWords(prepared.words, arrays["row"], arrays["lengths"]))
    lost.count("word too long to be read to its end", features.truncated)
    sentences = TrainingSentences(docs, model.encoder, arrays["document"], arrays["windows"])
    targets = CorpusTargets(_tensor(arrays["labels"]), _tensor(arrays["known"]), offsets_of(features.lengths))
    return TrainingSet(model, sentences, features, targets, prepared.folder)


def _tensor(array: np.ndarray) -> Tensor:
    """An array as a tensor on the same memory. A mapped array is read-only, which torch does not support: it warns."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)


class _Prepared(NamedTuple):
    """The arrays of a training set, the distinct words, and the folder that they are kept in."""

    arrays: dict[str, np.ndarray]
    words: list[str]
    folder: Path | None


def _prepare(model: Model, docs: Sequence[Document], lost: Lost, both_readings: bool) -> _Prepared:
    """Prepare documents under one or both readings; on disk if the documents are."""
    numbers: dict[str, int] = {}
    cut_lost = Lost()
    parts = _cut_arrays(model, docs, cut_lost, both_readings, numbers)
    if isinstance(docs, StoredDocuments):
        identity = [_FORM, docs.key, _describe(model), both_readings]
        kept = _keep_arrays(docs.folder, identity, parts, lambda: {"words": list(numbers), "lost": cut_lost.counts})
        counts, prepared = kept.facts["lost"], _Prepared(kept.arrays, kept.facts["words"], kept.folder)
    else:
        arrays = join_parts(parts)
        counts, prepared = cut_lost.counts, _Prepared(arrays, list(numbers), None)
    for reason, times in counts.items():
        lost.count(reason, times)
    return prepared


def _keep_arrays(folder: Path, identity: list[Any], parts: Parts, facts: Callable[[], Any] = dict) -> ArrayFolder:
    """Write arrays once, in a folder named by their identity, and map them; of several processes, the first writes."""
    place = folder / f"arrays-{hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]}"

    def prepare_once() -> ArrayFolder:
        kept = open_arrays(place, identity)
        if kept is None:
            with lock_folder(place):
                write_arrays(place, identity, parts, facts)
            kept = open_arrays(place, identity)
            assert kept is not None
        return kept

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
    prepared = _prepare(model, docs, lost, both_readings=True)
    annotated, arrays = _as_annotated(model, docs, prepared, lost), prepared.arrays
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
    if isinstance(docs, StoredDocuments):
        return _assign_stored_folds(docs, folds)
    fold_of = {text: rank % folds for rank, text in enumerate(sorted({doc.text for doc in docs}))}
    return np.array([fold_of[doc.text] for doc in docs], dtype=np.int64)


def _assign_stored_folds(docs: StoredDocuments, folds: int) -> np.ndarray:
    """The same folds without all texts in memory: they are sorted on disk."""
    numbered = (Document(str(number), doc.text) for number, doc in enumerate(docs))
    fold_of = np.zeros(len(docs), dtype=np.int64)
    with TemporaryDirectory(dir=docs.folder) as folder:
        in_order = store_documents(numbered, Path(folder), None)
        for rank, (_, alike) in enumerate(groupby(in_order, attrgetter("text"))):
            fold_of[[int(doc.id) for doc in alike]] = rank % folds
    return fold_of


def character_positions(
    docs: Sequence[Document], data: TrainingSet, first: int = 0, sentences: slice = slice(None)
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For every word of a prepared corpus: the index of its document, and its start and end character there.

    Or for the words of some sentences only: those of `docs`, of which the first one is number `first` of the corpus.
    """
    document, lengths = data.sentences.document[sentences] - first, data.features.lengths[sentences]
    before = offsets_of(np.fromiter((len(words_of(doc)) for doc in docs), dtype=np.int64, count=len(docs)))
    edges = np.array([edge for doc in docs for edge in words_of(doc)], dtype=np.int64).reshape(-1, 2)
    words = run_positions(before[document] + data.sentences.edges[sentences, 0], lengths)
    return np.repeat(document, lengths), edges[words, 0], edges[words, 1]
