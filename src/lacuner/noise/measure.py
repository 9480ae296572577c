"""Label noise of weak labels, measured against gold: missing, wrong and spurious labels."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from lacuner.corpus.intervals import SpanIndex
from lacuner.corpus.words import words_of
from lacuner.data import Document, Span
from lacuner.evaluate.align import align
from lacuner.evaluate.scores import Evaluation, Key, Scorer

KINDS = ("correct", "missing", "wrong type", "wrong boundary", "wrong type and boundary", "spurious")
NO_ENTITY = "-"
"""Stands in the confusion matrix for a span that one side lacks."""
MAX_CANDIDATES = 20
"""Weak spans of about the same size among which the match of a gold span is looked for: only labels that are nested or
cross each other have more, and all pairs of these would fill the memory."""


@dataclass(frozen=True)
class Density:
    """Number of entities in a sentence compared with the square root of its length.

    Sampling a few negatives is safe as long as entities are sparse: about sqrt(n) of them in n words at most.
    """

    sentences: int
    sparse: int
    """Sentences with at most sqrt(n) entities."""
    by_length: dict[int, tuple[int, float]]
    """Number of sentences and mean number of entities, by length in words (rounded down to a multiple of 5)."""

    @property
    def share(self) -> float:
        """Share of sentences with at most sqrt(n) entities; 1 without sentences."""
        return self.sparse / self.sentences if self.sentences else 1.0


@dataclass(frozen=True)
class Measurement:
    """The result of `measure`.

    >>> measure([], []).density.share
    1.0
    """

    scores: Evaluation
    kinds: dict[str, Counter[str]]
    """Number of spans of each kind (`KINDS`) by gold type; spurious spans count under the weak type."""
    confusion: Counter[tuple[str, str]]
    """Number of (gold type, weak type) pairs of matched spans; "-" where one side has no span."""
    density: Density

    @property
    def total(self) -> Counter[str]:
        """Number of spans of each kind, over all types."""
        return sum(self.kinds.values(), Counter())

    def as_json(self) -> dict[str, Any]:
        return {
            **self.scores.as_json(),
            "kinds": {kind: self.total[kind] for kind in KINDS},
            "kinds_per_type": {label: {kind: counts[kind] for kind in KINDS} for label, counts in self.kinds.items()},
            "confusion": [
                {"gold": gold, "weak": weak, "spans": count} for (gold, weak), count in sorted(self.confusion.items())
            ],
            "density": {
                "sentences": self.density.sentences,
                "at_most_sqrt": self.density.share,
                "by_length": [
                    {"words": length, "sentences": count, "entities": mean, "sqrt": math.sqrt(length + 2)}
                    for length, (count, mean) in self.density.by_length.items()
                ],
            },
        }


class NoiseMeter:
    """A measurement that accumulates document by document.

    >>> meter = NoiseMeter()
    >>> gold = Document("1", "Mara Teel left", spans=(Span(0, 9, "PERSON"),), complete=True)
    >>> meter.add(Document("1", "Mara Teel left", spans=(Span(0, 4, "PERSON"),)), gold)
    >>> meter.result().kinds
    {'PERSON': Counter({'wrong boundary': 1})}
    """

    def __init__(self) -> None:
        self._scorer = Scorer()
        self._kinds: dict[str, Counter[str]] = {}
        self._confusion: Counter[tuple[str, str]] = Counter()
        self._sentences: Counter[int] = Counter()
        self._entities: Counter[int] = Counter()
        self._sparse = 0

    def add(self, weak: Document, gold: Document) -> None:
        """Add one document."""
        self._scorer.add(gold, weak)
        for kind, gold_label, weak_label in _matches(gold.spans, weak.spans):
            self._confusion[gold_label, weak_label] += 1
            label = weak_label if gold_label == NO_ENTITY else gold_label
            self._kinds.setdefault(label, Counter())[kind] += 1
        size = len(words_of(gold))
        self._sparse += len(gold.spans) <= math.sqrt(size)
        self._sentences[size // 5 * 5] += 1
        self._entities[size // 5 * 5] += len(gold.spans)

    def result(self) -> Measurement:
        """The measurement of all documents so far."""
        sizes = sorted(self._sentences)
        by_length = {size: (self._sentences[size], self._entities[size] / self._sentences[size]) for size in sizes}
        return Measurement(
            scores=self._scorer.result(),
            kinds=dict(sorted(self._kinds.items())),
            confusion=self._confusion,
            density=Density(self._sentences.total(), self._sparse, by_length),
        )


def measure(weak: Iterable[Document], gold: Iterable[Document]) -> Measurement:
    """Compare weak labels with gold; documents are aligned by `align`.

    >>> gold = [Document("1", "Mara Teel left Halden", spans=(Span(0, 9, "PERSON"), Span(15, 21, "PLACE")))]
    >>> weak = [Document("1", "Mara Teel left Halden", spans=(Span(15, 21, "PERSON"),))]
    >>> sorted(measure(weak, gold).total.items())
    [('missing', 1), ('wrong type', 1)]
    """
    meter = NoiseMeter()
    for gold_doc, weak_doc in align(gold, weak):
        meter.add(weak_doc, gold_doc)
    return meter.result()


def _matches(gold_spans: Iterable[Span], weak_spans: Iterable[Span]) -> Iterator[tuple[str, str, str]]:
    """Kind, gold label and weak label of each gold and each weak span.

    Spans are matched one to one: equal ones first, then those at the same place, then by type and overlap.
    """
    gold, weak = {span.key for span in gold_spans}, {span.key for span in weak_spans}
    for _, _, label in gold & weak:
        yield "correct", label, label
    free_gold, free_weak = gold - weak, weak - gold
    for pairs in (_pairs_at_same_place, _overlapping_pairs):
        for kind, a, b in pairs(sorted(free_gold), sorted(free_weak)):
            if a in free_gold and b in free_weak:
                free_gold.remove(a)
                free_weak.remove(b)
                yield kind, a[2], b[2]
    for _, _, label in sorted(free_gold):
        yield "missing", label, NO_ENTITY
    for _, _, label in sorted(free_weak):
        yield "spurious", NO_ENTITY, label


def _pairs_at_same_place(gold: list[Key], weak: list[Key]) -> Iterator[tuple[str, Key, Key]]:
    """The n-th gold span of each place with its n-th weak span, of another type."""
    waiting: defaultdict[tuple[int, int], list[Key]] = defaultdict(list)
    for b in reversed(weak):
        waiting[b[:2]].append(b)
    for a in gold:
        if waiting[a[:2]]:
            yield "wrong type", a, waiting[a[:2]].pop()


def _overlapping_pairs(gold: list[Key], weak: list[Key]) -> list[tuple[str, Key, Key]]:
    """Pairs of overlapping spans at different places, in the order in which they are matched."""
    candidates, index = [], SpanIndex(weak)
    for a in gold:
        for b in index.overlapping(a[0], a[1], MAX_CANDIDATES):
            same_type, overlap = a[2] == b[2], min(a[1], b[1]) - max(a[0], b[0])
            if a[:2] != b[:2]:
                candidates.append((same_type, overlap, a, b))
    candidates.sort(key=lambda candidate: candidate[:2], reverse=True)
    kinds = {True: "wrong boundary", False: "wrong type and boundary"}
    return [(kinds[same_type], a, b) for same_type, _, a, b in candidates]
