"""Which entries of a dictionary do the damage in this corpus.

A handful of entries ruin the precision of most dictionaries, and nobody knows which. Without gold there is only
suspicion: of entries with several labels, common words, one or two characters, numbers, and whatever matches far more
often than the rest. With gold it is known.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from lacuner.annotate.matching.terms import is_common_word, normalise_surface
from lacuner.annotate.matching.unicode_tables import character_sets
from lacuner.annotate.sources import Source
from lacuner.annotate.statistics import LabellingStatistics
from lacuner.data import Document, Where

SEVERAL = "several labels"
COMMON = "a common word"
SHORT = "one or two characters"
NUMBER = "a number"
FREQUENT = "one of the most frequent matches"
WRONG = "mostly wrong in gold"

MANY_SHARE = 0.01
"""An entry is frequent if it has this share of all matches (and ten times the average)."""

ENOUGH = 3
"""With fewer matches in gold nobody can say how good an entry is."""


class LintRow(NamedTuple):
    """One suspicious term. `right` and `wrong` are None if gold says nothing of it."""

    surface: str
    labels: tuple[str, ...]
    matches: int
    reasons: tuple[str, ...]
    where: Where | None
    right: int | None = None
    wrong: int | None = None
    stop: bool = False
    """Whether we would put it on the stop list."""

    @property
    def precision(self) -> float | None:
        if self.right is None or self.wrong is None or not self.right + self.wrong:
            return None
        return self.right / (self.right + self.wrong)


@dataclass(slots=True)
class EntryPrecision:
    """Weak spans held against gold, term by term."""

    right: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)

    def add(self, weak: Document, gold: Document) -> None:
        """Count one document: a span is right if gold has it, with the same label."""
        known = {span[:3] for span in gold.spans}
        for span in weak.spans:
            form = normalise_surface(weak.text[span.start : span.end], True, "given")
            (self.right if span[:3] in known else self.wrong)[form] += 1


class _Term(NamedTuple):
    surface: str
    labels: tuple[str, ...]
    matches: int
    where: Where | None
    together: bool = False
    """Whether a place can have several of the labels."""


def lint(
    source: Source, statistics: LabellingStatistics, precision: EntryPrecision | None = None, most: int = 100
) -> list[LintRow]:
    """The entries of a dictionary source that do, or may do, most damage; the worst first.

    The worst are those with the most wrong matches in gold; without gold, those with most matches and most reasons
    for suspicion. Entries that were never found do no harm and are not listed.
    """
    terms = _terms(source, statistics)
    total = sum(term.matches for term in terms.values())
    threshold = max(MANY_SHARE * total, 10 * total / max(len(terms), 1))
    rows = []
    for form, term in terms.items():
        reasons = list(suspicions(form, term.labels if term.together else ()))
        if term.matches >= threshold:
            reasons.append(FREQUENT)
        right = wrong = None
        stop = any(reason in (COMMON, SHORT, NUMBER) for reason in reasons)
        if precision is not None and precision.right[form] + precision.wrong[form]:
            right, wrong = precision.right[form], precision.wrong[form]
            enough, bad = right + wrong >= ENOUGH, wrong > right
            if enough and bad:
                reasons.append(WRONG)
            stop = bad and (enough or stop)
        if reasons:
            rows.append(
                LintRow(term.surface, term.labels, term.matches, tuple(reasons), term.where, right, wrong, stop)
            )
    return sorted(rows, key=_damage)[:most]


def suspicions(form: str, labels: Iterable[str] = ()) -> Iterable[str]:
    """What is suspicious about a term by itself."""
    if len(set(labels)) > 1:
        yield SEVERAL
    if is_common_word(form):
        yield COMMON
    word = character_sets().word
    # in Chinese and Japanese two characters are an ordinary word
    if len(form) < 2 or (len(form) == 2 and all(char in word for char in form)):
        yield SHORT
    if any(map(str.isdigit, form)) and not any(map(str.isalpha, form)):
        yield NUMBER


def _damage(row: LintRow) -> tuple[float, float, str]:
    """What comes first is worse. That a term is frequent says little by itself."""
    suspicion = sum(0.2 if reason == FREQUENT else 1.0 for reason in row.reasons)
    known = float(row.wrong) if row.wrong is not None else 0.0
    return -known, -row.matches * suspicion, row.surface


def _terms(source: Source, statistics: LabellingStatistics) -> dict[str, _Term]:
    """The entries that were found, those of the same normal form together."""
    found: dict[tuple[int, str], _Term] = {}
    for number, times in sorted(statistics.entries.get(source.name, Counter()).items()):
        entry = source.entries[number]
        key = bisect_right(source.starts, number), normalise_surface(entry.surface, True, "given")
        before = found.get(key)
        if before is None:
            found[key] = _Term(entry.surface, (entry.label,), times, entry.where)
        elif entry.label in before.labels:  # spelt in another way, hence found elsewhere
            found[key] = before._replace(matches=before.matches + times)
        else:  # found together
            labels = (*before.labels, entry.label)
            found[key] = _Term(before.surface, labels, max(before.matches, times), before.where, together=True)
    terms: dict[str, _Term] = {}
    for (_, form), term in found.items():
        if form in terms:  # in the list of another document
            before = terms[form]
            worse = max(before, term, key=lambda each: each.together)
            labels = tuple(dict.fromkeys((*before.labels, *term.labels)))
            term = worse._replace(labels=labels, matches=before.matches + term.matches)
        terms[form] = term
    return terms


def format_stop_list(rows: Iterable[LintRow]) -> str:
    """A stop list to edit: a term a line, and after a tab why. `read_stop_list` reads it."""
    lines = []
    for row in rows:
        if row.stop:
            gold = "" if row.precision is None else f", right in {row.precision:.0%} of gold"
            lines.append(f"{row.surface}\t{row.matches:,} matches{gold}: {', '.join(row.reasons)}\n")
    return "".join(lines)
