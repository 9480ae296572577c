"""Gold for weak documents: which entities are unlabeled."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from lacuner.corpus.words import to_words, words_of
from lacuner.data import Document, Lost, Span, labels_of
from lacuner.errors import ConfigError
from lacuner.evaluate.align import align
from lacuner.models.types import Annotation
from lacuner.techniques.label_issues import LabelIssue, context
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
        return context(LabelIssue("missing", self.document, self.span))

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
