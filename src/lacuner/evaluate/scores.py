"""Precision, recall and F1 of spans, exact in place and type, and what else helps to understand them.

Against gold that is not complete, a span that gold lacks is not therefore wrong: such scores say so, and give the
range in which precision lies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lacuner.corpus.tags import Chunk, encode
from lacuner.corpus.words import flatten, to_words, words_of
from lacuner.data import Document, Lost, Span
from lacuner.evaluate.align import align


@dataclass(frozen=True)
class Count:
    """How many are right, how many were predicted, how many there are; a ratio of nothing is 0."""

    correct: int = 0
    predicted: int = 0
    gold: int = 0

    @property
    def precision(self) -> float:
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        return self.correct / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        return 2 * self.correct / (self.predicted + self.gold) if self.correct else 0.0

    def as_json(self) -> dict[str, float]:
        return {
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
            "correct": self.correct,
            "predicted": self.predicted,
            "gold": self.gold,
        }


@dataclass(frozen=True)
class Evaluation:
    """What `score` found."""

    exact: Count
    """Same place, same type; micro-averaged."""
    per_type: Mapping[str, Count]
    boundary: Count
    """Same place, whatever type."""
    type_only: Count
    """Same type, any overlap; each span counts for one other at most."""
    documents: int
    documents_right: int
    """Documents whose spans are all right and all there."""
    words: int
    words_right: int
    """Words whose IOB2 tag is right."""
    incomplete: int
    """Documents whose gold is not complete."""
    unjudged: int
    """Predicted spans that gold neither confirms nor contradicts: it is incomplete, or unsure, there."""
    lost: Lost
    """Spans that do not fit gold's words, or overlap others: they count as spans, but not in the accuracy of words."""

    @property
    def final(self) -> bool:
        """Gold has judged every span."""
        return not self.incomplete and not self.unjudged

    @property
    def macro(self) -> tuple[float, float, float]:
        """Mean precision, recall and F1 over the types."""
        counts = list(self.per_type.values())
        size = max(len(counts), 1)
        return (
            sum(count.precision for count in counts) / size,
            sum(count.recall for count in counts) / size,
            sum(count.f1 for count in counts) / size,
        )

    @property
    def precision_range(self) -> tuple[float, float]:
        """Where precision lies if gold cannot judge every span: all unjudged ones wrong, or all right."""
        high = (self.exact.correct + self.unjudged) / self.exact.predicted if self.exact.predicted else 0.0
        return self.exact.precision, high

    def as_json(self) -> dict[str, Any]:
        precision, recall, f1 = self.macro
        return {
            **self.exact.as_json(),
            "final": self.final,
            "gold_complete": self.incomplete == 0,
            "documents_incomplete": self.incomplete,
            "precision_range": list(self.precision_range),
            "unjudged": self.unjudged,
            "macro": {"precision": precision, "recall": recall, "f1": f1},
            "per_type": {label: count.as_json() for label, count in sorted(self.per_type.items())},
            "boundary": self.boundary.as_json(),
            "type_only": self.type_only.as_json(),
            "token_accuracy": self.words_right / self.words if self.words else 0.0,
            "span_accuracy": self.exact.recall,
            "sentence_accuracy": self.documents_right / self.documents if self.documents else 0.0,
            "documents": self.documents,
            "words": self.words,
            "lost": dict(self.lost),
        }


Place = tuple[int, int, str]


