"""Windows over long documents: every word is read, and no entity is cut in two.

A window is a run of words that an encoder can take at once. Windows overlap, so that each word is seen with its
surroundings; each word is *owned* by exactly one window, and what a window says counts where it owns.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from lacuner.corpus.tags import Chunk
from lacuner.errors import ConfigError


class Window(NamedTuple):
    """Words `start` to `end` are read; words `own_start` to `own_end` are owned, and so is what begins with them."""

    start: int
    end: int
    own_start: int
    own_end: int


def cut_windows(
    costs: Sequence[int], size: int, overlap: int, chunks: Iterable[Chunk] = ()
) -> tuple[list[Window], list[Chunk]]:
    """Windows that cost at most `size`, and the chunks that are too costly for any window.

    `costs` has what each word costs its reader: 1, or the number of its sub-words. Neighbours share words that cost
    about `overlap`. Where a labelled chunk would stick out of the window that owns its first word, the next window
    begins to own there instead, so that it reads the chunk whole. A word that alone costs more than `size` has a
    window to itself.
    """
    if size < 1 or not 0 <= overlap < size:
        raise ConfigError(f"a window of {size} cannot overlap the next by {overlap}")
    length = len(costs)
    before = [0, *accumulate(costs)]  # what the words before each word cost
    if before[-1] <= size:
        return [Window(0, length, 0, length)], []

    def reach(start: int, room: int) -> int:
        """The end of the longest run of words from `start` that costs no more than `room`."""
        return bisect_right(before, before[start] + room) - 1

    chunks = sorted(chunks)
    too_long = [chunk for chunk in chunks if before[chunk.end] - before[chunk.start] > size]
    fitting = [chunk for chunk in chunks if before[chunk.end] - before[chunk.start] <= size]
    windows: list[Window] = []
    start = own_start = 0
    while True:
        end = max(reach(start, size), start + 1)
        if end <= own_start:  # what is read again leaves no room for the next word
            start = own_start
            continue
        if end == length:
            windows.append(Window(start, end, own_start, end))
            return windows, too_long
        own_end = max(bisect_left(before, before[end] - overlap // 2), own_start + 1)
        cut = [chunk.start for chunk in fitting if own_start <= chunk.start < own_end and chunk.end > end]
        if cut and min(cut) == own_start:  # it begins with the first owned word: the window must begin there too
            start = own_start
            continue
        own_end = min([own_end, *cut])
        windows.append(Window(start, end, own_start, own_end))
        back = bisect_left(before, before[own_end] - (overlap - overlap // 2))
        start, own_start = min(max(back, start + 1), own_end), own_end
