"""Weak labels against gold: how many are missing, wrong, or invented, and of which kind."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any

from lacuner.corpus.words import words_of
from lacuner.data import Document, Span
from lacuner.evaluate.align import align
from lacuner.evaluate.scores import Evaluation, Scoring

KINDS = ("correct", "missing", "wrong type", "wrong boundary", "wrong type and boundary", "spurious")
NOTHING = "-"


@dataclass(frozen=True)
class Density:
    """Entities in a sentence against the square root of its length.

    Sampling a few negatives is safe as long as entities are sparse: about sqrt(n) of them in n words at most.
    """

    sentences: int
    sparse: int
    """Sentences with at most sqrt(n) entities."""
    by_length: dict[int, tuple[int, float]]
    """For each length in words (rounded down to a multiple of 5): sentences, mean number of entities."""

    @property
    def share(self) -> float:
        return self.sparse / self.sentences if self.sentences else 1.0


@dataclass(frozen=True)
class Measurement:
    """What `measure` found."""

    scores: Evaluation
    kinds: dict[str, Counter[str]]
    """For each type, how many of its spans are of each of KINDS; spurious spans count under the weak type."""
    confusion: Counter[tuple[str, str]]
    """(gold type, weak type) of spans at the same place or overlapping; "-" where one side has nothing."""
    density: Density

    @property
    def total(self) -> Counter[str]:
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


class Measuring:
    """A measurement that grows document by document."""

    def __init__(self) -> None:
        self._scoring = Scoring()
        self._kinds: dict[str, Counter[str]] = {}
        self._confusion: Counter[tuple[str, str]] = Counter()
        self._sentences: Counter[int] = Counter()
        self._entities: Counter[int] = Counter()
        self._sparse = 0

    def add(self, weak: Document, gold: Document) -> None:
        """Compare one document."""
        self._scoring.add(gold, weak)
        for kind, real, found in _matches(gold.spans, weak.spans):
            left, right = real.label if real else NOTHING, found.label if found else NOTHING
            self._confusion[left, right] += 1
            self._kinds.setdefault(left if real else right, Counter())[kind] += 1
        size = len(words_of(gold))
        self._sparse += len(gold.spans) <= math.sqrt(size)
        self._sentences[size // 5 * 5] += 1
        self._entities[size // 5 * 5] += len(gold.spans)

    def result(self) -> Measurement:
        """What was found so far."""
        sizes = sorted(self._sentences)
        by_length = {size: (self._sentences[size], self._entities[size] / self._sentences[size]) for size in sizes}
        return Measurement(
            scores=self._scoring.result(),
            kinds=dict(sorted(self._kinds.items())),
            confusion=self._confusion,
            density=Density(self._sentences.total(), self._sparse, by_length),
        )


def measure(weak: Iterable[Document], gold: Iterable[Document]) -> Measurement:
    """Compare weak labels with gold, document by document, paired as `align` says."""
    measuring = Measuring()
    for mine, yours in align(gold, weak):
        measuring.add(yours, mine)
    return measuring.result()


def _matches(gold: Iterable[Span], weak: Iterable[Span]) -> Iterator[tuple[str, Span | None, Span | None]]:
    """Each gold and each weak span once: matched where they are equal, at the same place, or overlap most."""
    real, found = sorted({span[:3] for span in gold}), sorted({span[:3] for span in weak})
    candidates = []
    widest = max((end - start for start, end, _ in found), default=0)
    for a in real:
        at = bisect_left(found, a[0] - widest, key=lambda place: place[0])  # what begins earlier ends too early
        for b in takewhile(lambda b: b[0] < a[1], islice(found, at, None)):  # noqa: B023 (used at once)
            common = min(a[1], b[1]) - max(a[0], b[0])
            if common > 0:
                same_place, same_type = a[:2] == b[:2], a[2] == b[2]
                candidates.append(((same_place and same_type, same_place, same_type, common), a, b))
    candidates.sort(key=lambda item: item[0], reverse=True)
    free_real, free_found = set(real), set(found)
    for (_, same_place, same_type, _), a, b in candidates:
        if a in free_real and b in free_found:
            free_real.remove(a)
            free_found.remove(b)
            wrong = [name for name, same in (("type", same_type), ("boundary", same_place)) if not same]
            yield f"wrong {' and '.join(wrong)}" if wrong else "correct", Span(*a), Span(*b)
    for a in sorted(free_real):
        yield "missing", Span(*a), None
    for b in sorted(free_found):
        yield "spurious", None, Span(*b)
