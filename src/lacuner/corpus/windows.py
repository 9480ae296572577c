"""Overlapping windows over long documents that cut no entity in two.

A window is a run of words that fits into the encoder. Windows overlap, so that each word has context on both sides.
Each word is *owned* by exactly one window, whose predictions count for it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from lacuner.corpus.tags import Chunk
from lacuner.errors import ConfigError


class Window(NamedTuple):
    """Words `start` to `end` are encoded; `own_start` to `own_end` are owned, with the entities that begin there."""

    start: int
    end: int
    own_start: int
    own_end: int


def cut_windows(
    costs: Sequence[int], size: int, overlap: int, chunks: Iterable[Chunk] = ()
) -> tuple[list[Window], list[Chunk]]:
    """Windows of at most `size` units, and the chunks that are too long for any window.

    `costs` is the length of each word in units: 1, or its number of sub-words. Neighbouring windows share about
    `overlap` units. A chunk that would cross the end of the window that owns its first word is owned by the next
    window instead, which contains it whole. A word longer than `size` gets a window of its own.

    >>> windows, too_long = cut_windows([1] * 10, size=6, overlap=2)
    >>> [(window.start, window.end) for window in windows]
    [(0, 6), (4, 10)]
    """
    if size < 1 or not 0 <= overlap < size:
        raise ConfigError(f"the overlap of windows must be smaller than their size, {size}: it is {overlap}")
    length = len(costs)
    before = [0, *accumulate(costs)]  # units before each word
    if before[-1] <= size:
        return [Window(0, length, 0, length)], []

    def reach(start: int, room: int) -> int:
        """The end of the longest run of words from `start` that fits into `room`."""
        return bisect_right(before, before[start] + room) - 1

    chunks = sorted(chunks)
    too_long = [chunk for chunk in chunks if before[chunk.end] - before[chunk.start] > size]
    fitting = [chunk for chunk in chunks if before[chunk.end] - before[chunk.start] <= size]
    windows: list[Window] = []
    start = own_start = 0
    while True:
        end = max(reach(start, size), start + 1)
        if end <= own_start:  # the overlap leaves no room for the next word
            start = own_start
            continue
        if end == length:
            windows.append(Window(start, end, own_start, end))
            return windows, too_long
        own_end = max(bisect_left(before, before[end] - overlap // 2), own_start + 1)
        cut = [chunk.start for chunk in fitting if own_start <= chunk.start < own_end and chunk.end > end]
        if cut and min(cut) == own_start:  # the chunk begins with the first owned word: so must the window
            start = own_start
            continue
        own_end = min([own_end, *cut])
        windows.append(Window(start, end, own_start, own_end))
        back = bisect_left(before, before[own_end] - (overlap - overlap // 2))
        start, own_start = min(max(back, start + 1), own_end), own_end
