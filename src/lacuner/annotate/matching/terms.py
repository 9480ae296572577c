"""The terms of a dictionary: its entries by normal form, in little memory.

A million entries must fit, so there is no object an entry here: arrays, and a tuple only where several entries share
a normal form.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

from lacuner.annotate.gazetteer.entries import Entries, Entry
from lacuner.annotate.matching.automaton import best_order
from lacuner.annotate.matching.common_words import COMMON_WORDS
from lacuner.annotate.matching.normalise import normalise, squeeze
from lacuner.annotate.matching.unicode_tables import characters

Case = Literal["smart", "fold", "exact"]
Spacing = Literal["given", "tokens"]

ACRONYM = 6
"""Longer words in upper case are shouted rather than abbreviated."""

WORD_FIRST, WORD_LAST, WORD_EDGES, CASED = 1, 2, 3, 4
"""Of a term: it begins with a word character, ends with one, either; has an entry whose case must agree."""


def is_acronym(surface: str) -> bool:
    """Short, without white space, and at least half of its letters in upper case: `WHO`, `mRNA`, `NaCl`, `Ca`."""
    if len(surface) > ACRONYM or surface.islower() or not surface.isprintable() or " " in surface:
        return False
    letters = sum(map(str.isalpha, surface))
    return 0 < letters <= 2 * sum(map(str.isupper, surface))


def is_common_word(surface: str) -> bool:
    """One of the words of `common_words`, in whatever case."""
    return surface.lower() in COMMON_WORDS


def normalise_surface(surface: str, fold: bool, spacing: Spacing) -> str:
    """The normal form of a surface; empty if nothing is left of it."""
    normal = normalise(surface, fold)
    text = normal.text.strip(" ")
    if spacing == "tokens" and " " in text:
        return squeeze(normal._replace(text=text)).text
    return text


class Terms:
    """Entries by normal form. A term is the number of a form, an entry the number of an entry in `entries`."""

    def __init__(self, entries: Sequence[Entry], case: Case, spacing: Spacing, stop: Iterable[str]) -> None:
        self.case, self.spacing = case, spacing
        self.stop = frozenset(stop)
        self.stopped: list[int] = []
        self.empty: list[int] = []
        self.flags = bytearray()
        if not isinstance(entries, Entries):
            weights = [entry.weight for entry in entries]
            some = any(weight is not None for weight in weights)
            columns = (
                [entry.surface for entry in entries],
                [entry.label for entry in entries],
                weights if some else (),
            )
            entries = Entries(None, *columns)
        self._surfaces, self.labels, self.weights = entries.surfaces, entries.labels, entries.weights
        self.of = array("i")
        """A term's entry if there is only one and its case does not matter; else the complement of a group's number."""
        self.label_of: list[str] = []
        """The label of a term that has one entry; empty for the others."""
        self.all_single = True
        """Whether all terms are such."""
        self._groups: list[tuple[int, ...]] = []
        self._exact: dict[int, str] = {}  # the entries whose case must agree

    def collect(self) -> list[str]:
        """Fill the tables; returns the form of each term."""
        fold, smart, spacing = self.case != "exact", self.case == "smart", self.spacing
        stop = {normalise_surface(surface, True, spacing) for surface in self.stop}
        terms: dict[str, int] = {}
        for number, surface in enumerate(self._surfaces):
            form = normalise_surface(surface, fold, spacing)
            if not form:
                self.empty.append(number)
                continue
            if stop and (form if fold else normalise_surface(surface, True, spacing)) in stop:
                self.stopped.append(number)
                continue
            exact = None
            if smart and (form in COMMON_WORDS or (len(form) <= ACRONYM and surface != surface.lower())):
                plain = normalise_surface(surface, False, spacing)
                if form in COMMON_WORDS or is_acronym(plain):
                    exact = self._exact[number] = plain
            # an equal string that is there already takes no second room
            term = terms.setdefault(surface if form == surface else form, len(terms))
            if term == len(self.of):
                self.of.append(number)
                self.flags.append(_flags(form))
            if exact is not None or self.of[term] != number:
                self._join(term, number, exact)
        return self._sort(terms)

    def _sort(self, terms: dict[str, int]) -> list[str]:
        """Number the terms in the order that is best for the automaton."""
        forms = best_order(terms)
        order = [terms[form] for form in forms]
        self.of = array("i", [self.of[term] for term in order])
        one = {label: label for label in self.labels}  # each label once, however many entries have it
        self.label_of = [one[self.labels[entry]] if entry >= 0 else "" for entry in self.of]
        self.all_single = min(self.of, default=0) >= 0
        self.flags = bytearray([self.flags[term] for term in order])
        return forms

    def _join(self, term: int, number: int, exact: str | None) -> None:
        """One more entry for a term; of those alike in label and case the best stays."""
        members = tuple(member for member in self._members(term) if member != number)
        for place, other in enumerate(members):
            if self.labels[other] == self.labels[number] and self._exact.get(other) == exact:
                if self._rank(number) < self._rank(other):
                    members = (*members[:place], number, *members[place + 1 :])
                break
        else:
            members = (*members, number)
        if exact is not None:
            self.flags[term] |= CASED
        if self.of[term] < 0:
            self._groups[~self.of[term]] = members
        elif len(members) > 1 or exact is not None:
            self.of[term] = ~len(self._groups)
            self._groups.append(members)
        else:
            self.of[term] = members[0]

    def _members(self, term: int) -> tuple[int, ...]:
        of = self.of[term]
        return (of,) if of >= 0 else self._groups[~of]

    def _rank(self, number: int) -> tuple[float, str]:
        """What comes first is better."""
        weight = self.weights[number] if self.weights else None
        return (-weight if weight is not None else 0.0, self._surfaces[number])

    def entries_of(self, term: int, text: str) -> tuple[int, ...]:
        """The entries that a term means when it is spelt like this: one a label, in the dictionary's order."""
        of = self.of[term]
        if of >= 0:
            return (of,)
        members = self._groups[~of]
        if self.flags[term] & CASED:
            plain = normalise_surface(text, False, self.spacing)
            members = tuple(number for number in members if self._exact.get(number, plain) == plain)
        best: dict[str, int] = {}
        for number in sorted(members, key=self._rank):
            best.setdefault(self.labels[number], number)
        return tuple(sorted(best.values()))


@lru_cache(maxsize=1 << 12)
def _ends(first: str, last: str) -> int:
    word = characters().word
    return (WORD_FIRST if first in word else 0) | (WORD_LAST if last in word else 0)


def _flags(form: str) -> int:
    attached = characters().attached
    last = len(form) - 1
    while last and form[last] in attached:
        last -= 1
    return _ends(form[0], form[last])