class Scoring:
    """A score that grows document by document, so that nothing needs to be held."""

    def __init__(self) -> None:
        self._exact, self._boundary, self._loose = Counter[str](), Counter[str](), Counter[str]()
        self._correct, self._guessed, self._there = Counter[str](), Counter[str](), Counter[str]()
        self._total = Counter[str]()
        self._lost = Lost()

    def add(self, gold: Document, predicted: Document) -> None:
        """Count one document."""
        real, found = _places(gold.spans), _places(predicted.spans)
        hits = real & found
        self._correct.update(label for _, _, label in hits)
        self._there.update(label for _, _, label in real)
        self._guessed.update(label for _, _, label in found)
        self._exact.update(correct=len(hits), predicted=len(found), gold=len(real))
        edges, found_edges = {place[:2] for place in real}, {place[:2] for place in found}
        self._boundary.update(correct=len(edges & found_edges), predicted=len(found_edges), gold=len(edges))
        self._loose.update(correct=_overlapping(real, found), predicted=len(found), gold=len(real))
        words, words_right = _words_right(gold, predicted, self._lost)
        self._total.update(documents=1, documents_right=real == found, words=words, words_right=words_right)
        self._total.update(incomplete=not gold.complete)
        if not gold.complete or gold.unsure:
            self._total.update(unjudged=sum(_unjudged(gold, real, place) for place in found - real))

    def result(self) -> Evaluation:
        """What was found so far."""
        labels = sorted(self._there | self._guessed)
        return Evaluation(
            exact=Count(**self._exact),
            per_type={each: Count(self._correct[each], self._guessed[each], self._there[each]) for each in labels},
            boundary=Count(**self._boundary),
            type_only=Count(**self._loose),
            documents=self._total["documents"],
            documents_right=self._total["documents_right"],
            words=self._total["words"],
            words_right=self._total["words_right"],
            incomplete=self._total["incomplete"],
            unjudged=self._total["unjudged"],
            lost=self._lost,
        )


def score(gold: Iterable[Document], predicted: Iterable[Document]) -> Evaluation:
    """Score predictions against gold; the two are paired as `align` says."""
    scoring = Scoring()
    for mine, yours in align(gold, predicted):
        scoring.add(mine, yours)
    return scoring.result()


def count_exact(gold: Iterable[Document], predicted: Iterable[Document]) -> Count:
    """The exact score alone, which is most of what a training wants to know, in a fraction of the time."""
    total = Counter[str]()
    for mine, yours in align(gold, predicted):
        real, found = _places(mine.spans), _places(yours.spans)
        total.update(correct=len(real & found), predicted=len(found), gold=len(real))
    return Count(**total)


def _places(spans: Iterable[Span]) -> set[Place]:
    return {(span.start, span.end, span.label) for span in spans}


def _overlapping(real: set[Place], found: set[Place]) -> int:
    """How many predicted spans can be given a gold span of their type that they touch, none of them twice."""
    count = 0
    for label in {label for _, _, label in found}:
        free = sorted(gold for gold in real if gold[2] == label)
        at = 0
        for start, end, _ in sorted(place for place in found if place[2] == label):
            while (
                at < len(free) and free[at][1] <= start
            ):  # what ends before this begins can match nothing that follows
                at += 1
            if at < len(free) and free[at][0] < end:
                count += 1
                at += 1
    return count


def _words_right(gold: Document, predicted: Document, lost: Lost) -> tuple[int, int]:
    size = len(words_of(gold))
    if not gold.spans and not predicted.spans:
        return size, size
    mine, yours = (_tags(gold, doc.spans, size, lost) for doc in (gold, predicted))
    return size, sum(a == b for a, b in zip(mine, yours, strict=True))


def _tags(doc: Document, spans: tuple[Span, ...], size: int, lost: Lost) -> list[str]:
    flat = flatten(doc, spans, lost)
    return encode([Chunk(first, last, span.label) for first, last, span in to_words(doc, flat, lost)], size)


def _unjudged(gold: Document, real: set[Place], place: Place) -> bool:
    """Gold says nothing of a span where it is unsure, and if it is incomplete, of one that touches nothing it knows."""
    start, end, label = place
    if any(span.start < end and start < span.end for span in gold.unsure):
        return True
    if gold.complete:
        return False
    if any(span.start == start and span.end == end and span.label in ("", label) for span in gold.rejected):
        return False
    return not any(first < end and start < last for first, last, _ in real)
