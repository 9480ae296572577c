"""Finding the terms of a dictionary in a text.

One Aho-Corasick automaton finds every term wherever it stands; what remains is to throw away what is only a part of
a word, and to choose. All that happens on normal forms (see `normal`); offsets are those of the original text.

Where a word ends depends on the script: between two characters there is no boundary if both are letters, numbers or
`_` of scripts that put spaces between words. Chinese, Japanese, Thai, Lao, Khmer and Burmese have one everywhere.
Combining marks and joiners belong to the character before them, and nothing ever ends or begins between the two.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, get_args

from lacuner.annotate.gazetteer.entries import Entry
from lacuner.annotate.matching.automaton import Automaton, Occurrence
from lacuner.annotate.matching.normalise import Normal, normalise, squeeze, to_original
from lacuner.annotate.matching.terms import CASED, WORD_EDGES, WORD_FIRST, WORD_LAST, Case, Spacing, Terms
from lacuner.annotate.matching.unicode_tables import JOINER, characters
from lacuner.data import Words
from lacuner.errors import ConfigError

Overlaps = Literal["longest", "all"]

Hit = Occurrence
"""The matcher's own number of a term, start, end: the light form of a match."""


class Match(NamedTuple):
    """What was found at a place: the numbers of the entries, one a label, in the order of the dictionary."""

    start: int
    end: int
    entries: tuple[int, ...]


class Matcher:
    """Finds the surfaces of entries in texts.

    `case`: `exact`; `fold`: case does not matter (`ß` is `ss`); `smart`: folded, unless the entry is an acronym or a
    common English word, whose case must agree.
    `overlaps`: `longest` takes, from left to right, the longest match at the first place where one begins; `all`
    takes every match.
    `stop`: surfaces that are never matched, whatever their case.
    `spacing`: with `tokens` white space counts only between two word characters, so that a text put together from
    tokens (`5 - FU`, `Parkinson ' s disease`) matches entries written, or tokenised, in another way.

    The result does not depend on the order of the entries, nor on duplicates: of entries with the same normal form
    and label the one with the highest weight counts, then the first in the alphabet.
    """

    def __init__(
        self,
        entries: Iterable[Entry],
        *,
        case: Case = "smart",
        overlaps: Overlaps = "longest",
        stop: Iterable[str] = (),
        spacing: Spacing = "given",
    ) -> None:
        settings = (("case", case, Case), ("overlaps", overlaps, Overlaps), ("spacing", spacing, Spacing))
        for name, value, allowed in settings:
            if value not in get_args(allowed):
                raise ConfigError(f"{name} is {value!r}, but can only be {' or '.join(get_args(allowed))}")
        self.entries: Sequence[Entry] = entries if isinstance(entries, Sequence) else list(entries)
        self.overlaps = overlaps
        self.terms = Terms(self.entries, case, spacing, stop)
        self._word, self._attached, _ = characters()
        self._automaton = Automaton(self.terms.collect(), folded=case != "exact")
        self._edges = {flag & WORD_EDGES for flag in set(self.terms.flags)}

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.entries, self.terms.case, self.overlaps, self.terms.stop, self.terms.spacing)

    def find(self, text: str) -> list[Match]:
        """The matches in a text, by start, the longer first."""
        return [self.match(text, hit) for hit in self.hits(text)]

    def match(self, text: str, hit: Hit) -> Match:
        """The entries of a hit."""
        term, start, end = hit
        return Match(start, end, self.terms.entries_of(term, text[start:end]))

    def hits(self, text: str) -> list[Hit]:
        """The same as `find`, with terms for entries."""
        candidates = self._candidates(text)
        return longest(candidates) if self.overlaps == "longest" else sorted(candidates, key=_by_start)

    def hits_in_words(self, text: str, words: Words) -> tuple[list[Hit], list[Hit]]:
        """The hits whose edges are edges of words, and those that could have been hits if only they were."""
        starts, ends = {start for start, _ in words}, {end for _, end in words}
        fit: list[Hit] = []
        misfit: list[Hit] = []
        for hit in self._candidates(text):
            (fit if hit[1] in starts and hit[2] in ends else misfit).append(hit)
        if self.overlaps == "all":
            return sorted(fit, key=_by_start), sorted(misfit, key=_by_start)
        fit = longest(fit)
        return fit, _apart_from(fit, longest(misfit))

    def _candidates(self, text: str) -> list[Hit]:
        """All hits that do not break words, by end."""
        terms = self.terms
        normal = normalise(text, terms.case != "exact")
        if terms.spacing == "tokens":
            normal = squeeze(normal)
        found = self._automaton.find(normal.text)
        if not found:
            return []
        whole = self._whole_with_marks(normal, found) if normal.marks else self._whole(normal, found)
        if normal.changes:
            whole = [(term, *place) for term, start, end in whole if (place := to_original(normal.changes, start, end))]
        if terms.case != "smart":
            return whole
        flags, entries_of = terms.flags, terms.entries_of
        return [hit for hit in whole if not flags[hit[0]] & CASED or entries_of(hit[0], text[hit[1] : hit[2]])]

    def _whole(self, normal: Normal, found: list[Occurrence]) -> list[Hit]:
        """Those at whose edges the text does not go on with the same word. In a text without marks."""
        if self._edges == {0}:  # no term begins or ends with a word character
            return found
        word, flags = self._word, self.terms.flags
        text = normal.text + " "  # is there for both edges: text[-1], text[len]
        if self._edges == {WORD_EDGES}:  # all do
            return [hit for hit in found if text[hit[2]] not in word and text[hit[1] - 1] not in word]
        return [
            (term, start, end)
            for term, start, end in found
            if not (edges := flags[term] & WORD_EDGES)
            or not ((edges & WORD_FIRST and text[start - 1] in word) or (edges & WORD_LAST and text[end] in word))
        ]

    def _whole_with_marks(self, normal: Normal, found: list[Occurrence]) -> list[Hit]:
        text = normal.text
        return [hit for hit in found if self._edge(text, hit[1]) and self._edge(text, hit[2])]

    def _edge(self, text: str, at: int) -> bool:
        """Whether a word may begin or end here."""
        if at in (0, len(text)):
            return True
        before = at - 1
        if text[at] in self._attached or text[before] == JOINER:
            return False
        while before >= 0 and text[before] in self._attached:
            before -= 1
        return not (before >= 0 and text[before] in self._word and text[at] in self._word)


def longest(hits: Iterable[Hit]) -> list[Hit]:
    """Of hits sorted by end: the longest at the first place where one begins; then on from its end."""
    at = {hit[1]: hit for hit in hits}  # the last one stays, which is the longest
    kept, free = [], 0
    for start in sorted(at):
        if start >= free:
            hit = at[start]
            kept.append(hit)
            free = hit[2]
    return kept


def _apart_from(kept: list[Hit], others: list[Hit]) -> list[Hit]:
    """Those of `others` that overlap none of `kept`, which overlap nothing among themselves."""
    ends = [end for _, _, end in kept]
    apart = []
    for other in others:
        after = bisect_right(ends, other[1])
        if after == len(kept) or kept[after][1] >= other[2]:
            apart.append(other)
    return apart


def _by_start(hit: Hit) -> tuple[int, int]:
    return hit[1], -hit[2]


def _rebuild(
    entries: Sequence[Entry], case: Case, overlaps: Overlaps, stop: Iterable[str], spacing: Spacing
) -> Matcher:
    return Matcher(entries, case=case, overlaps=overlaps, stop=stop, spacing=spacing)
