"""Precision, recall and F1 of spans by exact match, with the partial matches that help to explain them.

Where gold is incomplete, a predicted span that gold lacks is not necessarily wrong. Such scores are marked as not
final and give the range in which precision lies.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lacuner.corpus.intervals import IntervalSet
from lacuner.corpus.tags import Chunk, encode
from lacuner.corpus.words import flatten, to_words, words_of
from lacuner.data import Document, Lost, Span
from lacuner.evaluate.align import align


@dataclass(frozen=True)
class Count:
    """Numbers of correct, predicted and gold spans, with precision, recall and F1 (0 where the ratio is 0 / 0).

    >>> count = Count(correct=3, predicted=4, gold=6)
    >>> count.precision, count.recall, count.f1
    (0.75, 0.5, 0.6)
    """

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

    def __str__(self) -> str:
        scores = f"P {100 * self.precision:.1f} R {100 * self.recall:.1f} F1 {100 * self.f1:.1f}"
        return f"{scores} ({self.correct:,} correct of {self.predicted:,} predicted and {self.gold:,} gold)"

    def as_json(self) -> dict[str, float]:
        ratios = {"precision": self.precision, "recall": self.recall, "f1": self.f1}
        return {**ratios, "correct": self.correct, "predicted": self.predicted, "gold": self.gold}


@dataclass(frozen=True)
class Evaluation:
    """The result of `score`.

    >>> print(score([], []))
    P 0.0 R 0.0 F1 0.0 (0 correct of 0 predicted and 0 gold)
    """

    exact: Count
    """Exact match, same boundaries and same type; micro-averaged."""
    per_type: Mapping[str, Count]
    """Exact match by entity type."""
    boundary: Count
    """Boundary-only: same boundaries, any type."""
    type_only: Count
    """Type-only: same type and any overlap, matched one to one."""
    documents: int
    documents_correct: int
    """Documents whose predicted spans are exactly those of gold."""
    words: int
    words_correct: int
    """Words with the correct IOB2 tag."""
    incomplete: int
    """Documents with incomplete gold."""
    unjudged: int
    """Predicted spans that gold neither confirms nor contradicts, because it is incomplete or unsure there."""
    lost: Lost
    """Spans that do not fit gold's words or overlap others: they count as spans, but not in the token accuracy."""

    def __str__(self) -> str:
        types = (f"{label}: {count}" for label, count in self.per_type.items())
        return "\n".join([f"{self.exact}{'' if self.final else ', not final: gold is incomplete'}", *types])

    @property
    def final(self) -> bool:
        """Whether gold judges every predicted span."""
        return not self.incomplete and not self.unjudged

    @property
    def macro(self) -> tuple[float, float, float]:
        """Macro-averaged precision, recall and F1: means over the types."""
        rows = [(count.precision, count.recall, count.f1) for count in self.per_type.values()]
        precision, recall, f1 = map(sum, zip(*rows, strict=True)) if rows else (0, 0, 0)
        size = max(len(rows), 1)
        return precision / size, recall / size, f1 / size

    @property
    def precision_range(self) -> tuple[float, float]:
        """Lowest and highest possible precision: all unjudged spans wrong, or all correct."""
        high = (self.exact.correct + self.unjudged) / self.exact.predicted if self.exact.predicted else 0.0
        return self.exact.precision, high

    def as_json(self) -> dict[str, Any]:
        return {
            **self.exact.as_json(),
            "final": self.final,
            "gold_complete": self.incomplete == 0,
            "documents_incomplete": self.incomplete,
            "precision_range": list(self.precision_range),
            "unjudged": self.unjudged,
            "macro": dict(zip(("precision", "recall", "f1"), self.macro, strict=True)),
            "per_type": {label: count.as_json() for label, count in sorted(self.per_type.items())},
            "boundary": self.boundary.as_json(),
            "type_only": self.type_only.as_json(),
            "token_accuracy": self.words_correct / self.words if self.words else 0.0,
            "span_accuracy": self.exact.recall,
            "sentence_accuracy": self.documents_correct / self.documents if self.documents else 0.0,
            "documents": self.documents,
            "words": self.words,
            "lost": dict(self.lost),
        }


Key = tuple[int, int, str]


