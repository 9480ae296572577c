"""Dictionaries in columns, as spreadsheets write them, and plain lists of terms."""

from __future__ import annotations

import csv
import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from lacuner.annotate.gazetteer.entries import LONGEST, Collector, last_segment

SEPARATORS = {"\t": "tab", ";": "semicolon", ",": "comma", "|": "bar"}
_SURFACE = (
    *("surface", "term", "name", "text", "pattern", "phrase", "mention", "entity", "word", "string", "synonym"),
    *("begriff", "wort", "bezeichnung", "terme", "nom", "mot", "término", "nombre", "palabra", "termine", "nome"),
    *("术语", "名称", "词", "词语", "用語", "名前"),
)
_LABEL = (
    *("label", "type", "class", "category", "tag", "entity_type", "entity type", "classlabel"),
    *("typ", "klasse", "kategorie", "étiquette", "classe", "catégorie", "etiqueta", "tipo", "clase", "categoría"),
    *("etichetta", "categoria", "标签", "类型", "类别", "種類"),
)
_WEIGHT = ("weight", "score", "confidence", "probability")
_ID = ("id", "identifier", "uri", "iri", "code", "item", "qid", "cui")
_ITEM_LABEL = ("itemlabel", "label", "name", "item_label")
_ALIAS = ("itemaltlabel", "altlabel", "alias", "aliases", "item_alt_label", "itemalias")
_NAMES = frozenset((*_SURFACE, *_LABEL, *_WEIGHT, *_ID))
_IN_ONE_CELL = ("itemaltlabel", "altlabel", "item_alt_label")
_CLASS = ("class", "classlabel", "type", "typelabel", "class_label")
_SAMPLE = 200

LONGEST_ROW = 10 * LONGEST
"""Characters in a row whose cells have line breaks, at most: beyond that a quote was never closed."""

Row = tuple[int, list[str]]
"""The number of the line a row begins on, and its cells."""


class _Columns(NamedTuple):
    """Which column is what; None if there is no such column."""

    surface: int
    label: int | None
    weight: int | None
    id: int | None
    width: int


def read_terms(text: str, collector: Collector) -> None:
    """A term a line."""
    for number, line in enumerate(lines(text), 1):
        if "\t" in line:
            collector.problem(number, "there is a tab in this term; is this a table, and should be read as tsv?")
        elif line.strip():
            collector.add(number, line, "")


def read_table(text: str, collector: Collector, separator: str | None = None) -> None:
    """Rows of surface and label, with a header or without."""
    named, _, rest = text.partition("\n")
    skipped = 0
    if separator is None and named.lower().startswith("sep=") and named[4:5] in SEPARATORS:
        separator, text, skipped = named[4], rest, 1  # a line that tells spreadsheets how to read the file
    if separator is None:
        separator = _guess_separator(text)
    rows = _rows(text, separator, collector, skipped)
    first = next(rows, None)
    if first is None:
        return
    header = [cell.strip().lower() for cell in first[1]]
    if "item" in header and any(name in header for name in _ITEM_LABEL):
        _read_query(rows, header, collector)
        return
    columns = _named_columns(header, collector)
    if columns is None and all(name in _NAMES for name in header):
        missing = "terms (surface)" if _find(header, _SURFACE) is None else "labels (label), nor is one given for all"
        collector.problem(first[0], f"this header names no column of {missing}")
        return
    sample = [*islice(rows, _SAMPLE)]
    if columns is None:
        sample = [first, *sample]
        columns = _counted_columns(sample, collector)
    for line, cells in sample:
        if len(cells) > 1 and all(cell.strip().lower() in _NAMES for cell in cells):
            collector.problem(line, "this looks like a header, but it is not the first row")
        else:
            _add_row(line, cells, columns, separator, collector)
    for line, cells in rows:
        _add_row(line, cells, columns, separator, collector)
    _doubt_columns(collector, None if columns.label is None else columns.label + 1)


