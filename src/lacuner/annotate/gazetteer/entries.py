"""Dictionary entries in little memory, and what was wrong with the file they come from."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, overload

from lacuner.data import Where
from lacuner.errors import GazetteerError

LONGEST = 1_000
"""Characters in a surface, at most: beyond that it is not a term but a quote that was never closed."""


Weight = str | float | None
"""A weight as a file has it."""


class Entry(NamedTuple):
    """A surface that stands for a label. `weight` is how far it can be trusted, `id` what it is called elsewhere."""

    surface: str
    label: str
    weight: float | None = None
    id: str | None = None
    where: Where | None = None


class GazetteerWarning(GazetteerError):  # noqa: N818 (it says what an error is not)
    """Worth knowing, but nothing was lost: a duplicate, a guessed encoding."""


class Entries(Sequence[Entry]):
    """A sequence of entries that makes them when they are asked for: a million tuples would take too much room.

    Its columns are tuples: with lists of a million strings the garbage collector would be busy all day.
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
        """Empty if no entry has one."""
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

    def __iter__(self) -> Iterator[Entry]:
        return map(self.__getitem__, range(len(self)))


class Gazetteer:
    """What was read from a dictionary file: the entries, and each mistake as an error with file and line.

    A row with a mistake is no entry; `GazetteerWarning`s are about rows that are. `by_document` holds the terms of
    dictionaries that list them document by document.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.entries = Entries(file)
        self.by_document: dict[str, list[Entry]] = {}
        self._problems: list[tuple[int, str, bool]] = []  # as errors they would weigh more than the entries

    def add_problem(self, line: int, sentence: str, *, note: bool = False) -> None:
        """A row was skipped, or, if it is a note, there is something to say about it. Line 0: about the file."""
        self._problems.append((line, sentence, note))

    @property
    def problems(self) -> list[GazetteerError]:
        """All mistakes, by line."""
        return [
            (GazetteerWarning if note else GazetteerError)(sentence, file=self.file, line=line or None)
            for line, sentence, note in sorted(self._problems, key=lambda problem: problem[0])
        ]

    @property
    def skipped(self) -> int:
        """How many rows have a mistake that made them unusable."""
        return sum(not note for _, _, note in self._problems)

    def __len__(self) -> int:
        return len(self.entries) + sum(map(len, self.by_document.values()))


class Collector:
    """Takes rows from the readers of the various formats, and keeps them or says what is wrong with them."""

    def __init__(self, dictionary: Gazetteer, label: str | None, mapping: Mapping[str, str] | None) -> None:
        self.dictionary = dictionary
        self.labels: list[str] = []
        self.lines = array("i")
        self._surfaces: list[str] = []
        self._weights: list[float | None] = []
        self._ids: dict[int, str] = {}
        self._shared: dict[str, str] = {}
        self.label = label
        self.mapping = mapping
        self.place = ""
        """Says where we are in a file that has no lines."""
        self._seen: dict[str, int] = {}
        self._seen_again: dict[tuple[str, str], int] = {}

    def problem(self, line: int, sentence: str, *, note: bool = False) -> None:
        """Something is wrong with this row."""
        self.dictionary.add_problem(line, self.place + sentence, note=note)

    def add(self, line: int, surface: str, label: str, weight: Weight = None, id: str | None = None) -> None:
        """One row. An empty label means: the one that was asked for, if any."""
        entry = self.checked(line, surface, label, weight, id)
        if entry is None:
            return
        number = len(self.labels)
        first = self._first(entry)
        if first < number:
            if id is None or self._ids.get(first) != id:  # the rows of a query repeat an item for each of its aliases
                place = f"line {self.lines[first]}" if line else "another row"
                self.problem(line, f"{entry.surface!r} as {entry.label} is a duplicate of {place}", note=True)
            return
        self._surfaces.append(entry.surface)
        self.labels.append(self._shared.setdefault(entry.label, entry.label))
        self.lines.append(line)
        if entry.id is not None:
            self._ids[number] = entry.id
        if self._weights:
            self._weights.append(entry.weight)
        elif entry.weight is not None:
            self._weights = [*([None] * number), entry.weight]

    def finish(self) -> None:
        """Hand all entries to the dictionary."""
        self.dictionary.entries = Entries(
            self.dictionary.file, self._surfaces, self.labels, self._weights, self._ids, self.lines
        )

    def checked(
        self, line: int, surface: str, label: str, weight: Weight = None, id: str | None = None
    ) -> Entry | None:
        """The row as an entry, or None after its mistake was noted."""
        surface, label = surface.strip(), label.strip()
        kind = label
        if label and self.mapping is not None:
            label = self.mapping.get(label) or self.mapping.get(last_segment(label)) or ""
        else:
            label = label or self.label or ""
        number = parse_weight(weight)
        mistake = None
        if "\0" in surface or "\0" in label:
            mistake = "there is a NUL character in this row"
        elif not surface.isascii() and any("\ud800" <= char <= "\udfff" for char in surface):
            mistake = "the surface has half of a surrogate pair, which is no character"
        elif not surface:
            mistake = "the surface is empty"
        elif len(surface) > LONGEST:
            mistake = f"the surface is longer than {LONGEST:,} characters; is a quote not closed?"
        elif kind and not label:
            mistake = f"the mapping has no label for the class {last_segment(kind)!r}"
        elif not label:
            mistake = f"the label of {surface!r} is empty"
        elif number is not None and not math.isfinite(number):
            mistake = f"the weight {weight!r} of {surface!r} is not a number"
        if mistake is not None:
            self.problem(line, mistake)
            return None
        return Entry(surface, label, number, id or None, Where(self.dictionary.file, line or None))

    def _first(self, entry: Entry) -> int:
        """The number of the first entry with the same surface and label, which may be this one."""
        number = len(self.labels)
        first = self._seen.setdefault(entry.surface, number)
        if first == number or self.labels[first] == entry.label:
            return first
        return self._seen_again.setdefault((entry.surface, entry.label), number)


def last_segment(uri: str) -> str:
    """`Q5` of `http://www.wikidata.org/entity/Q5`; anything that is not a URI stays as it is."""
    return uri.rstrip("/").rsplit("/", 1)[-1].rsplit("#", 1)[-1] if "://" in uri else uri


def parse_weight(weight: Weight) -> float | None:
    """A number, also with a decimal comma; None if there is none, NaN if it is something else."""
    if weight is None or isinstance(weight, (int, float)):
        return None if weight is None else float(weight)
    weight = weight.strip()
    if not weight:
        return None
    try:
        return float(weight.replace(",", ".") if weight.count(",") == 1 and "." not in weight else weight)
    except ValueError:
        return math.nan
