"""Sets of intervals and spans with bisection: documents with thousands of spans stay fast."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from itertools import accumulate, chain, islice
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
    """Spans, or other tuples that begin with start, end and label: a query looks at its surroundings only.

    Spans are kept by size, in powers of two. So a few long spans do not make all queries slow.

    >>> index = SpanIndex([(5, 9, "PER"), (0, 4, "PER"), (3, 6, "LOC")])
    >>> index.overlapping(4, 6)
    [(3, 6, 'LOC'), (5, 9, 'PER')]
    >>> index.remove((3, 6, "LOC"))
    >>> index.overlapping(4, 6)
    [(5, 9, 'PER')]
    """

    def __init__(self, spans: Iterable[T]) -> None:
        self._by_size: dict[int, list[T]] = {}
        """By the number of binary digits of their size, in order of start, end and label."""
        for span in sorted(spans, key=_span_key):
            self._by_size.setdefault(_size_class(span), []).append(span)

    @property
    def spans(self) -> list[T]:
        """In order of start, end and label."""
        return sorted(chain(*self._by_size.values()), key=_span_key)

    def overlapping(self, start: int, end: int, limit: int | None = None) -> list[T]:
        """The spans that share a character with this interval, in order; of more than `limit` of one size, the last."""
        overlapping: list[T] = []
        for size, spans in self._by_size.items():
            first = bisect_right(spans, start - (1 << size), key=_start)
            last = bisect_left(spans, end, key=_start)
            backwards = (spans[at] for at in range(last - 1, first - 1, -1))
            overlapping += islice((span for span in backwards if span[1] > start), limit)
        return sorted(overlapping, key=_span_key)

    def add(self, span: T) -> None:
        insort(self._by_size.setdefault(_size_class(span), []), span, key=_span_key)

    def remove(self, span: T) -> None:
        spans = self._by_size[_size_class(span)]
        del spans[spans.index(span, bisect_left(spans, span[0], key=_start))]


_start = itemgetter(0)


def _span_key(span: tuple[Any, ...]) -> tuple[Any, ...]:
    return span[:3]


def _size_class(span: tuple[Any, ...]) -> int:
    size: int = span[1] - span[0]
    return size.bit_length()


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
