"""Sets of intervals and spans with bisection: documents with thousands of spans stay fast."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from itertools import accumulate
from operator import itemgetter
from typing import Any, Generic, TypeVar

T = TypeVar("T", bound=tuple[Any, ...])


class IntervalSet:
    """A fixed set of half-open intervals, which may overlap.

    >>> intervals = IntervalSet([(0, 4), (2, 9)])
    >>> intervals.overlaps(8, 12), intervals.covers(3, 9), intervals.covers(0, 9)
    (True, True, False)
    """

    def __init__(self, intervals: Iterable[tuple[int, int]]) -> None:
        ordered = sorted(intervals)
        self._starts = [start for start, _ in ordered]
        self._furthest_ends = list(accumulate((end for _, end in ordered), max))

    def overlaps(self, start: int, end: int) -> bool:
        """Whether an interval of the set shares a character with this one."""
        before = bisect_left(self._starts, end)
        return before > 0 and self._furthest_ends[before - 1] > start

    def covers(self, start: int, end: int) -> bool:
        """Whether an interval of the set contains this one."""
        before = bisect_right(self._starts, start)
        return before > 0 and self._furthest_ends[before - 1] >= end


class SpanIndex(Generic[T]):
    """Spans, or other tuples that begin with start, end and label, sorted: a query looks at its surroundings only.

    >>> index = SpanIndex([(5, 9, "PER"), (0, 4, "PER"), (3, 6, "LOC")])
    >>> index.overlapping(4, 6)
    [(3, 6, 'LOC'), (5, 9, 'PER')]
    >>> index.remove((3, 6, "LOC"))
    >>> index.overlapping(4, 6)
    [(5, 9, 'PER')]
    """

    def __init__(self, spans: Iterable[T]) -> None:
        self.spans = sorted(spans, key=lambda span: span[:3])
        """In order of start, end and label."""
        self._longest = max((span[1] - span[0] for span in self.spans), default=0)

    def overlapping(self, start: int, end: int) -> list[T]:
        """The spans that share a character with this interval, in order."""
        first = bisect_right(self.spans, start - self._longest, key=itemgetter(0))
        last = bisect_left(self.spans, end, key=itemgetter(0))
        return [span for span in self.spans[first:last] if span[1] > start]

    def add(self, span: T) -> None:
        insort(self.spans, span, key=lambda span: span[:3])
        self._longest = max(self._longest, span[1] - span[0])

    def remove(self, span: T) -> None:
        del self.spans[self.spans.index(span, bisect_left(self.spans, span[0], key=itemgetter(0)))]


class DisjointIntervals:
    """A growing set of half-open intervals that never overlap."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def first_overlap(self, start: int, end: int) -> tuple[int, int] | None:
        """The first interval of the set that shares a character with this one."""
        at = bisect_right(self._ends, start)
        if at < len(self._starts) and self._starts[at] < end:
            return self._starts[at], self._ends[at]
        return None

    def add(self, start: int, end: int) -> None:
        at = bisect_right(self._ends, start)
        self._starts.insert(at, start)
        self._ends.insert(at, end)
