"""Tag sets: which tags there are for some labels, which may follow which, and tags <-> spans in whole arrays.

`lacuner.corpus.tags` does the same for strings, one sentence at a time, in every scheme that files come in; models need
three schemes, as numbers, for a whole corpus at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from lacuner.errors import ConfigError
from lacuner.models.ragged import run_positions
from lacuner.models.types import DecodedSpans, HasTags, Head

Scheme = Literal["IO", "BIO", "BIOES"]
_LETTERS = {"IO": "I", "BIO": "BI", "BIOES": "BIES"}


@dataclass(frozen=True)
class TagSet:
    """Tag 0 is O; then, label by label, the scheme's letters in the order B, I, E, S as far as it has them."""

    labels: tuple[str, ...]
    scheme: Scheme

    def __post_init__(self) -> None:
        if self.scheme not in _LETTERS:
            raise ConfigError(f"the scheme {self.scheme!r} is not one of {', '.join(_LETTERS)}")
        if not self.labels or len(set(self.labels)) < len(self.labels):
            raise ConfigError("a model needs at least one label, and no label twice")

    @property
    def letters(self) -> str:
        return _LETTERS[self.scheme]

    @property
    def names(self) -> list[str]:
        return ["O", *(f"{letter}-{label}" for label in self.labels for letter in self.letters)]

    def __len__(self) -> int:
        return 1 + len(self.labels) * len(self.letters)

    @property
    def types(self) -> np.ndarray:
        """The label of each tag as a number, -1 for O."""
        return np.concatenate([[-1], np.repeat(np.arange(len(self.labels)), len(self.letters))])

    def having(self, letters: str) -> np.ndarray:
        """Which tags have one of these letters."""
        return np.array([False] + [letter in letters for letter in self.letters] * len(self.labels))

    def encode(self, start: np.ndarray, end: np.ndarray, label: np.ndarray, length: int) -> np.ndarray:
        """The tags of a row of `length` words for spans that do not overlap."""
        tags = np.zeros(length, dtype=np.int64)
        base = 1 + label * len(self.letters)
        place = {letter: i for i, letter in enumerate(self.letters)}
        tags[run_positions(start, end - start)] = np.repeat(base + place["I"], end - start)
        if "E" in place:
            tags[end - 1] = base + place["E"]
        if "B" in place:
            tags[start] = base
        if "S" in place:
            single = end - start == 1
            tags[start[single]] = base[single] + place["S"]
        return tags

    def allowed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Which tag may follow which `[from, to]`, which may come first, and which last."""
        tags = len(self)
        if self.scheme == "IO":
            return np.ones((tags, tags), bool), np.ones(tags, bool), np.ones(tags, bool)
        types, goes_on = self.types, self.having("IE")
        open_after = self.having("BI")  # in BIO these may also be followed by anything else, in BIOES they must go on
        same = types[:, None] == types[None, :]
        joined = open_after[:, None] & goes_on[None, :] & same
        must = open_after if self.scheme == "BIOES" else np.zeros(tags, bool)
        apart = ~must[:, None] & ~goes_on[None, :]
        return joined | apart, ~goes_on, ~must

    def decode(self, tags: np.ndarray, probability: np.ndarray) -> DecodedSpans:
        """Spans of tags `[batch, words]` with padding as O, by conlleval's rule, which reads any sequence.

        A span's score is that of its least certain word: the words of a span stand and fall together, so that the
        product of their probabilities would be far too low.
        """
        batch, words = tags.shape
        row = np.zeros((batch, words + 1), dtype=np.int64)  # the O between sentences keeps them apart
        row[:, :words] = tags
        row = row.ravel()
        types = self.types[row]
        before = np.roll(types, 1)
        closed = np.roll(self.having("ES")[row], 1)
        begins = (types >= 0) & (self.having("BS")[row] | closed | (before != types))
        inside = (types >= 0) & ~begins
        start = np.flatnonzero(begins)
        stops = np.flatnonzero(~inside)
        end = stops[np.searchsorted(stops, start, side="right")] if len(start) else start
        padded = np.ones((batch, words + 1))
        padded[:, :words] = probability
        padded = padded.ravel()
        score = span_minimum(padded, start, end)
        sentence = start // (words + 1)
        return DecodedSpans(sentence, start - sentence * (words + 1), end - sentence * (words + 1), types[start], score)


def tag_set_of(head: Head[Any]) -> TagSet:
    """The tag set of a token, CRF or entity-type head."""
    assert isinstance(head, HasTags), f"{type(head).__name__} has no tags"
    return head.tags


def span_minimum(values: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The smallest value of each run."""
    if not len(start):
        return np.zeros(0, dtype=values.dtype)
    lengths = end - start
    minimum: np.ndarray = np.minimum.reduceat(values[run_positions(start, lengths)], np.cumsum(lengths) - lengths)
    return minimum


def keep_disjoint(start: np.ndarray, end: np.ndarray, order: Sequence[np.ndarray], length: int) -> np.ndarray:
    """Which spans of one long row are kept when they are taken greedily and none may overlap another.

    `order` are keys as for `np.lexsort`, the last the most important one, high first. In each round every span that is
    the best one at all of its words is taken, and whatever overlaps it falls; that is the greedy result, in few rounds.
    """
    kept = np.zeros(len(start), dtype=bool)
    left = np.lexsort(tuple(order))  # from the worst to the best
    while len(left):
        lengths = end[left] - start[left]
        words = run_positions(start[left], lengths)
        rank = np.arange(len(left))
        best = np.full(length, -1)
        best[words] = np.repeat(rank, lengths)  # the last assignment wins, and the best comes last
        first = np.cumsum(lengths) - lengths
        won = np.maximum.reduceat(best[words], first) == rank  # nothing better at any of its words
        kept[left[won]] = True
        taken = np.zeros(length, dtype=bool)
        taken[run_positions(start[left[won]], lengths[won])] = True
        left = left[~np.logical_or.reduceat(taken[words], first)]
    return kept
