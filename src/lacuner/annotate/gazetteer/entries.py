"""Gazetteer entries in little memory, and the problems of the file they come from."""

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, overload

from lacuner.data import Where
from lacuner.errors import GazetteerError

PROBLEMS_SHOWN = 20
"""Problems of a file that are listed one by one."""

MAX_SURFACE = 1_000
"""Characters in a surface. A longer one is not a term but an unclosed quote."""

Weight = str | float | None
"""A weight as it is written in a file."""


class Entry(NamedTuple):
    """A surface and its label. `weight` is the confidence in the entry, `id` its identifier in a knowledge base.

    >>> Entry("aspirin", "Chemical", weight=0.9).label
    'Chemical'
    """

    surface: str
    label: str
    weight: float | None = None
    id: str | None = None
    where: Where | None = None


class GazetteerWarning(GazetteerError):  # noqa: N818 (a problem that is no error)
    """A problem that cost no entry, such as a duplicate or a guessed encoding. Collected, never raised.

    >>> str(GazetteerWarning("'aspirin' as Chemical is a duplicate of line 2", file="terms.csv", line=6))
    "terms.csv:6: 'aspirin' as Chemical is a duplicate of line 2"
    """


class Entries(Sequence[Entry]):
    """A sequence that creates its entries on access: a million tuples would take too much memory.

    The columns are tuples, because the garbage collector would traverse long lists again and again.
    """

    def __init__(
        self,
        file: str | None,
        surfaces: Iterable[str] = (),
        labels: Iterable[str] = (),
        weights: Iterable[float | None] = (),
        ids: Mapping[int, str] | None = None,
        lines: Iterable[int] = (),
    ) -> None:
        self.file = file
        self.surfaces, self.labels = tuple(surfaces), tuple(labels)
        self.weights = tuple(weights)
        """Empty if no entry has a weight."""
        self._ids = ids or {}
        self._lines = array("i", lines)

    def __len__(self) -> int:
        return len(self.surfaces)

    @overload
    def __getitem__(self, at: int) -> Entry: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Entry]: ...
    def __getitem__(self, at: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        at = range(len(self))[at]
        weight = self.weights[at] if self.weights else None
        where = None if self.file is None else Where(self.file, self._lines[at] or None)
        return Entry(self.surfaces[at], self.labels[at], weight, self._ids.get(at), where)


@dataclass(slots=True)
class Gazetteer:
    """The entries of a gazetteer file, and its problems as errors with file and line. Made by `load_gazetteer`.

    >>> len(Gazetteer("terms.csv"))
    0
    """

    file: str
    entries: Sequence[Entry] = ()
    by_document: dict[str, list[Entry]] = field(default_factory=dict)
    """The entries of files that list them document by document."""
    problem_rows: list[tuple[int, str, bool]] = field(default_factory=list)
    """Line (0: the whole file), problem, whether the row was used: exceptions would take more memory than entries."""

    @property
    def problems(self) -> list[GazetteerError]:
        """All errors and warnings, by line."""
        return [
            (GazetteerWarning if warning else GazetteerError)(problem, file=self.file, line=line or None)
            for line, problem, warning in sorted(self.problem_rows, key=lambda row: row[0])
        ]

    @property
    def skipped(self) -> int:
        """Number of rows that could not be used."""
        return sum(not warning for _, _, warning in self.problem_rows)

    def __len__(self) -> int:
        return len(self.entries) + sum(map(len, self.by_document.values()))

    def describe_counts(self, entries: int) -> str:
        """This number of entries, and that of the rows that were skipped."""
        rows = self.skipped
        return (
            f"{entries:,} {'entry' if entries == 1 else 'entries'}, {rows:,} {'row' if rows == 1 else 'rows'} skipped"
        )

    def describe_for_tagger(self) -> list[str]:
        """The first problems, and how many entries a tagger uses: those for single documents are of no use to it.

        >>> gazetteer = Gazetteer("terms.csv", [Entry("Halden", "LOC")], problem_rows=[(3, "no label", False)])
        >>> gazetteer.describe_for_tagger()
        ['terms.csv:3: no label', 'read terms.csv: 1 entry, 1 row skipped']
        """
        sentences = [str(problem) for problem in self.problems]
        if len(sentences) > PROBLEMS_SHOWN:
            sentences[PROBLEMS_SHOWN:] = [f"{self.file}: {len(sentences) - PROBLEMS_SHOWN:,} more problems"]
        entries = len(self.entries)
        counts = self.describe_counts(entries)
        if self.by_document:
            counts += f"; {len(self) - entries:,} entries for single documents are not used"
        return [*sentences, f"read {self.file}: {counts}"]


class GazetteerBuilder:
    """Checks the rows that the readers pass to it, and collects entries and problems.

    `label` is for rows without one. `mapping` gives the label of each class; rows of other classes are skipped.
    """

    def __init__(self, file: str, label: str | None, mapping: Mapping[str, str] | None) -> None:
        self.file, self.label, self.mapping = file, label, mapping
        self.labels: list[str] = []
        self.lines = array("i")
        self.by_document: dict[str, list[Entry]] = {}
        self.row_name = ""
        """Prefix of problems in files without lines, such as `row 7: `."""
        self._problem_rows: list[tuple[int, str, bool]] = []
        self._surfaces: list[str] = []
        self._weights: list[float | None] = []
        self._ids: dict[int, str] = {}
        self._shared_labels: dict[str, str] = {}
        self._first_entry: dict[str, int] = {}
        self._first_with_label: dict[tuple[str, str], int] = {}  # only for surfaces with several labels

    def add_problem(self, line: int, problem: str, *, warning: bool = False) -> None:
        """Record that a row was skipped or, with `warning`, that something is odd about it. Line 0: the whole file."""
        self._problem_rows.append((line, self.row_name + problem, warning))

    def add(self, line: int, surface: str, label: str, weight: Weight = None, id: str | None = None) -> None:
        """Add one row, unless it has an error or is a duplicate."""
        entry = self.check(line, surface, label, weight, id)
        if entry is None:
            return
        number = len(self.labels)
        first = self._first_equal(entry)
        if first < number:
            if id is None or self._ids.get(first) != id:  # SPARQL results repeat an item for each of its aliases
                other = f"line {self.lines[first]}" if line else "another row"
                self.add_problem(line, f"{entry.surface!r} as {entry.label} is a duplicate of {other}", warning=True)
            return
        self._surfaces.append(entry.surface)
        self.labels.append(self._shared_labels.setdefault(entry.label, entry.label))
        self.lines.append(line)
        if entry.id is not None:
            self._ids[number] = entry.id
        if self._weights:
            self._weights.append(entry.weight)
        elif entry.weight is not None:
            self._weights = [*([None] * number), entry.weight]

    def _first_equal(self, entry: Entry) -> int:
        """The number of the first entry with this surface and label; the next free number if there is none."""
        number = len(self.labels)
        first = self._first_entry.setdefault(entry.surface, number)
        if first == number or self.labels[first] == entry.label:
            return first
        return self._first_with_label.setdefault((entry.surface, entry.label), number)

    def finish(self) -> Gazetteer:
        """The gazetteer of all entries and problems added so far."""
        entries = Entries(self.file, self._surfaces, self.labels, self._weights, self._ids, self.lines)
        return Gazetteer(self.file, entries, self.by_document, self._problem_rows)

    def check(self, line: int, surface: str, label: str, weight: Weight = None, id: str | None = None) -> Entry | None:
        """The row as an entry, or None after recording its error."""
        surface, label = surface.strip(), label.strip()
        kind = label
        if label and self.mapping is not None:
            label = self.mapping.get(label) or self.mapping.get(last_segment(label)) or ""
        else:
            label = label or self.label or ""
        number = parse_weight(weight)
        problem = None
        if "\0" in surface or "\0" in label:
            problem = "this row has a NUL character"
        elif _has_surrogate(surface) or _has_surrogate(label) or _has_surrogate(id or ""):
            problem = "this row has half of a surrogate pair, which is not a character"
        elif not surface:
            problem = "the surface is empty"
        elif len(surface) > MAX_SURFACE:
            problem = f"the surface is longer than {MAX_SURFACE:,} characters; is a quote not closed?"
        elif kind and not label:
            problem = f"the mapping has no label for the class {last_segment(kind)!r}"
        elif not label:
            problem = f"the label of {surface!r} is empty: --label is for rows without one"
        elif number is not None and not math.isfinite(number):
            problem = f"the weight {str(weight)[:40]!r} of {surface!r} is not a number"
        if problem is not None:
            self.add_problem(line, problem)
            return None
        return Entry(surface, label, number, id or None, Where(self.file, line or None))


def _has_surrogate(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text)


def last_segment(uri: str) -> str:
    """The last part of a URI; any other string stays as it is.

    >>> last_segment("https://example.org/entity/Q5"), last_segment("and/or")
    ('Q5', 'and/or')
    """
    return uri.rstrip("/").rsplit("/", 1)[-1].rsplit("#", 1)[-1] if "://" in uri else uri


def parse_weight(weight: Weight) -> float | None:
    """A weight as a number, also with a decimal comma; None if empty, NaN if not a number.

    >>> parse_weight("0,8"), parse_weight(" "), parse_weight("high")
    (0.8, None, nan)
    """
    if isinstance(weight, str):
        weight = weight.strip().replace(",", ".") if weight.count(",") == 1 and "." not in weight else weight.strip()
    if weight is None or weight == "":
        return None
    try:
        return float(weight)
    except (ValueError, OverflowError):  # an integer of 400 digits is too large
        return math.nan
