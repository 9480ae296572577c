"""Which ranges meet: by bisection, so that a book of a document takes no longer than its pages."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate


class IntervalSet:
    """A fixed set of ranges, which may overlap."""

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        in_order = sorted(ranges)
        self._starts = [start for start, _ in in_order]
        self._furthest = list(accumulate((end for _, end in in_order), max))

    def touch(self, start: int, end: int) -> bool:
        """Whether one of them shares a character with this range."""
        before = bisect_left(self._starts, end)
        return before > 0 and self._furthest[before - 1] > start

    def cover(self, start: int, end: int) -> bool:
        """Whether one of them has this range inside."""
        before = bisect_right(self._starts, start)
        return before > 0 and self._furthest[before - 1] >= end


class DisjointIntervals:
    """A growing set of ranges of which no two overlap."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def first_touched(self, start: int, end: int) -> tuple[int, int] | None:
        """The first of them that shares a character with this range."""
        at = bisect_right(self._ends, start)
        if at < len(self._starts) and self._starts[at] < end:
            return self._starts[at], self._ends[at]
        return None

    def add(self, start: int, end: int) -> None:
        at = bisect_right(self._ends, start)
        self._starts.insert(at, start)
        self._ends.insert(at, end)
