"""Tag sets: the tags of some labels, which tag may follow which, and conversion between tags and spans.

`lacuner.corpus.tags` does the same for strings, one sentence at a time, in every scheme of files; models need three
schemes, as numbers, for a whole corpus at once.
"""

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
    """Tag 0 is O; then follow, label by label, the scheme's letters in the order B, I, E, S.

    >>> tags = TagSet(("LOC", "PER"), "BIO")
    >>> tags.names
    ['O', 'B-LOC', 'I-LOC', 'B-PER', 'I-PER']
    >>> tags.encode(np.array([1]), np.array([3]), np.array([1]), length=4).tolist()
    [0, 3, 4, 0]
    """

    labels: tuple[str, ...]
    scheme: Scheme

    def __post_init__(self) -> None:
        if self.scheme not in _LETTERS:
            raise ConfigError(f"unknown tag scheme {self.scheme!r}; choose one of {', '.join(_LETTERS)}")
        check_labels(self.labels)

    @property
    def letters(self) -> str:
        """The letters of the scheme, without O."""
        return _LETTERS[self.scheme]

    @property
    def names(self) -> list[str]:
        """The tags as strings, by number: `O`, `B-PER`, ..."""
        return ["O", *(f"{letter}-{label}" for label in self.labels for letter in self.letters)]

    def __len__(self) -> int:
        return 1 + len(self.labels) * len(self.letters)

    @property
    def types(self) -> np.ndarray:
        """Label index of each tag, -1 for O."""
        return np.concatenate([[-1], np.repeat(np.arange(len(self.labels)), len(self.letters))])

    def having(self, letters: str) -> np.ndarray:
        """Mask of the tags that have one of these letters."""
        return np.array([False] + [letter in letters for letter in self.letters] * len(self.labels))

    def encode(self, start: np.ndarray, end: np.ndarray, label: np.ndarray, length: int) -> np.ndarray:
        """Tags of a row of `length` words, given spans that do not overlap."""
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
        """Masks: which tag may follow which `[from, to]`, which may come first, and which last."""
        tags = len(self)
        if self.scheme == "IO":
            return np.ones((tags, tags), bool), np.ones(tags, bool), np.ones(tags, bool)
        # after B or I a BIO entity may end; a BIOES entity must continue
        continues, must_continue = self.having("IE"), self.having("BI") & (self.scheme == "BIOES")
        apart = ~must_continue[:, None] & ~continues[None, :]
        return self.joined() | apart, ~continues, ~must_continue

    def joined(self) -> np.ndarray:
        """Mask `[from, to]` of the pairs of tags that are inside one entity."""
        joined: np.ndarray = (self.types[:, None] == self.types) & self.having("BI")[:, None] & self.having("IE")
        return joined

    def decode(self, tags: np.ndarray, probability: np.ndarray) -> DecodedSpans:
        """Spans of tags `[batch, words]` (O at padding) by conlleval's rule, which accepts any sequence.

        A span's score is the probability of its least probable word. Their product would be far too low, because the
        words of one entity are not independent.
        """
        batch, words = tags.shape
        row = np.zeros((batch, words + 1), dtype=np.int64)  # an O between sentences keeps them apart
        row[:, :words] = tags
        row = row.ravel()
        types = self.types[row]
        closed = np.roll(self.having("ES")[row], 1)
        begins = (types >= 0) & (self.having("BS")[row] | closed | (np.roll(types, 1) != types))
        start = np.flatnonzero(begins)
        stops = np.flatnonzero((types < 0) | begins)
        end = stops[np.searchsorted(stops, start, side="right")] if len(start) else start
        padded = np.ones((batch, words + 1))
        padded[:, :words] = probability
        score = span_minimum(padded.ravel(), start, end)
        sentence = start // (words + 1)
        return DecodedSpans(sentence, start - sentence * (words + 1), end - sentence * (words + 1), types[start], score)


def check_labels(labels: Sequence[str]) -> None:
    """Raise if there are no labels or one occurs twice."""
    if not labels or len(set(labels)) < len(labels):
        raise ConfigError("a model needs at least one label, and no label twice")


def tag_set_of(head: Head[Any]) -> TagSet:
    """The tag set of a token, CRF or entity-type head."""
    assert isinstance(head, HasTags), f"{type(head).__name__} has no tags"
    return head.tags


def span_minimum(values: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Smallest value inside each span.

    >>> span_minimum(np.array([3, 1, 2, 5]), np.array([0, 2]), np.array([2, 4])).tolist()
    [1, 2]
    """
    if not len(start):
        return np.zeros(0, dtype=values.dtype)
    lengths = end - start
    minimum: np.ndarray = np.minimum.reduceat(values[run_positions(start, lengths)], np.cumsum(lengths) - lengths)
    return minimum


def keep_disjoint(start: np.ndarray, end: np.ndarray, order: Sequence[np.ndarray], length: int) -> np.ndarray:
    """Mask of the spans that a greedy choice keeps, best first, when no two may overlap in a row of `length` words.

    `order` are keys as for `np.lexsort`: the last is the most important, high values first. Each round takes every
    span that is the best one at all of its words and drops what overlaps it: the greedy result in few rounds.

    >>> score = np.array([0.9, 0.8, 0.7])
    >>> keep_disjoint(np.array([0, 1, 2]), np.array([2, 3, 4]), [score], length=4).tolist()
    [True, False, True]
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
        won = np.maximum.reduceat(best[words], first) == rank
        kept[left[won]] = True
        taken = np.zeros(length, dtype=bool)
        taken[run_positions(start[left[won]], lengths[won])] = True
        left = left[~np.logical_or.reduceat(taken[words], first)]
    return kept
