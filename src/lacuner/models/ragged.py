"""Sentences of different lengths in one row, and batches cut out of it without a loop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    """Where each piece begins in the row, and, last, where the row ends."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def pad_rows(offsets: np.ndarray, indices: Sequence[int] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions `[batch, longest]` of some pieces in the row, 0 where there is padding; and what is not padding."""
    chosen = np.asarray(indices, dtype=np.int64)
    starts, lengths = offsets[chosen], offsets[chosen + 1] - offsets[chosen]
    steps = np.arange(max(int(lengths.max(initial=0)), 1))  # a batch of empty sentences is still a tensor
    mask = steps < lengths[:, None]
    return np.where(mask, starts[:, None] + steps, 0), mask


def run_positions(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """All positions of several runs, one run after another: (3, 8), (2, 3) gives 3 4 8 9 10."""
    ends = np.cumsum(lengths)
    shift = np.repeat(starts - (ends - lengths), lengths)
    return shift + np.arange(len(shift))


def index_words(sentences: Iterable[Sequence[str]]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """The distinct words as they appear, the row of all words as numbers of these, and the sentences' lengths."""
    numbers: dict[str, int] = {}
    row: list[int] = []
    lengths: list[int] = []
    for words in sentences:
        row.extend([numbers.setdefault(word, len(numbers)) for word in words])
        lengths.append(len(words))
    return list(numbers), np.array(row, dtype=np.int64), np.array(lengths, dtype=np.int64)
