"""Sentences of different lengths in one flat array, and padded batches of them without a loop."""

from array import array
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    """Start of each piece in the flat array, followed by the array's length.

    >>> offsets_of(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def pad_rows(offsets: np.ndarray, indices: Sequence[int] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions `[batch, longest]` of some pieces in the flat array, 0 at padding; and the mask of non-padding.

    >>> [array.tolist() for array in pad_rows(np.array([0, 2, 2, 5]), [0, 2])]
    [[[0, 1, 0], [2, 3, 4]], [[True, True, False], [True, True, True]]]
    """
    chosen = np.asarray(indices, dtype=np.int64)
    starts, lengths = offsets[chosen], offsets[chosen + 1] - offsets[chosen]
    steps = np.arange(max(int(lengths.max(initial=0)), 1))  # a batch of empty sentences is still a tensor
    mask = steps < lengths[:, None]
    return np.where(mask, starts[:, None] + steps, 0), mask


def run_positions(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """All positions of several runs, one run after another.

    >>> run_positions(np.array([3, 8]), np.array([2, 3])).tolist()
    [3, 4, 8, 9, 10]
    """
    ends = np.cumsum(lengths)
    shift = np.repeat(starts - (ends - lengths), lengths)
    return shift + np.arange(len(shift))


def find_marked(mask: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends of the marked spans of a mask `[words, widths]`, or of the runs of True in a mask of words.

    A run ends with its sentence, as `offsets` say.

    >>> starts, ends = find_marked(np.array([True, True, False, True, True]), np.array([0, 4, 5]))
    >>> starts.tolist(), ends.tolist()
    ([0, 3, 4], [2, 4, 5])
    """
    if mask.ndim > 1:
        start, width = np.nonzero(mask)
        return start, start + width + 1
    before = np.concatenate([[False], mask[:-1]]) if len(mask) else mask
    first = np.zeros(len(mask), dtype=bool)
    first[offsets[:-1][offsets[:-1] < len(mask)]] = True
    start = np.flatnonzero(mask & (first | ~before))
    stops = np.union1d(np.flatnonzero(~mask), offsets[1:])
    return start, stops[np.searchsorted(stops, start, side="right")] if len(start) else start


_SENTENCES_AT_ONCE = 1 << 16


def sum_by_sentence(values: np.ndarray, row: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The sum of the values of each sentence's words; `values` has one number per distinct word.

    >>> sum_by_sentence(np.array([10, 20]), np.array([0, 1, 1]), np.array([0, 2, 2, 3])).tolist()
    [30, 0, 20]
    """
    sums = [np.zeros(0, dtype=np.int64)]
    for start in range(0, len(offsets) - 1, _SENTENCES_AT_ONCE):  # the row may be larger than memory
        bounds = offsets[start : start + _SENTENCES_AT_ONCE + 1]
        sums.append(np.diff(offsets_of(values[row[bounds[0] : bounds[-1]]])[bounds - bounds[0]]))
    return np.concatenate(sums)


class NumberedWords(Sequence[list[str]]):
    """Sentences as numbers of their words: four bytes per word, in memory or in a mapped file.

    >>> words = NumberedWords(["Mara", "left", "Nora"], np.array([0, 1, 2, 1]), np.array([2, 2]))
    >>> words[1], len(words)
    (['Nora', 'left'], 2)
    """

    def __init__(self, distinct: list[str], row: np.ndarray, lengths: np.ndarray) -> None:
        self.distinct, self.row, self.lengths = distinct, row, lengths.astype(np.int64)

    @cached_property
    def _offsets(self) -> np.ndarray:
        return offsets_of(self.lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        at = range(len(self))[at]
        return [self.distinct[i] for i in self.row[self._offsets[at] : self._offsets[at + 1]].tolist()]


def index_words(sentences: Iterable[Sequence[str]]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Distinct words in order of appearance, the index of each word of the corpus, and words per sentence.

    >>> index_words([["a", "b"], ["b"]])
    (['a', 'b'], array([0, 1, 1]), array([2, 1]))
    """
    if isinstance(sentences, NumberedWords):
        return sentences.distinct, sentences.row, sentences.lengths
    numbers: dict[str, int] = {}
    row = array("q")  # a list would take three times the memory
    lengths: list[int] = []
    for words in sentences:
        row.extend([numbers.setdefault(word, len(numbers)) for word in words])
        lengths.append(len(words))
    return list(numbers), np.array(row, dtype=np.int64), np.array(lengths, dtype=np.int64)
