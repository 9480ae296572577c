"""Hashed character features of words, without a vocabulary and without a loop over characters.

Each distinct word has five groups of features: its norm (lower case, compatibility forms unified, Chinese simplified),
its prefixes, its suffixes, its shape, and all its character n-grams. Every feature is a 64-bit hash of the
characters alone, so a model gives the same results in every process and on every machine.
"""

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lacuner.models.encoders.han import simplify
from lacuner.models.ragged import offsets_of, run_positions

GROUPS = ("norm", "prefix", "suffix", "shape", "ngrams")
_AFFIX_SIZES = (1, 2, 3, 4)
_NGRAM_SIZES = (2, 3, 4)
_MAX_RUN = 4
_MAX_CHARACTERS = 64
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


class Bags(NamedTuple):
    """Features of distinct words: group `g` of word `u` starts at `offsets[u * groups + g]` of `ids`."""

    ids: np.ndarray
    offsets: np.ndarray


def mix(numbers: np.ndarray) -> np.ndarray:
    """Spread 64-bit numbers evenly (the finaliser of splitmix64, by Steele, Lea and Flood)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = numbers ^ (numbers >> np.uint64(31))
    return mixed


def normalise_word(word: str) -> str:
    """Lower case with compatibility forms unified and traditional Chinese characters simplified.

    A very long word is cut to its first and last 32 characters.

    >>> normalise_word("Ｈalden"), normalise_word("國")  # with a full-width letter
    ('halden', '国')
    """
    if len(word) > _MAX_CHARACTERS:
        word = word[: _MAX_CHARACTERS // 2] + word[-_MAX_CHARACTERS // 2 :]
    return word.lower() if word.isascii() else simplify(unicodedata.normalize("NFKC", word).lower())


def word_features(words: Sequence[str]) -> Bags:
    """The features of distinct words, all groups."""
    row, offsets = _characters(list(map(normalise_word, words)))
    pieces = [_whole(row, offsets), _affixes(row, offsets, False), _affixes(row, offsets, True)]
    pieces += [_shapes(words), _ngrams(row, offsets)]
    counts = np.stack([count for _, count in pieces], axis=1)
    bags = offsets_of(counts.ravel())
    ids = np.empty(bags[-1], dtype=np.uint64)
    for group, (hashes, count) in enumerate(pieces):
        salt = np.uint64((group + 1) * int(_FACTOR) & 0xFFFFFFFFFFFFFFFF)  # the same text hashes apart in each group
        ids[run_positions(bags[group : -1 : len(GROUPS)], count)] = mix(hashes + salt)
    return Bags(ids, bags)


def select_words(ids: np.ndarray, offsets: np.ndarray, words: np.ndarray) -> Bags:
    """The features of some of the distinct words.

    >>> bags = word_features(["Mara", "left", "Halden"])
    >>> chosen = select_words(*bags, np.array([2]))
    >>> np.array_equal(chosen.ids, word_features(["Halden"]).ids)
    True
    """
    chosen = (words[:, None] * len(GROUPS) + np.arange(len(GROUPS))).ravel()
    sizes = offsets[chosen + 1] - offsets[chosen]
    return Bags(ids[run_positions(offsets[chosen], sizes)], offsets_of(sizes))


def _characters(words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Code points of all words in one row, each word between two boundary marks, and the start of each word."""
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
    """Hashes of the `size` characters from each start."""
    hashes = np.full(len(starts), size, dtype=np.uint64)
    for step in range(size):
        hashes = mix(hashes * _FACTOR + row[starts + step])
    return hashes


def _affixes(row: np.ndarray, offsets: np.ndarray, suffix: bool) -> tuple[np.ndarray, np.ndarray]:
    """Prefixes or suffixes of one to four characters; a shorter word has fewer."""
    inner = np.diff(offsets) - 2
    counts = np.minimum(inner, len(_AFFIX_SIZES))
    hashes = np.zeros((len(inner), len(_AFFIX_SIZES)), dtype=np.uint64)
    for i, size in enumerate(_AFFIX_SIZES):
        long_enough = inner >= size
        at = (offsets[1:] - 1 - size if suffix else offsets[:-1] + 1)[long_enough]
        hashes[long_enough, i] = _window(row, at, size)
    return hashes[np.arange(len(_AFFIX_SIZES)) < counts[:, None]], counts


def _ngrams(row: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Character n-grams of two to four characters, boundary marks included, word by word."""
    lengths = np.diff(offsets)
    counts = np.stack([np.maximum(lengths - size + 1, 0) for size in _NGRAM_SIZES], axis=1)
    begin = offsets_of(counts.ravel())
    hashes = np.empty(begin[-1], dtype=np.uint64)
    for i, size in enumerate(_NGRAM_SIZES):
        at = run_positions(begin[np.arange(len(lengths)) * len(_NGRAM_SIZES) + i], counts[:, i])
        hashes[at] = _window(row, run_positions(offsets[:-1], counts[:, i]), size)
    return hashes, counts.sum(axis=1)


def _shapes(words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Word shapes: upper case, lower case, digit, other letter, or the character itself, in runs of at most four."""
    row, offsets = _characters([word[:_MAX_CHARACTERS] for word in words])
    distinct, inverse = np.unique(row, return_inverse=True)
    classes = np.array([_character_class(chr(point)) for point in distinct.tolist()], dtype=np.uint64)[inverse]
    place = np.arange(len(classes))
    changes = np.concatenate([[True], classes[1:] != classes[:-1]]) if len(classes) else np.zeros(0, dtype=bool)
    in_run = place - np.maximum.accumulate(np.where(changes, place, 0)) if len(classes) else place
    keep = in_run < _MAX_RUN
    return _whole(classes[keep], offsets_of(keep.astype(np.int64))[offsets])


def _character_class(character: str) -> int:
    for number, holds in enumerate((str.isupper, str.islower, str.isdigit, str.isalpha)):
        if holds(character):
            return 0x110000 + number  # beyond the last code point
    return ord(character)