def _add_row(line: int, cells: list[str], columns: _Columns, separator: str, collector: Collector) -> None:
    if len(cells) < columns.width and (columns.label is None or len(cells) <= columns.label):
        other = next((name for sign, name in SEPARATORS.items() if sign != separator and sign in "".join(cells)), None)
        hint = f" (is a {other} used instead of a {SEPARATORS[separator]}?)" if other else ""
        if columns.label is not None and collector.label is None:
            wanted = f"{columns.label + 1} columns are needed, separated by a {SEPARATORS[separator]}"
            wanted += ", or one label for all" if len(cells) == 1 and not hint else ""
            collector.problem(line, f"this row has {_count(cells)}, but {wanted}{hint}")
            return
    if len(cells) > columns.width:
        hint = "; is a field with a separator in it not quoted?" if separator != "\t" else ""
        collector.problem(line, f"this row has {_count(cells)}, the others have {columns.width}{hint}")
        return
    collector.add(
        line,
        _cell(cells, columns.surface),
        _cell(cells, columns.label),
        _cell(cells, columns.weight),
        _cell(cells, columns.id) or None,
    )


def _count(cells: list[str]) -> str:
    return f"{len(cells)} column{'s' if len(cells) != 1 else ''}"


def _cell(cells: Sequence[str], at: int | None) -> str:
    return cells[at] if at is not None and at < len(cells) else ""


def _named_columns(header: list[str], collector: Collector) -> _Columns | None:
    """The columns a header names; None if the first row is no header."""
    surface, label = _find(header, _SURFACE), _find(header, _LABEL)
    if surface is None or (label is None and collector.label is None):
        return None
    return _Columns(surface, label, _find(header, _WEIGHT), _find(header, _ID), len(header))


def _find(header: list[str], names: Sequence[str]) -> int | None:
    return next((header.index(name) for name in names if name in header), None)


def _counted_columns(sample: list[Row], collector: Collector) -> _Columns:
    """Without a header: surface, label, then a weight if all are numbers, else an id."""
    width = Counter(len(cells) for _, cells in sample).most_common(1)[0][0]
    if width == 1 and collector.label is not None:
        return _Columns(0, None, None, None, 1)
    width = max(width, 2)
    thirds = [cells[2].strip().replace(",", ".") for _, cells in sample if len(cells) > 2]
    numbers = bool(thirds) and all(_is_number(third) for third in thirds if third)
    more = 3 if width > 3 else None
    return _Columns(0, 1, 2 if numbers else more, more if numbers else 2, width)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _doubt_columns(collector: Collector, column: int | None) -> None:
    """Say so if the labels do not look like labels."""
    labels = Counter(collector.labels)
    if column is None or not labels:
        return
    line, first = collector.lines[0], collector.labels[0]
    if len(labels) > 100 and 2 * len(labels) > labels.total():
        sentence = f"there are {len(labels):,} different labels in column {column}; is this the column of labels?"
        collector.problem(line, sentence, note=True)
        return
    others = [times for label, times in labels.items() if label != first]
    if labels.total() > 2 and labels[first] == 1 and others and min(others) > 1:
        sentence = f"only this row has the label {first!r}; if it is a header, name its columns surface and label"
        collector.problem(line, sentence, note=True)


def _guess_separator(text: str) -> str:
    """The separator that gives most rows the same number of columns, two or more; a comma if none does."""
    sample = [line for line in islice(lines(text), _SAMPLE) if line.strip()]
    best, most = ",", 0
    for separator in SEPARATORS:
        widths = Counter(len(_cells(line, separator) or ()) for line in sample)
        alike = max((times for width, times in widths.items() if width > 1), default=0)
        if alike > most:
            best, most = separator, alike
    return best


def lines(text: str) -> Iterator[str]:
    """Lines without their ends, not all in memory at once."""
    start, size = 0, 1 << 20
    while start < len(text):
        end = text.find("\n", start + size)
        end = len(text) if end < 0 else end
        yield from text[start:end].split("\n")
        start = end + 1


def _rows(text: str, separator: str, collector: Collector, skipped: int) -> Iterator[Row]:
    """A row a line, or several if a quoted cell goes on in the next one."""
    numbered = enumerate(lines(text), skipped + 1)
    waiting: deque[tuple[int, str]] = deque()
    while line := waiting.popleft() if waiting else next(numbered, None):
        cells = _cells(line[1], separator)
        if '"' in line[1] and (cells is None or _is_open(cells, separator)):
            cells = _long_row(line, separator, numbered, waiting, collector) or cells
        if cells is None:
            collector.problem(line[0], "the quotes of this row do not match")
        elif any(cell and not cell.isspace() for cell in cells):
            yield line[0], _without_empty_end(cells)


