"""The terms of a gazetteer: its entries grouped by normal form, in little memory.

A million entries must fit, so there is no object per entry: arrays, and a tuple only where several entries share a
normal form.
"""

from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from lacuner.annotate.gazetteer.entries import Entries, Entry
from lacuner.annotate.matching.automaton import order_for_automaton
from lacuner.annotate.matching.normalise import drop_token_spaces, normalise

COMMON_WORDS = frozenset(Path(__file__).with_name("common_words.txt").read_text("ascii").split())
"""Lower-case English words so common that an entry spelt like one usually matches the word rather than the name.

Our own list, written for this purpose: function words, everyday verbs, nouns and adjectives, and words that occur as
names of genes, companies, places and people (`will`, `may`, `apple`, `reading`, `lead`).
"""

Case = Literal["smart", "fold", "exact"]
Spacing = Literal["given", "tokens"]

MAX_LABELS = 100
"""Labels of a term, about; a match of a term with more of them is unsure, of any type."""
MAX_ACRONYM = 6
"""Longer words in upper case are emphasised rather than abbreviated."""


def is_acronym(surface: str) -> bool:
    """Short, without white space, and at least half of its letters in upper case: `WHO`, `mRNA`, `NaCl`, `Ca`."""
    if len(surface) > MAX_ACRONYM or surface.islower() or not surface.isprintable() or " " in surface:
        return False
    letters = sum(map(str.isalpha, surface))
    return 0 < letters <= 2 * sum(map(str.isupper, surface))


def normalise_surface(surface: str, fold: bool = True, spacing: Spacing = "given") -> str:
    """The normal form of a surface; empty if it has only white space and invisible characters."""
    normal = normalise(surface, fold)
    text = normal.text.strip(" ")
    if spacing == "tokens" and " " in text:
        return drop_token_spaces(normal._replace(text=text)).text
    return text


class Terms:
    """Entries by normal form. A term is the number of a normal form, an entry its position in the gazetteer."""

    def __init__(self, entries: Sequence[Entry], case: Case, spacing: Spacing, stop: Iterable[str]) -> None:
        self.case, self.spacing = case, spacing
        self.stop = frozenset(stop)
        self.stopped = self.empty = 0
        """Number of entries on the stop list, and of those with an empty normal form."""
        self.case_sensitive = bytearray()
        """For each term, whether the case of one of its entries must agree."""
        if not isinstance(entries, Entries):
            weights = [entry.weight for entry in entries]
            has_weights = any(weight is not None for weight in weights)
            surfaces, labels = [entry.surface for entry in entries], [entry.label for entry in entries]
            entries = Entries(None, surfaces, labels, weights if has_weights else ())
        self._surfaces, self.labels, self.weights = entries.surfaces, entries.labels, entries.weights
        self.entry_of = array("i")
        """The entry of a term, if it has only one and its case does not matter; otherwise ~(number of its group)."""
        self.label_of: list[str] = []
        """The label of a term with one entry; empty for the others."""
        self._groups: list[tuple[int, ...]] = []
        self._exact_forms: dict[int, str] = {}  # of the entries whose case must agree

    def build(self) -> list[str]:
        """Fill the tables and return the normal form of each term, in the best order for the automaton."""
        fold, smart, spacing = self.case != "exact", self.case == "smart", self.spacing
        stop = {normalise_surface(surface, True, spacing) for surface in self.stop}
        terms: dict[str, int] = {}
        for number, surface in enumerate(self._surfaces):
            form = normalise_surface(surface, fold, spacing)
            if not form:
                self.empty += 1
                continue
            if stop and (form if fold else normalise_surface(surface, True, spacing)) in stop:
                self.stopped += 1
                continue
            exact = None
            if smart and (form in COMMON_WORDS or (len(form) <= MAX_ACRONYM and surface != surface.lower())):
                unfolded = normalise_surface(surface, False, spacing)
                if form in COMMON_WORDS or is_acronym(unfolded):
                    exact = self._exact_forms[number] = unfolded
            # reuse the surface where it equals its form, which saves a second string
            term = terms.setdefault(surface if form == surface else form, len(terms))
            if term == len(self.entry_of):
                self.entry_of.append(number)
                self.case_sensitive.append(False)
            if exact is not None or self.entry_of[term] != number:
                self._add_to_group(term, number, exact)
        return self._renumber(terms)

    def _renumber(self, terms: dict[str, int]) -> list[str]:
        """Number the terms in the order that is best for the automaton."""
        forms = order_for_automaton(terms)
        order = [terms[form] for form in forms]
        self.entry_of = array("i", [self.entry_of[term] for term in order])
        shared = {label: label for label in self.labels}  # one string per label, however many entries have it
        self.label_of = [shared[self.labels[entry]] if entry >= 0 else "" for entry in self.entry_of]
        self.case_sensitive = bytearray([self.case_sensitive[term] for term in order])
        return forms

    def _add_to_group(self, term: int, number: int, exact: str | None) -> None:
        """Add an entry to a term. Of entries with the same label and case only the best stays."""
        members = [member for member in self._members(term) if member != number]
        if len(members) > MAX_LABELS:
            return
        same = [m for m in members if self.labels[m] == self.labels[number] and self._exact_forms.get(m) == exact]
        if not same:
            members.append(number)
        elif self._rank(number) < self._rank(same[0]):
            members[members.index(same[0])] = number
        if exact is not None:
            self.case_sensitive[term] = True
        if self.entry_of[term] < 0:
            self._groups[~self.entry_of[term]] = tuple(members)
        elif len(members) > 1 or exact is not None:
            self.entry_of[term] = ~len(self._groups)
            self._groups.append(tuple(members))
        else:
            self.entry_of[term] = members[0]

    def _members(self, term: int) -> tuple[int, ...]:
        entry = self.entry_of[term]
        return (entry,) if entry >= 0 else self._groups[~entry]

    def _rank(self, number: int) -> tuple[float, str]:
        """Sort key: the entry with the highest weight first, then in alphabetical order."""
        weight = self.weights[number] if self.weights else None
        return (-weight if weight is not None else 0.0, self._surfaces[number])

    def entries_of(self, term: int, text: str) -> tuple[int, ...]:
        """The entries that match when the term is spelt like `text`: one per label, in gazetteer order."""
        entry = self.entry_of[term]
        if entry >= 0:
            return (entry,)
        members = self._groups[~entry]
        if self.case_sensitive[term]:
            unfolded = normalise_surface(text, False, self.spacing)
            members = tuple(number for number in members if self._exact_forms.get(number, unfolded) == unfolded)
        best: dict[str, int] = {}
        for number in sorted(members, key=self._rank):
            best.setdefault(self.labels[number], number)
        return tuple(sorted(best.values()))
