"""Gold for weak documents, and training callbacks that compare what a model learns with it.

`MissamplingProbe` counts unlabeled entities among the sampled negatives. `SpanProbe` records the probability of some
unlabeled entities after each epoch.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lacuner.corpus.words import to_words, word_texts, words_of
from lacuner.data import Document, Lost, Span, labels_of
from lacuner.errors import ConfigError, CorpusError
from lacuner.evaluate.align import align
from lacuner.models.heads.span import SpanHead
from lacuner.models.inference import score_batches
from lacuner.models.model import Model
from lacuner.models.targets import CorpusTargets
from lacuner.models.types import Annotation, Features
from lacuner.models.windows import annotation_of, cut_sentences, restrict_to_window
from lacuner.sampling.span_negatives import span_entropy
from lacuner.techniques.label_issues import Disagreement, context
from lacuner.training.callbacks import TrainingCallback
from lacuner.training.dataset import TrainingSentences, TrainingSet
from lacuner.training.identity import sort_documents


def align_gold(weak: Sequence[Document], gold: Sequence[Document]) -> list[tuple[Document, Document]]:
    """Pair each weak document, as recipes see it and in their order, with a copy that has the spans of gold."""
    gold_spans: dict[int, tuple[Span, ...]] = {}
    weak_docs: list[Document] = []
    for gold_doc, weak_doc in align(gold, weak):
        words_of(weak_doc)
        weak_docs.append(replace(weak_doc, complete=bool(weak_doc.complete)))
        gold_spans[id(weak_docs[-1])] = gold_doc.spans
    return [
        (doc, replace(doc, spans=gold_spans[id(doc)], rejected=(), unsure=(), complete=False))
        for doc in sort_documents(weak_docs)
    ]


def gold_in_training_order(weak: Sequence[Document], gold: Sequence[Document]) -> list[Document]:
    """Return gold with the words of the weak documents, in the order in which recipes see them."""
    return [gold_doc for _, gold_doc in align_gold(weak, gold)]


class UnlabeledEntity(NamedTuple):
    """A gold entity without a weak label."""

    document: Document
    span: Span

    @property
    def text(self) -> str:
        return self.document.text[self.span.start : self.span.end]

    @property
    def context(self) -> str:
        return context(Disagreement("missing", self.document, self.span))

    def as_json(self) -> dict[str, Any]:
        start, end, label = self.span.key
        return {"document": self.document.id, "start": start, "end": end, "label": label, "text": self.text}


def find_unlabeled(weak: Sequence[Document], gold: Sequence[Document]) -> list[UnlabeledEntity]:
    """Return the gold entities without a weak label, if weak has their type and their boundaries fit the words."""
    labels = set(labels_of(weak))
    entities = []
    for weak_doc, gold_doc in align_gold(weak, gold):
        labeled = {span[:2] for span in weak_doc.spans}
        missing = [span for span in gold_doc.spans if span[:2] not in labeled and span.label in labels]
        entities += [UnlabeledEntity(gold_doc, span) for _, _, span in to_words(gold_doc, missing, Lost())]
    return entities


def select_entities(
    entities: Sequence[UnlabeledEntity], texts: Sequence[str] = (), limit: int = 200, seed: int = 1
) -> list[UnlabeledEntity]:
    """Return all entities with one of these texts, then a random sample of the others, up to `limit` in total."""
    for text in texts:
        if all(entity.text != text for entity in entities):
            raise ConfigError(f"there is no unlabeled entity {text!r} to track (--follow)")
    named = [entity for text in texts for entity in entities if entity.text == text]
    others = [entity for entity in entities if entity.text not in texts]
    count = min(max(limit - len(named), 0), len(others))
    return [*named, *random.Random(seed).sample(others, count)]


def merge_types(annotations: Iterable[Annotation], label: str) -> list[Annotation]:
    """Keep only the entities and give all of them one type: gold may have types that weak lacks."""
    return [
        Annotation(annotation.length, [(first, last, label) for first, last, _ in annotation.spans])
        for annotation in annotations
    ]


class MissamplingProbe:
    """Record per epoch the share of entities among the sampled negatives, and the model's uncertainty about these.

    `gold` comes from `gold_in_training_order`. `rows` has `stage`, `epoch`, `drawn` (number of negatives),
    `missampling` (share of entities in a sentence's negatives, as the mean over the sentences that have any; Eq. 2 of
    Li et al., 2022) and `uncertainty` (mean entropy of the negatives, in nats) of each epoch.
    """

    def __init__(self, gold: Sequence[Document]) -> None:
        self.rows: list[dict[str, Any]] = []
        self._gold = gold
        self._data: TrainingSet | None = None
        self._entities: CorpusTargets | None = None
        self._sums: Tensor | None = None

    def on_negatives_sampled(
        self, epoch: int, data: TrainingSet, indices: np.ndarray, sampled: Tensor, logits: Tensor
    ) -> None:
        if self._entities is None or self._data is not data:
            self._data, self._entities = data, entity_targets(data, self._gold)
        wrong = sampled & self._entities.collate(indices).known.to(sampled.device)
        counts, wrong_counts = sampled.flatten(1).sum(dim=1), wrong.flatten(1).sum(dim=1).double()
        rates = (wrong_counts / counts.clamp(min=1)).sum()  # a sentence without negatives adds 0
        uncertainty = span_entropy(logits.detach()[sampled]).double().sum()
        sums = torch.stack([counts.sum().double(), (counts > 0).sum().double(), rates, uncertainty]).cpu()
        self._sums = sums if self._sums is None else self._sums + sums

    def on_epoch_end(self, stage: str, epoch: int, model: Model) -> None:
        if self._sums is None:
            return
        count, sentences, rates, uncertainty = self._sums.tolist()
        self._sums = None
        means = {"missampling": rates / max(sentences, 1), "uncertainty": uncertainty / max(count, 1)}
        rounded = {name: round(value, 6) for name, value in means.items()}
        self.rows.append({"stage": stage, "epoch": epoch, "drawn": int(count), **rounded})


def entity_targets(data: TrainingSet, gold: Sequence[Document]) -> CorpusTargets:
    """Return targets of a training set in which `known` marks the spans that are gold entities."""
    sentences, head = data.sentences, data.model.head
    if not isinstance(head, SpanHead):
        raise ConfigError("only a span classifier samples spans as negatives: choose head.kind=span")
    _check_same_documents(sentences, gold)
    annotations = [annotation_of(doc, Lost()) for doc in gold]
    in_one_window = np.bincount(sentences.document, minlength=len(gold)) == 1
    windows = [
        annotations[number] if in_one_window[number] else restrict_to_window(annotations[number], window)
        for number, window in zip(sentences.document.tolist(), sentences.windows, strict=True)
    ]
    targets: CorpusTargets = head.targets(merge_types(windows, head.labels[0]), Lost())
    return targets


def _check_same_documents(sentences: TrainingSentences, gold: Sequence[Document]) -> None:
    gold_words = [word_texts(doc) for doc in gold]
    for number, words, window in zip(sentences.document.tolist(), sentences.words(), sentences.windows, strict=True):
        if number >= len(gold_words) or gold_words[number][window.start : window.end] != words:
            raise CorpusError("the gold documents are not those that the recipe is trained on")


class SpanProbe:
    """Record after each epoch the probability that each tracked entity is an entity of its type.

    `rows` has `stage`, `epoch` and `probabilities`, in the order of `entities`; None where the model cannot express
    the entity (unknown label or too wide a span).
    """

    def __init__(self, entities: Sequence[UnlabeledEntity]) -> None:
        self.entities = list(entities)
        self.rows: list[dict[str, Any]] = []
        self._model: Model | None = None

    def on_negatives_sampled(
        self, epoch: int, data: TrainingSet, indices: np.ndarray, sampled: Tensor, logits: Tensor
    ) -> None:
        pass

    def on_epoch_end(self, stage: str, epoch: int, model: Model) -> None:
        if self._model is not model:
            self._model, self._located = model, _locate(model, self.entities)
        features, positions = self._located
        probs: list[float | None] = [None] * len(self.entities)
        for indices, logits in score_batches(model, features, lambda scores: scores.logits):
            entities, first, width, label = positions[indices].T
            rows = np.arange(len(indices))
            values = logits[rows, first, width].float().softmax(dim=-1)[rows, label]
            for entity, value in zip(entities.tolist(), values.tolist(), strict=True):
                probs[entity] = round(value, 4)
        self.rows.append({"stage": stage, "epoch": epoch, "probabilities": probs})


def _locate(model: Model, entities: Sequence[UnlabeledEntity]) -> tuple[Features, np.ndarray]:
    """The sentence of each entity that the model can express; its number, first word, width - 1 and class, `[n, 4]`."""
    head = model.head
    if not isinstance(head, SpanHead):
        raise ConfigError("only a span classifier gives every span a probability: choose head.kind=span")
    # one document per entity, with this one span, so that each sentence belongs to a known entity
    sentences = cut_sentences([replace(doc, spans=(span,)) for doc, span in entities], model.encoder, Lost())
    class_of = {label: number for number, label in enumerate(head.labels, 1)}
    words, positions = [], []
    for entity, sentence, annotation in zip(sentences.document, sentences.words, sentences.annotations, strict=True):
        for first, last, label in annotation.spans:
            if label in class_of and last - first <= head.widths:
                words.append(sentence)
                positions.append((entity, first, last - first - 1, class_of[label]))
    return model.encoder.prepare(words), np.array(positions, dtype=np.int64).reshape(-1, 4)


class CallbackList:
    """Several training callbacks as one."""

    def __init__(self, *callbacks: TrainingCallback) -> None:
        self.callbacks = callbacks

    def on_negatives_sampled(
        self, epoch: int, data: TrainingSet, indices: np.ndarray, sampled: Tensor, logits: Tensor
    ) -> None:
        for callback in self.callbacks:
            callback.on_negatives_sampled(epoch, data, indices, sampled, logits)

    def on_epoch_end(self, stage: str, epoch: int, model: Model) -> None:
        for callback in self.callbacks:
            callback.on_epoch_end(stage, epoch, model)
