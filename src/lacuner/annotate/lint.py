"""Lint a gazetteer: find the entries that probably cost precision in this corpus.

A handful of entries causes most false positives of a typical gazetteer. Without gold there are only heuristics: entries
with several labels, common words, one or two characters, numbers, unusually frequent matches, and matches that are
mostly inside a longer phrase. With gold the precision of each entry is measured.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from lacuner.annotate.boundaries import MIN_REPEATED, longer_phrases
from lacuner.annotate.matching.normalise import character_sets
from lacuner.annotate.matching.terms import COMMON_WORDS, normalise_surface
from lacuner.annotate.sources import Source
from lacuner.annotate.statistics import LabellingStatistics
from lacuner.data import Document, Where

# Why an entry is suspicious:
SEVERAL = "several labels"
COMMON = "a common word"
SHORT = "one or two characters"
NUMBER = "a number"
FREQUENT = "one of the most frequent matches"
WRONG = "mostly wrong in gold"

MAX_ROWS = 100
"""Suspicious entries that are listed, at most."""
FREQUENT_SHARE = 0.01
"""An entry is frequent if it has this share of all matches, and ten times the average number."""

MIN_GOLD_MATCHES = 3
"""With fewer matches in gold the precision of an entry is not a reason by itself."""


class LintRow(NamedTuple):
    """A suspicious entry. `right` and `wrong` count its matches against gold; None if gold has none of them.

    >>> LintRow("lead", ("Chemical",), 4, ("a common word",), where=None, right=1, wrong=3).precision
    0.25
    """

    surface: str
    labels: tuple[str, ...]
    matches: int
    reasons: tuple[str, ...]
    where: Where | None
    right: int | None = None
    wrong: int | None = None
    stop: bool = False
    """Whether it is suggested for the stop list."""
    longer: tuple[tuple[str, int], ...] = ()
    """If its matches are mostly inside longer phrases: these phrases and how often they occur."""

    @property
    def precision(self) -> float | None:
        if self.right is None or self.wrong is None or not self.right + self.wrong:
            return None
        return self.right / (self.right + self.wrong)


@dataclass(slots=True)
class EntryPrecision:
    """Correct and wrong weak spans per normalised surface, counted against gold.

    >>> from lacuner.data import Span
    >>> precision = EntryPrecision()
    >>> weak = Document("1", "Lead the way", spans=(Span(0, 4, "Chemical"),))
    >>> precision.add(weak, gold=Document("1", "Lead the way"))
    >>> precision.wrong["lead"]
    1
    """

    right: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)

    def add(self, weak: Document, gold: Document) -> None:
        """Count one document. A span is right if gold has it with the same label."""
        gold_keys = {span.key for span in gold.spans}
        for span in weak.spans:
            form = normalise_surface(weak.text[span.start : span.end])
            (self.right if span.key in gold_keys else self.wrong)[form] += 1


def lint(source: Source, statistics: LabellingStatistics, precision: EntryPrecision | None = None) -> list[LintRow]:
    """The suspicious entries of a gazetteer source, worst first: at most `MAX_ROWS`, all with a match.

    Longer phrases are found only if `statistics.neighbours` was collected. They do not put an entry on the stop list,
    not even with gold: the entry is not wrong, its boundary is.
    With gold (`precision`) the entries with the most wrong matches come first, otherwise those with the most matches
    and reasons.

    >>> from lacuner.annotate import Entry, annotate, gazetteer_source
    >>> source, statistics = gazetteer_source([Entry("will", "PER"), Entry("Teel", "PER")]), LabellingStatistics()
    >>> weak = list(annotate([Document("1", "Teel will.")], [source], statistics=statistics))
    >>> [(row.surface, row.reasons) for row in lint(source, statistics)]
    [('will', ('a common word',))]
    """
    terms = _matched_terms(source, statistics)
    total = sum(term.matches for term in terms.values())
    frequent = max(FREQUENT_SHARE * total, 10 * total / max(len(terms), 1))
    longer = {}
    if statistics.neighbours is not None:
        surfaces = {form: term.surface for form, term in terms.items()}
        longer = longer_phrases(statistics.neighbours, source.name, source.entries, surfaces)
    rows = []
    for form, term in terms.items():
        reasons = [*term.reasons, *_reasons(form)]
        stop = any(reason in (COMMON, SHORT, NUMBER) for reason in reasons)
        if term.matches >= frequent:
            reasons.append(FREQUENT)
        right = wrong = None
        if precision is not None and precision.right[form] + precision.wrong[form]:
            right, wrong = precision.right[form], precision.wrong[form]
            enough, mostly_wrong = right + wrong >= MIN_GOLD_MATCHES, wrong > right
            if enough and mostly_wrong:
                reasons.append(WRONG)
            stop = mostly_wrong and (stop or (enough and form not in longer))
        if form in longer:
            reasons.append(longer[form].reason)
            term = term._replace(longer=longer[form].phrases)
        if reasons:
            rows.append(term._replace(reasons=tuple(reasons), right=right, wrong=wrong, stop=stop))
    return sorted(rows, key=_worst_first)[:MAX_ROWS]


def _reasons(form: str) -> Iterator[str]:
    """Why a term is suspicious by itself."""
    if form in COMMON_WORDS:
        yield COMMON
    word = character_sets().word
    # in Chinese and Japanese two characters are an ordinary word
    if len(form) < 2 or (len(form) == 2 and all(char in word for char in form)):
        yield SHORT
    if any(map(str.isdigit, form)) and not any(map(str.isalpha, form)):
        yield NUMBER


def _worst_first(row: LintRow) -> tuple[int, float, str]:
    """Sort key. Being frequent alone is weak evidence, and a longer phrase is often right without its first word."""
    suspicion = sum(0.2 if reason == FREQUENT else 1.0 for reason in row.reasons) - 0.5 * bool(row.longer)
    return -(row.wrong or 0), -row.matches * suspicion, row.surface


def _matched_terms(source: Source, statistics: LabellingStatistics) -> dict[str, LintRow]:
    """The entries with matches, by normal form; the reason is `SEVERAL` if one match can have several labels."""
    by_list: dict[tuple[int, str], LintRow] = {}  # documents may have lists of their own
    for number, times in sorted(statistics.entries[source.name].items()):
        entry = source.entries[number]
        key = bisect_right(source.starts, number), normalise_surface(entry.surface)
        term = by_list.get(key)
        if term is None:
            by_list[key] = LintRow(entry.surface, (entry.label,), times, (), entry.where)
        elif entry.label in term.labels:  # another spelling, matched at other places
            by_list[key] = term._replace(matches=term.matches + times)
        else:  # another label, matched at the same places
            labels, matches = (*term.labels, entry.label), max(term.matches, times)
            by_list[key] = term._replace(labels=labels, matches=matches, reasons=(SEVERAL,))
    terms: dict[str, LintRow] = {}
    for (_, form), term in by_list.items():
        if form in terms:
            other = terms[form]
            worse = max(other, term, key=lambda candidate: len(candidate.reasons))
            labels = tuple(dict.fromkeys((*other.labels, *term.labels)))
            term = worse._replace(labels=labels, matches=other.matches + term.matches)
        terms[form] = term
    return terms


def format_stop_list(rows: Iterable[LintRow]) -> str:
    """A suggested stop list to edit: one surface per line, and the reasons after a tab. `read_stop_list` reads it.

    >>> format_stop_list([LintRow("Will", ("PER",), 9, ("a common word",), where=None, stop=True)])
    'Will\\t9 matches: a common word\\n'
    >>> format_stop_list([LintRow("Grant", ("PER",), 1, ("a common word",), where=None, stop=True)])
    'Grant\\t1 match: a common word\\n'
    """
    lines = []
    for row in rows:
        if row.stop:
            gold = "" if row.precision is None else f", right in {row.precision:.0%} of gold"
            matches = "1 match" if row.matches == 1 else f"{row.matches:,} matches"
            lines.append(f"{row.surface}\t{matches}{gold}: {', '.join(row.reasons)}\n")
    return "".join(lines)


def format_longer_phrases(rows: Iterable[LintRow]) -> str:
    """Suggested gazetteer entries: each longer phrase that occurs repeatedly and its label, as TSV lines to edit.

    >>> longer = (("mild hearing loss", 5), ("odd hearing loss", 1))
    >>> format_longer_phrases([LintRow("hearing loss", ("Disease",), 6, (), where=None, longer=longer)])
    'mild hearing loss\\tDisease\\n'
    """
    lines = [
        f"{phrase}\t{label}\n"
        for row in rows
        for phrase, times in row.longer
        if times >= MIN_REPEATED
        for label in row.labels
    ]
    return "".join(lines)
