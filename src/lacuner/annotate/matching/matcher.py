"""Match gazetteer entries in text. `matching/__init__.py` has the idea in ten lines.

Where a word ends depends on the script. There is no boundary between two letters, digits or `_` of scripts that put
spaces between words; Chinese, Japanese, Thai, Lao, Khmer and Burmese have a boundary everywhere. Combining marks and
joiners belong to the character before them, and no word starts or ends between the two.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Literal, get_args

from lacuner.annotate.gazetteer.entries import Entry
from lacuner.annotate.matching.automaton import Hit, build_automaton
from lacuner.annotate.matching.normalise import JOINER, character_sets, drop_token_spaces, normalise, to_original
from lacuner.annotate.matching.terms import Case, Spacing, Terms
from lacuner.corpus.intervals import IntervalSet
from lacuner.data import Words
from lacuner.errors import ConfigError

Overlaps = Literal["longest", "all"]


class Matcher:
    """Finds the surfaces of gazetteer entries in texts, as whole words.

    `case`: `exact`; `fold` ignores case (`ß` equals `ss`); `smart` ignores case except for acronyms and common English
    words, whose case must agree with the entry.
    `overlaps`: `longest` keeps the leftmost and then longest matches; `all` keeps every match.
    `stop`: surfaces that are never matched, in any case.
    `spacing`: with `tokens`, white space counts only between two word characters, so that tokenised text (`5 - FU`,
    `Parkinson ' s disease`) matches entries that are written, or were tokenised, in another way.

    The result does not depend on the order of the entries or on duplicates: of entries with the same normal form and
    label, the one with the highest weight counts, then the first in alphabetical order.

    >>> matcher = Matcher([Entry("New York", "LOC"), Entry("York", "LOC"), Entry("US", "LOC")])
    >>> matcher.find("new york tells us")
    [(0, 8, (0,))]
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
                raise ConfigError(f"{name} is {value!r}, but must be {' or '.join(get_args(allowed))}")
        self.entries: Sequence[Entry] = entries if isinstance(entries, Sequence) else list(entries)
        self.overlaps = overlaps
        self.terms = Terms(self.entries, case, spacing, stop)
        self._word, self._attached, _ = character_sets()
        forms = self.terms.build()
        self._has_word_edges = any(form[0] in self._word or form[-1] in self._word for form in forms)
        self._find_terms = build_automaton(forms, folded=case != "exact")

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the entries and build the automaton again: the library's object cannot be pickled."""
        case, stop, spacing = self.terms.case, self.terms.stop, self.terms.spacing
        return partial(Matcher, self.entries, case=case, overlaps=self.overlaps, stop=stop, spacing=spacing), ()

    def find(self, text: str, words: Words | None = None) -> list[tuple[int, int, tuple[int, ...]]]:
        """The matches in a text, by start, longer ones first: start, end, and the matching entries.

        Entries are positions in the gazetteer, one per label. With `words`, only matches that align with words.
        """
        entries_of = self.terms.entries_of
        return [(start, end, entries_of(term, text[start:end])) for term, start, end in self.hits(text, words)]

    def hits(self, text: str, words: Words | None = None) -> list[Hit]:
        """Like `find`, in a lighter form: number of the term in `terms`, start, end."""
        if words:
            return self.hits_in_words(text, words)[0]
        hits = self._candidates(text)
        return select_longest(hits) if self.overlaps == "longest" else sorted(hits, key=_by_start)

    def hits_in_words(self, text: str, words: Words) -> tuple[list[Hit], list[Hit]]:
        """The hits that start and end with a word, and those that do not but would otherwise have been kept."""
        starts, ends = {start for start, _ in words}, {end for _, end in words}
        aligned: list[Hit] = []
        misaligned: list[Hit] = []
        for hit in self._candidates(text):
            (aligned if hit[1] in starts and hit[2] in ends else misaligned).append(hit)
        if self.overlaps == "all":
            return sorted(aligned, key=_by_start), sorted(misaligned, key=_by_start)
        aligned = select_longest(aligned)
        taken = IntervalSet((start, end) for _, start, end in aligned)
        return aligned, [hit for hit in select_longest(misaligned) if not taken.overlaps(hit[1], hit[2])]

    def _candidates(self, text: str) -> list[Hit]:
        """All hits that are whole words, by end, with offsets of the original text."""
        terms = self.terms
        normal = normalise(text, terms.case != "exact")
        if terms.spacing == "tokens":
            normal = drop_token_spaces(normal)
        hits = self._find_terms(normal.text)
        if not hits:
            return []
        if normal.has_marks:
            is_edge = partial(self._is_word_edge, normal.text)
            hits = [hit for hit in hits if is_edge(hit[1]) and is_edge(hit[2])]
        elif self._has_word_edges:  # the same without calls
            word, padded = self._word, normal.text + " "  # the space is at -1 and at the end
            hits = [
                hit
                for hit in hits
                if not (padded[hit[2]] in word and padded[hit[2] - 1] in word)
                and not (padded[hit[1] - 1] in word and padded[hit[1]] in word)
            ]
        if normal.changes:
            hits = [
                (term, *offsets)
                for term, start, end in hits
                if (offsets := to_original(normal.changes, start, end)) is not None
            ]
        if terms.case != "smart":
            return hits
        sensitive, entries_of = terms.case_sensitive, terms.entries_of
        return [hit for hit in hits if not sensitive[hit[0]] or entries_of(hit[0], text[hit[1] : hit[2]])]

    def _is_word_edge(self, text: str, at: int) -> bool:
        """Whether a word may start or end here."""
        if at in (0, len(text)):
            return True
        before = at - 1
        if text[at] in self._attached or text[before] == JOINER:
            return False
        while before >= 0 and text[before] in self._attached:
            before -= 1
        return not (before >= 0 and text[before] in self._word and text[at] in self._word)


def select_longest(hits: Iterable[Hit]) -> list[Hit]:
    """Leftmost-longest selection from hits that are sorted by end."""
    longest_at = {hit[1]: hit for hit in hits}  # of hits with the same start the last is the longest
    selected, free_from = [], 0
    for start in sorted(longest_at):
        if start >= free_from:
            hit = longest_at[start]
            selected.append(hit)
            free_from = hit[2]
    return selected


def _by_start(hit: Hit) -> tuple[int, int]:
    return hit[1], -hit[2]
