"""Interval sets with bisection: a query takes O(log n), so documents with thousands of spans stay fast."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate


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
