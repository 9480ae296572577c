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
from lacuner.evaluate.pairing import pair
from lacuner.types import Document, Lost, Span


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
    """Predicted spans that incomplete gold neither confirms nor contradicts."""
    lost: Lost
    """Spans that do not fit gold's words, or overlap others: they count as spans, but not in the accuracy of words."""

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
        """Where precision lies if gold is incomplete: all unjudged spans wrong, or all right."""
        high = (self.exact.correct + self.unjudged) / self.exact.predicted if self.exact.predicted else 0.0
        return self.exact.precision, high

    def as_json(self) -> dict[str, Any]:
        precision, recall, f1 = self.macro
        return {
            **self.exact.as_json(),
            "gold_complete": self.incomplete == 0,
            "documents_incomplete": self.incomplete,
            "precision_range": list(self.precision_range),
            "unjudged": self.unjudged,
            "macro": {"precision": precision, "recall": recall, "f1": f1},
            "per_type": {label: count.as_json() for label, count in sorted(self.per_type.items())},
            "boundary": self.boundary.as_json(),
            "type_only": self.type_only.as_json(),
            "token_accuracy": self.words_right / self.words if self.words else 0.0,
            "sentence_accuracy": self.documents_right / self.documents if self.documents else 0.0,
            "documents": self.documents,
            "words": self.words,
            "lost": dict(self.lost),
        }


Place = tuple[int, int, str]


def score(gold: Iterable[Document], predicted: Iterable[Document]) -> Evaluation:
    """Score predictions against gold; the two are paired as `pair` says."""
    exact, boundary, loose = Counter[str](), Counter[str](), Counter[str]()
    correct, guessed, there = Counter[str](), Counter[str](), Counter[str]()
    total = Counter[str]()
    lost = Lost()
    for mine, yours in pair(gold, predicted):
        real, found = _places(mine.spans), _places(yours.spans)
        hits = real & found
        correct.update(label for _, _, label in hits)
        there.update(label for _, _, label in real)
        guessed.update(label for _, _, label in found)
        exact.update(correct=len(hits), predicted=len(found), gold=len(real))
        edges, found_edges = {place[:2] for place in real}, {place[:2] for place in found}
        boundary.update(correct=len(edges & found_edges), predicted=len(found_edges), gold=len(edges))
        loose.update(correct=_overlapping(real, found), predicted=len(found), gold=len(real))
        words, words_right = _words_right(mine, yours, lost)
        total.update(documents=1, documents_right=real == found, words=words, words_right=words_right)
        if not mine.complete:
            total.update(incomplete=1, unjudged=sum(_unjudged(mine, real, place) for place in found - real))
    return Evaluation(
        exact=Count(**exact),
        per_type={label: Count(correct[label], guessed[label], there[label]) for label in sorted(there | guessed)},
        boundary=Count(**boundary),
        type_only=Count(**loose),
        documents=total["documents"],
        documents_right=total["documents_right"],
        words=total["words"],
        words_right=total["words_right"],
        incomplete=total["incomplete"],
        unjudged=total["unjudged"],
        lost=lost,
    )


def _places(spans: Iterable[Span]) -> set[Place]:
    return {(span.start, span.end, span.label) for span in spans}


def _overlapping(real: set[Place], found: set[Place]) -> int:
    """How many predicted spans can be given a gold span of their type that they touch, none of them twice."""
    free = sorted(real)
    count = 0
    for start, end, label in sorted(found):
        match = next((gold for gold in free if gold[2] == label and gold[0] < end and start < gold[1]), None)
        if match:
            free.remove(match)
            count += 1
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
    """Incomplete gold says nothing of a span that touches nothing it knows."""
    start, end, label = place
    if any(span.start == start and span.end == end and span.label in ("", label) for span in gold.rejected):
        return False
    return not any(first < end and start < last for first, last, _ in real)
