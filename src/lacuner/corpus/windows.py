"""Windows over long documents: every word is read, and no entity is cut in two.

A window is a run of words that an encoder can take at once. Windows overlap, so that each word is seen with its
surroundings; each word is *owned* by exactly one window, and what a window says counts where it owns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lacuner.corpus.tags import Chunk
from lacuner.errors import ConfigError


class Window(NamedTuple):
    """Words `start` to `end` are read; words `own_start` to `own_end` are owned."""

    start: int
    end: int
    own_start: int
    own_end: int

    def owns(self, chunk: Chunk) -> bool:
        """A chunk belongs to the window that owns its first word."""
        return self.own_start <= chunk.start < self.own_end


def cut_windows(length: int, size: int, overlap: int, chunks: Iterable[Chunk] = ()) -> tuple[list[Window], list[Chunk]]:
    """Windows of at most `size` words over `length` words, and the chunks that are longer than any window could be.

    Neighbours share `overlap` words. Where a labelled chunk would stick out of the window that owns its first word,
    the next window begins to own there instead, so that it reads the chunk whole.
    """
    if size < 1 or not 0 <= overlap < size:
        raise ConfigError(f"a window of {size} words cannot overlap the next by {overlap}")
    chunks = sorted(chunks)
    too_long = [chunk for chunk in chunks if chunk.end - chunk.start > size]
    fitting = [chunk for chunk in chunks if chunk.end - chunk.start <= size]
    windows: list[Window] = []
    start, own_start = 0, 0
    while True:
        end = min(start + size, length)
        if end == length:
            windows.append(Window(start, end, own_start, end))
            return windows, too_long
        own_end = max(end - overlap // 2, own_start + 1)
        cut = [chunk.start for chunk in fitting if own_start <= chunk.start < own_end and chunk.end > end]
        if cut and min(cut) > own_start:
            own_end = min(cut)
        elif cut:  # it begins with the first owned word: the window must begin there too
            start = own_start
            continue
        windows.append(Window(start, end, own_start, own_end))
        start, own_start = max(own_end - (overlap - overlap // 2), start + 1), own_end
        start = min(start, own_start)


def stitch(windows: Sequence[Window], found: Iterable[Sequence[Chunk]]) -> list[Chunk]:
    """Chunks of the whole document from chunks found in each window (counted from the window's first word)."""
    whole: list[Chunk] = []
    for window, chunks in zip(windows, found, strict=True):
        moved = (Chunk(window.start + start, window.start + end, label) for start, end, label in chunks)
        whole.extend(chunk for chunk in moved if window.owns(chunk))
    return whole
