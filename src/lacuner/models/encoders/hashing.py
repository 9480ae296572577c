"""Words as bags of hashed features, without a vocabulary and without a loop over characters.

Each distinct word has five groups of features: its norm (lower case, compatibility forms unified), its beginning, its
end, its shape, and all its character n-grams. Every feature is a number of 64 bits that depends on the characters
alone, so that a model means the same in every process and on every machine.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lacuner.models.ragged import offsets_of, run_positions

GROUPS = ("norm", "prefix", "suffix", "shape", "ngrams")
_EDGES = (1, 2, 3, 4)
_NGRAMS = (2, 3, 4)
_LONGEST_RUN = 4
_MOST_CHARACTERS = 64
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


class Bags(NamedTuple):
    """Features of distinct words: group `g` of word `u` begins at `offsets[u * groups + g]` of `ids`."""

    ids: np.ndarray
    offsets: np.ndarray


def mix(numbers: np.ndarray) -> np.ndarray:
    """Spread 64-bit numbers evenly (the finaliser of splitmix64, by Steele, Lea and Flood)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = numbers ^ (numbers >> np.uint64(31))
    return mixed


def salted(numbers: np.ndarray, salt: int) -> np.ndarray:
    """The same numbers hashed for another purpose."""
    return mix(numbers + np.uint64((salt + 1) * int(_FACTOR) & 0xFFFFFFFFFFFFFFFF))


def normal(word: str) -> str:
    """Lower case, full-width and other compatibility forms unified; a very long word by its beginning and its end."""
    if len(word) > _MOST_CHARACTERS:
        word = word[: _MOST_CHARACTERS // 2] + word[-_MOST_CHARACTERS // 2 :]
    return word.lower() if word.isascii() else unicodedata.normalize("NFKC", word).lower()


def word_features(words: Sequence[str]) -> Bags:
    """The features of distinct words, all groups."""
    row, offsets = _characters(list(map(normal, words)))
    pieces = [_whole(row, offsets), _edges(row, offsets, False), _edges(row, offsets, True)]
    pieces += [_shapes(words), _ngrams(row, offsets)]
    counts = np.stack([count for _, count in pieces], axis=1)
    bags = offsets_of(counts.ravel())
    ids = np.empty(bags[-1], dtype=np.uint64)
    for group, (hashes, count) in enumerate(pieces):
        ids[run_positions(bags[group : -1 : len(GROUPS)], count)] = salted(hashes, group)
    return Bags(ids, bags)


def _characters(words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Code points of all words in one row, each word between two marks, and where each word begins."""
    row = np.frombuffer(("\x02" + "\x03\x02".join(words) + "\x03").encode("utf-32-le", "surrogatepass"), dtype="<u4")
    lengths = np.fromiter(map(len, words), dtype=np.int64, count=len(words)) + 2
    return row[: int(lengths.sum())].astype(np.uint64), offsets_of(lengths)


def _whole(row: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    starts, lengths = offsets[:-1], np.diff(offsets)
    place = np.arange(len(row)) - np.repeat(starts, lengths)
    powers = np.cumprod(np.full(int(lengths.max(initial=0)) + 1, _FACTOR | np.uint64(1), dtype=np.uint64))
    if not len(starts):
        return np.zeros(0, dtype=np.uint64), lengths
    return mix(np.add.reduceat(mix(row) * powers[place], starts)), np.ones_like(lengths)


def _window(row: np.ndarray, starts: np.ndarray, size: int) -> np.ndarray:
    hashes = np.full(len(starts), size, dtype=np.uint64)
    for step in range(size):
        hashes = mix(hashes * _FACTOR + row[starts + step])
    return hashes


def _edges(row: np.ndarray, offsets: np.ndarray, end: bool) -> tuple[np.ndarray, np.ndarray]:
    """The first or last one to four characters; of a shorter word what there is."""
    inner = np.diff(offsets) - 2
    counts = np.minimum(inner, len(_EDGES))
    hashes = np.zeros((len(inner), len(_EDGES)), dtype=np.uint64)
    for i, size in enumerate(_EDGES):
        long_enough = inner >= size
        at = (offsets[1:] - 1 - size if end else offsets[:-1] + 1)[long_enough]
        hashes[long_enough, i] = _window(row, at, size)
    return hashes[np.arange(len(_EDGES)) < counts[:, None]], counts


def _ngrams(row: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every run of two to four characters, the marks at both ends included, word by word."""
    lengths = np.diff(offsets)
    counts = np.stack([np.maximum(lengths - size + 1, 0) for size in _NGRAMS], axis=1)
    begin = offsets_of(counts.ravel())
    hashes = np.empty(begin[-1], dtype=np.uint64)
    for i, size in enumerate(_NGRAMS):
        at = run_positions(begin[np.arange(len(lengths)) * len(_NGRAMS) + i], counts[:, i])
        hashes[at] = _window(row, run_positions(offsets[:-1], counts[:, i]), size)
    return hashes, counts.sum(axis=1)


def _shapes(words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Capital, small, digit, other letter, or the character itself; a run of more than four counts as four."""
    row, offsets = _characters([word[:_MOST_CHARACTERS] for word in words])
    distinct, inverse = np.unique(row, return_inverse=True)
    kinds = np.array([_kind(chr(point)) for point in distinct.tolist()], dtype=np.uint64)[inverse]
    place = np.arange(len(kinds))
    changes = np.concatenate([[True], kinds[1:] != kinds[:-1]]) if len(kinds) else np.zeros(0, dtype=bool)
    since = place - np.maximum.accumulate(np.where(changes, place, 0)) if len(kinds) else place
    keep = since < _LONGEST_RUN
    ends = offsets_of(keep.astype(np.int64))[offsets]
    return _whole(kinds[keep], ends)


def _kind(character: str) -> int:
    for kind, holds in enumerate((str.isupper, str.islower, str.isdigit, str.isalpha)):
        if holds(character):
            return 0x110000 + kind
    return ord(character)
