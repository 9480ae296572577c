"""Watches: they see a training while it runs, and know what it must not know.

`MissamplingProbe` counts entities among the negatives that a recipe draws. `SpanProbe` follows some unlabelled entities
and writes down, after each epoch, how much the model takes them for what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lacuner.audit.aligned_gold import Followed, anonymous
from lacuner.corpus.words import words_of
from lacuner.data import Document, Lost
from lacuner.errors import ConfigError, CorpusError
from lacuner.models.heads.span import SpanHead
from lacuner.models.inference import score_batches
from lacuner.models.model import Model
from lacuner.models.targets import CorpusTargets
from lacuner.models.types import Features
from lacuner.models.windows import Sentences, annotation_of, cut_sentences, restrict_to_window
from lacuner.sampling.span_negatives import span_entropy
from lacuner.training.callbacks import TrainingCallback
from lacuner.training.dataset import TrainingSet


class MissamplingProbe:
    """For each epoch: the share of entities among the drawn negatives, and how unsure the model was of these.

    `truth` is what `lacuner.audit.aligned_gold.truth` makes. `rows` has `stage`, `epoch`, `drawn`, `missampling` and
    `uncertainty` (mean entropy, in nats) of each.
    """

    def __init__(self, truth: Sequence[Document]) -> None:
        self.rows: list[dict[str, Any]] = []
        self._docs = truth
        self._data: TrainingSet | None = None
        self._entities: CorpusTargets | None = None
        self._sums: Tensor | None = None

    def on_negatives_sampled(
        self, epoch: int, data: TrainingSet, indices: np.ndarray, drawn: Tensor, logits: Tensor
    ) -> None:
        if self._entities is None or self._data is not data:
            self._data, self._entities = data, entities(data, self._docs)
        wrong = drawn & self._entities.collate(indices).known.to(drawn.device)
        found = torch.stack(
            [drawn.sum().double(), wrong.sum().double(), span_entropy(logits.detach()[drawn]).sum().double()]
        ).cpu()
        self._sums = found if self._sums is None else self._sums + found

    def on_epoch_end(self, stage: str, epoch: int, model: Model) -> None:
        if self._sums is None:
            return
        drawn, wrong, uncertainty = self._sums.tolist()
        self._sums = None
        shares = {"missampling": wrong / max(drawn, 1), "uncertainty": uncertainty / max(drawn, 1)}
        rounded = {name: round(value, 6) for name, value in shares.items()}
        self.rows.append({"stage": stage, "epoch": epoch, "drawn": int(drawn), **rounded})


def entities(data: TrainingSet, docs: Sequence[Document]) -> CorpusTargets:
    """Which spans of the sentences of a training are entities of these documents: `known` says so."""
    sentences, head = data.sentences, data.model.head
    if not isinstance(head, SpanHead):
        raise ConfigError("only a span model draws spans: choose head.kind=span")
    _check_same(sentences, docs)
    said = [annotation_of(doc, Lost()) for doc in docs]
    whole = np.bincount(sentences.document, minlength=len(docs)) == 1
    places = zip(sentences.document.tolist(), sentences.windows, strict=True)
    mine = [said[number] if whole[number] else restrict_to_window(said[number], window) for number, window in places]
    found: CorpusTargets = head.targets(anonymous(mine, head.labels[0]), Lost())
    return found


def _check_same(sentences: Sentences, docs: Sequence[Document]) -> None:
    first = [[doc.text[start:end] for start, end in words_of(doc)] for doc in docs]
    for number, words, window in zip(sentences.document.tolist(), sentences.words, sentences.windows, strict=True):
        if number >= len(first) or first[number][window.start : window.end] != words:
            raise CorpusError("the gold documents of this watch are not those that the recipe learns from")


@dataclass(frozen=True)
class _Ready:
    """Followed entities as a model sees them: which sentence, word, width and class each is."""

    model: Model
    features: Features
    places: np.ndarray
    which: np.ndarray


class SpanProbe:
    """After each epoch the probability, for each followed entity, that it is an entity of its type.

    `rows` has `stage`, `epoch` and `probabilities`, in the order of `followed`; None for what the model cannot express.
    """

    def __init__(self, followed: Sequence[Followed]) -> None:
        self.followed = list(followed)
        self.rows: list[dict[str, Any]] = []
        self._ready: _Ready | None = None

    def on_negatives_sampled(
        self, epoch: int, data: TrainingSet, indices: np.ndarray, drawn: Tensor, logits: Tensor
    ) -> None:
        pass

    def on_epoch_end(self, stage: str, epoch: int, model: Model) -> None:
        if self._ready is None or self._ready.model is not model:
            self._ready = _prepare(model, self.followed)
        found = _probabilities(self._ready, len(self.followed))
        values = [None if np.isnan(value) else round(float(value), 4) for value in found]
        self.rows.append({"stage": stage, "epoch": epoch, "probabilities": values})


def _prepare(model: Model, followed: Sequence[Followed]) -> _Ready:
    head = model.head
    if not isinstance(head, SpanHead):
        raise ConfigError("only a span model gives every span a probability: choose head.kind=span")
    # a document each, with one span, so that it is clear which entity a sentence is there for
    sentences = cut_sentences([replace(doc, spans=(span,)) for doc, span in followed], model.encoder, Lost())
    number = {label: i for i, label in enumerate(head.labels, 1)}
    rows = [
        (sentence, first, last - first - 1, number[label], sentences.document[sentence])
        for sentence, annotation in enumerate(sentences.annotations)
        for first, last, label in annotation.spans
        if label in number and last - first <= head.widths
    ]
    table = np.array(rows, dtype=np.int64).reshape(-1, 5)
    return _Ready(model, model.encoder.prepare(sentences.words), table[:, :4], table[:, 4])


def _probabilities(ready: _Ready, count: int) -> np.ndarray:
    model, features, places = ready.model, ready.features, ready.places
    found = np.full(count, np.nan)
    for indices, logits in score_batches(model, features, lambda scores: scores.logits):
        row = np.full(len(features), -1)
        row[indices] = np.arange(len(indices))
        mine = row[places[:, 0]] >= 0
        at = torch.from_numpy(places[mine]).to(logits.device)
        chosen = logits[torch.from_numpy(row[places[mine, 0]]).to(logits.device), at[:, 1], at[:, 2]]
        values = chosen.float().softmax(dim=-1).gather(1, at[:, 3:]).squeeze(1)
        found[ready.which[mine]] = values.cpu().numpy()
    return found


class CallbackList:
    """Several watches as one."""

    def __init__(self, *callbacks: TrainingCallback) -> None:
        self.callbacks = callbacks

    def on_negatives_sampled(
        self, epoch: int, data: TrainingSet, indices: np.ndarray, drawn: Tensor, logits: Tensor
    ) -> None:
        for callback in self.callbacks:
            callback.on_negatives_sampled(epoch, data, indices, drawn, logits)

    def on_epoch_end(self, stage: str, epoch: int, model: Model) -> None:
        for callback in self.callbacks:
            callback.on_epoch_end(stage, epoch, model)