def _is_open(cells: list[str], separator: str) -> bool:
    """Whether the last cell of a line, of those separated by tabs, begins with a quote that is not closed there."""
    return separator == "\t" and cells[-1].startswith('"') and cells[-1].count('"') % 2 == 1


def _long_row(
    first: tuple[int, str],
    separator: str,
    numbered: Iterator[tuple[int, str]],
    waiting: deque[tuple[int, str]],
    collector: Collector,
) -> list[str] | None:
    """The row that goes on until its quotes match; None, and all its lines wait, if it is one with a quote too many.

    A quote too many must not swallow the rest of the file: a row has an end, and does not consist of other rows, nor
    does a cell have tabs.
    """
    parts = [first]
    quotes, size = first[1].count('"'), len(first[1])
    while quotes % 2 and size <= LONGEST_ROW:
        line = waiting.popleft() if waiting else next(numbered, None)
        if line is None:
            break
        parts.append(line)
        quotes, size = quotes + line[1].count('"'), size + len(line[1])
    reader = csv.reader([f"{part}\n" for _, part in parts], delimiter=separator, strict=True)
    try:
        cells = next(reader)
    except (csv.Error, StopIteration):
        cells = []
    waiting.extendleft(reversed(parts[reader.line_num :]))
    del parts[reader.line_num :]
    alike = [len(_cells(part, separator) or ()) == len(cells) > 1 for _, part in parts[1:-1]]
    if not cells or (len(alike) > 2 and all(alike)) or any("\t" in cell for cell in cells):
        waiting.extendleft(reversed(parts[1:]))
        return None
    if any(alike):
        sentence = f"because of its quotes this row goes on to line {parts[-1][0]}; is a quote not closed?"
        collector.problem(first[0], sentence, note=True)
    return [re.sub(r"\s*\n\s*", " ", cell) for cell in cells]


def _cells(line: str, separator: str) -> list[str] | None:
    """The cells of a line; None if its quotes make no sense."""
    if '"' not in line:
        return line.split(separator)
    if separator == "\t":
        return [_unquoted(cell) for cell in line.split("\t")]
    try:
        return next(csv.reader([line], delimiter=separator, strict=True))
    except (csv.Error, StopIteration):
        return None


def _unquoted(cell: str) -> str:
    """Between tabs quotes are part of a term, unless they enclose the whole cell, as spreadsheets write it."""
    inside = cell[1:-1].replace('""', "")
    if len(cell) > 1 and cell[0] == cell[-1] == '"' and '"' not in inside:
        return cell[1:-1].replace('""', '"')
    return cell


def _without_empty_end(cells: list[str]) -> list[str]:
    """Spreadsheets fill rows up with empty cells; the two that must be there stay."""
    while len(cells) > 2 and not cells[-1].strip():
        cells.pop()
    return cells


def _read_query(rows: Iterator[Row], header: list[str], collector: Collector) -> None:
    """The rows of a SPARQL query: item, label, aliases, class."""
    item, label, alias, kind = (_find(header, names) for names in (("item",), _ITEM_LABEL, _ALIAS, _CLASS))
    for line, cells in rows:
        aliases = split_aliases("" if alias is None else header[alias], _cell(cells, alias))
        add_item(line, _cell(cells, item), _cell(cells, label), aliases, _cell(cells, kind), collector)


def split_aliases(column: str, cell: str) -> list[str]:
    """The aliases of one cell: separated by `|`, or, in the column of Wikidata's label service only, by commas."""
    separator = ", " if column.lower() in _IN_ONE_CELL and "|" not in cell else "|"
    return [alias for alias in cell.split(separator) if alias.strip()]


def add_item(line: int, item: str, label: str, aliases: list[str], kind: str, collector: Collector) -> None:
    """An item of a knowledge base: an entry for its label and one for each alias."""
    id = last_segment(item.strip())
    kind = kind if collector.mapping is not None else last_segment(kind.strip())
    if label.strip() == id:
        collector.problem(line, f"the item {id} has no label in this language")
    elif label.strip() or not aliases:
        collector.add(line, label, kind, None, id or None)
    for alias in aliases:
        collector.add(line, alias, kind, None, id or None)