class Scorer:
    """Scores that accumulate document by document, in constant memory.

    >>> scorer = Scorer()
    >>> gold = Document("1", "Mara Teel left", spans=(Span(0, 9, "PERSON"),), complete=True)
    >>> scorer.add(gold, Document("1", "Mara Teel left", spans=(Span(0, 4, "PERSON"),)))
    >>> scorer.result().type_only.f1
    1.0
    """

    def __init__(self) -> None:
        self._correct, self._predicted, self._gold = Counter[str](), Counter[str](), Counter[str]()  # by type
        self._boundary, self._type_only, self._totals = Counter[str](), Counter[str](), Counter[str]()
        self._lost = Lost()

    def add(self, gold: Document, predicted: Document) -> None:
        """Add one document."""
        gold_keys, keys = ({span.key for span in doc.spans} for doc in (gold, predicted))
        self._correct.update(label for _, _, label in gold_keys & keys)
        self._predicted.update(label for _, _, label in keys)
        self._gold.update(label for _, _, label in gold_keys)
        gold_places, places = ({key[:2] for key in some_keys} for some_keys in (gold_keys, keys))
        self._boundary.update(correct=len(gold_places & places), predicted=len(places), gold=len(gold_places))
        self._type_only.update(correct=_count_overlaps(gold_keys, keys), predicted=len(keys), gold=len(gold_keys))
        words, words_correct = _count_correct_words(gold, predicted, self._lost)
        self._totals.update(documents=1, documents_correct=gold_keys == keys, words=words, words_correct=words_correct)
        self._totals.update(incomplete=not gold.complete)
        if not gold.complete or gold.unsure:
            self._totals.update(unjudged=_count_unjudged(gold, keys - gold_keys))

    def result(self) -> Evaluation:
        """The scores of all documents so far."""
        labels = sorted(self._gold | self._predicted)
        totals = ("documents", "documents_correct", "words", "words_correct", "incomplete", "unjudged")
        return Evaluation(
            exact=Count(self._correct.total(), self._predicted.total(), self._gold.total()),
            per_type={
                label: Count(self._correct[label], self._predicted[label], self._gold[label]) for label in labels
            },
            boundary=Count(**self._boundary),
            type_only=Count(**self._type_only),
            **{name: self._totals[name] for name in totals},
            lost=self._lost,
        )


def score(gold: Iterable[Document], predicted: Iterable[Document]) -> Evaluation:
    """Score predictions against gold; documents are aligned by `align`.

    >>> gold = [Document("1", "Mara Teel left", spans=(Span(0, 9, "PERSON"),), complete=True)]
    >>> score(gold, gold).exact
    Count(correct=1, predicted=1, gold=1)
    """
    scorer = Scorer()
    for gold_doc, doc in align(gold, predicted):
        scorer.add(gold_doc, doc)
    return scorer.result()


def exact_counts(gold: Iterable[Document], predicted: Iterable[Document]) -> Iterator[tuple[int, int, int]]:
    """Numbers of correct, predicted and gold spans of each document, by exact match."""
    for gold_doc, doc in align(gold, predicted):
        gold_keys, keys = ({span.key for span in some_doc.spans} for some_doc in (gold_doc, doc))
        yield len(gold_keys & keys), len(keys), len(gold_keys)


def count_exact(gold: Iterable[Document], predicted: Iterable[Document]) -> Count:
    """Exact matches only: several times faster than `score`."""
    return Count(*map(sum, zip(*exact_counts(gold, predicted), strict=True)))


def _count_overlaps(gold: set[Key], predicted: set[Key]) -> int:
    """Number of predicted spans that can be matched, one to one, with an overlapping gold span of their type."""
    count = 0
    gold_by_label, predicted_by_label = _group(gold), _group(predicted)
    for label, spans in predicted_by_label.items():
        free = gold_by_label.get(label, [])
        at = 0
        for start, end, _ in spans:
            while at < len(free) and free[at][1] <= start:  # it ends before this and all later predictions begin
                at += 1
            if at < len(free) and free[at][0] < end:
                count += 1
                at += 1
    return count


def _group(keys: set[Key]) -> dict[str, list[Key]]:
    """The spans of each label, in reading order."""
    groups: dict[str, list[Key]] = {}
    for key in sorted(keys):
        groups.setdefault(key[2], []).append(key)
    return groups


def _count_correct_words(gold: Document, predicted: Document, lost: Lost) -> tuple[int, int]:
    """Number of words, and of words with the correct tag."""
    size = len(words_of(gold))
    if not gold.spans and not predicted.spans:
        return size, size
    gold_tags, tags = (_tags(gold, doc.spans, size, lost) for doc in (gold, predicted))
    return size, sum(a == b for a, b in zip(gold_tags, tags, strict=True))


def _tags(doc: Document, spans: tuple[Span, ...], size: int, lost: Lost) -> list[str]:
    flat = flatten(doc, spans, lost)
    return encode([Chunk(first, last, span.label) for first, last, span in to_words(doc, flat, lost)], size)


def _count_unjudged(gold: Document, wrong: set[Key]) -> int:
    """Number of spans of which gold, which lacks them, leaves open if they are correct.

    It does where it is unsure, and if it is incomplete, where the span touches nothing that is annotated or ruled out.
    """
    unsure = IntervalSet(span[:2] for span in gold.unsure)
    known = IntervalSet(span[:2] for span in gold.spans)
    ruled_out = {span.key for span in gold.rejected}

    def is_unjudged(start: int, end: int, label: str) -> bool:
        if unsure.overlaps(start, end):
            return True
        if gold.complete or known.overlaps(start, end):
            return False
        return ruled_out.isdisjoint([(start, end, ""), (start, end, label)])

    return sum(is_unjudged(*key) for key in wrong)
