"""Gazetteers in columns, as spreadsheets and SPARQL endpoints write them, and plain lists of terms."""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from lacuner.annotate.gazetteer.entries import MAX_SURFACE, GazetteerBuilder, last_segment

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
_COLUMN_NAMES = frozenset((*_SURFACE, *_LABEL, *_WEIGHT, *_ID))
_ITEM_LABEL = ("itemlabel", "label", "name", "item_label")
_ALIAS = ("itemaltlabel", "altlabel", "alias", "aliases", "item_alt_label", "itemalias")
_ALIASES_WITH_COMMAS = ("itemaltlabel", "altlabel", "item_alt_label")
_SYNONYMS = ("aliases", "alias", "synonyms", "synonym", "altlabel")
_CLASS = ("class", "classlabel", "type", "typelabel", "class_label")
_SAMPLE = 200

MAX_ROW = 10 * MAX_SURFACE
"""Characters in a row whose cells have line breaks. A longer one has an unclosed quote."""

Row = tuple[int, list[str]]
"""Number of the row's first line, and its cells."""


class _Columns(NamedTuple):
    """The position of each column, or None if there is no such column, and the number of columns."""

    surface: int
    label: int | None
    weight: int | None
    id: int | None
    width: int
    synonyms: int | None = None


def read_terms(text: str, builder: GazetteerBuilder) -> None:
    """Read a plain list: one term per line."""
    for number, line in enumerate(text.split("\n"), 1):
        if "\t" in line:
            builder.add_problem(number, "this term contains a tab; if this is a table, read it as tsv")
        elif line.strip():
            builder.add(number, line, "")


def read_table(text: str, builder: GazetteerBuilder, separator: str | None = None) -> None:
    """Read rows of surface and label, with or without a header."""
    first_line, _, rest = text.partition("\n")
    line_number = 1
    if separator is None and first_line.lower().startswith("sep=") and first_line[4:5] in SEPARATORS:
        separator, text, line_number = first_line[4], rest, 2  # a hint for spreadsheets
    separator = separator or _guess_separator(text)
    rows = _read_rows(text, separator, line_number, builder)
    first = next(rows, None)
    if first is None:
        return
    header = [cell.strip().lower() for cell in first[1]]
    if "item" in header and any(name in header for name in _ITEM_LABEL):
        _read_sparql_rows(rows, header, builder)
        return
    columns = _columns_by_name(header, builder)
    if columns is None and all(name in _COLUMN_NAMES for name in header):
        missing = "terms (surface)" if _find(header, _SURFACE) is None else "labels (label), and --label is not set"
        builder.add_problem(first[0], f"this header has no column of {missing}")
        return
    sample = [*islice(rows, _SAMPLE)]
    if columns is None:
        sample = [first, *sample]
        columns = _columns_by_position(sample, builder)
    for line, cells in sample:
        if len(cells) > 1 and all(cell.strip().lower() in _COLUMN_NAMES for cell in cells):
            builder.add_problem(line, "this looks like a header, but it is not the first row")
        else:
            _add_row(line, cells, columns, separator, builder)
    for line, cells in rows:
        _add_row(line, cells, columns, separator, builder)
    if columns.label is not None:
        _warn_of_odd_labels(builder, columns.label + 1)


def _add_row(line: int, cells: list[str], columns: _Columns, separator: str, builder: GazetteerBuilder) -> None:
    if columns.label is not None and len(cells) <= columns.label and builder.label is None:
        other = next((name for sign, name in SEPARATORS.items() if sign != separator and sign in "".join(cells)), None)
        hint = f" (is a {other} used instead of a {SEPARATORS[separator]}?)" if other else ""
        if len(cells) == 1 and not other:
            hint = ", or one label for all rows (--label)"
        needed = f"{columns.label + 1} columns are needed, separated by a {SEPARATORS[separator]}{hint}"
        builder.add_problem(line, f"this row has {_count(cells)}, but {needed}")
    elif len(cells) > columns.width:
        hint = "; is a field with a separator in it not quoted?" if separator != "\t" else ""
        builder.add_problem(line, f"this row has {_count(cells)}, the others have {columns.width}{hint}")
    else:
        surface, label = _cell(cells, columns.surface), _cell(cells, columns.label)
        weight, id = _cell(cells, columns.weight), _cell(cells, columns.id) or None
        builder.add(line, surface, label, weight, id)
        for synonym in re.split("[|;]", _cell(cells, columns.synonyms)):
            if synonym.strip():
                builder.add(line, synonym, label, weight, id)


def _count(cells: list[str]) -> str:
    return f"{len(cells)} column{'s' if len(cells) != 1 else ''}"


def _cell(cells: Sequence[str], at: int | None) -> str:
    return cells[at] if at is not None and at < len(cells) else ""


def _columns_by_name(header: list[str], builder: GazetteerBuilder) -> _Columns | None:
    """The columns that a header names; None if the first row is not a header."""
    surface, label = _find(header, _SURFACE), _find(header, _LABEL)
    if surface is None or (label is None and builder.label is None):
        return None
    synonyms = next((i for i, name in enumerate(header) if name in _SYNONYMS and i != surface), None)
    return _Columns(surface, label, _find(header, _WEIGHT), _find(header, _ID), len(header), synonyms)


def _find(header: list[str], names: Sequence[str]) -> int | None:
    return next((header.index(name) for name in names if name in header), None)


def _columns_by_position(sample: list[Row], builder: GazetteerBuilder) -> _Columns:
    """Without a header: surface, label, then the weight if the third column is numeric, otherwise the id."""
    width = Counter(len(cells) for _, cells in sample).most_common(1)[0][0]
    if width == 1 and builder.label is not None:
        return _Columns(0, None, None, None, 1)
    width = max(width, 2)
    thirds = [cells[2].strip().replace(",", ".") for _, cells in sample if len(cells) > 2]
    numeric = bool(thirds) and all(_is_number(third) for third in thirds if third)
    fourth = 3 if width > 3 else None
    return _Columns(0, 1, 2 if numeric else fourth, fourth if numeric else 2, width)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _warn_of_odd_labels(builder: GazetteerBuilder, column: int) -> None:
    """Warn if the labels look like surfaces, or the first row like a header."""
    labels = Counter(builder.labels)
    if not labels:
        return
    line, first = builder.lines[0], builder.labels[0]
    joined = next((label for label in labels if re.search(r"\w\s*[;|]\s*\w", label)), None)
    if joined is not None:
        problem = f"{joined!r} is read as one label; several labels of a term need a row each"
        builder.add_problem(builder.lines[builder.labels.index(joined)], problem, warning=True)
    others = [times for label, times in labels.items() if label != first]
    if len(labels) > 100 and 2 * len(labels) > labels.total():
        problem = f"there are {len(labels):,} different labels in column {column}; is this the column of labels?"
        builder.add_problem(line, problem, warning=True)
    elif labels.total() > 2 and labels[first] == 1 and others and min(others) > 1:
        problem = f"only this row has the label {first!r}; if it is a header, name its columns surface and label"
        builder.add_problem(line, problem, warning=True)


def _guess_separator(text: str) -> str:
    """The separator that gives most rows the same number of columns (two or more); a comma if none does."""
    sample = [line for line in text.split("\n", _SAMPLE)[:_SAMPLE] if line.strip()]
    best, most = ",", 0
    for separator in SEPARATORS:
        widths = Counter(len(_split(line, separator) or ()) for line in sample)
        rows = max((times for width, times in widths.items() if width > 1), default=0)
        if rows > most:
            best, most = separator, rows
    return best


def _read_rows(text: str, separator: str, line_number: int, builder: GazetteerBuilder) -> Iterator[Row]:
    """The rows that are not empty. Usually one per line; a quoted cell may continue on the next line.

    `csv.reader` alone would let one unclosed quote swallow the rest of the file, without telling where it began.
    """
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        line, end = lines[at], at + 1
        cells = _split(line, separator)
        if '"' in line and (cells is None or _ends_in_open_quote(cells, separator)):
            cells, end = _join_lines(lines, at, separator, line_number, builder) or (cells, end)
        if cells is None:
            builder.add_problem(line_number + at, "the quotes of this row do not match")
        elif any(cell and not cell.isspace() for cell in cells):
            while len(cells) > 2 and not cells[-1].strip():  # spreadsheets pad rows with empty cells
                cells.pop()
            yield line_number + at, cells
        at = end


def _ends_in_open_quote(cells: list[str], separator: str) -> bool:
    """Whether the last of some tab-separated cells starts with a quote that is not closed on its line."""
    return separator == "\t" and cells[-1].startswith('"') and cells[-1].count('"') % 2 == 1


def _join_lines(
    lines: list[str], at: int, separator: str, line_number: int, builder: GazetteerBuilder
) -> tuple[list[str], int] | None:
    """The cells of a row that continues until its quotes match, and where it ends; None if a quote is superfluous.

    A row with a superfluous quote is recognised by its length, or because it would swallow other rows or tabs.
    """
    end, quotes, size = at, 0, 0
    while end < len(lines) and (end == at or (quotes % 2 and size <= MAX_ROW)):
        quotes, size, end = quotes + lines[end].count('"'), size + len(lines[end]), end + 1
    reader = csv.reader([f"{line}\n" for line in lines[at:end]], delimiter=separator, strict=True)
    try:
        cells = next(reader)
    except (csv.Error, StopIteration):
        return None
    end = at + reader.line_num
    like_rows = [len(_split(line, separator) or ()) == len(cells) > 1 for line in lines[at + 1 : end - 1]]
    if not cells or (len(like_rows) > 2 and all(like_rows)) or any("\t" in cell for cell in cells):
        return None
    if any(like_rows):
        problem = f"because of its quotes this row continues to line {line_number + end - 1}; is a quote not closed?"
        builder.add_problem(line_number + at, problem, warning=True)
    return [re.sub(r"\s*\n\s*", " ", cell) for cell in cells], end


def _split(line: str, separator: str) -> list[str] | None:
    """The cells of a line; None if its quotes do not match."""
    if '"' not in line:
        return line.split(separator)
    if separator == "\t":
        return [_unquote(cell) for cell in line.split("\t")]
    try:
        return next(csv.reader([line], delimiter=separator, strict=True))
    except (csv.Error, StopIteration):
        return None


def _unquote(cell: str) -> str:
    """In TSV files quotes belong to the term unless they enclose the whole cell, as spreadsheets write it."""
    inside = cell[1:-1].replace('""', "")
    if len(cell) > 1 and cell[0] == cell[-1] == '"' and '"' not in inside:
        return cell[1:-1].replace('""', '"')
    return cell


def _read_sparql_rows(rows: Iterator[Row], header: list[str], builder: GazetteerBuilder) -> None:
    """Read the rows of a SPARQL result: item, label, aliases, class."""
    item, label, alias, kind = (_find(header, names) for names in (("item",), _ITEM_LABEL, _ALIAS, _CLASS))
    for line, cells in rows:
        aliases = split_aliases("" if alias is None else header[alias], _cell(cells, alias))
        add_item(line, _cell(cells, item), _cell(cells, label), aliases, _cell(cells, kind), builder)


def escape_formula(text: str) -> str:
    """Keep spreadsheets from evaluating a cell; the space is ignored when the table is read.

    >>> escape_formula("=1+1"), escape_formula("aspirin")
    (' =1+1', 'aspirin')
    """
    return f" {text}" if text.startswith(("=", "+", "-", "@")) else text


def split_aliases(column: str, cell: str) -> list[str]:
    """The aliases in a cell, separated by `|`, or by commas in the columns of Wikidata's label service.

    >>> split_aliases("alias", "Rome, Italy|Roma"), split_aliases("itemAltLabel", "Roma, Urbs")
    (['Rome, Italy', 'Roma'], ['Roma', 'Urbs'])
    """
    separator = ", " if column.lower() in _ALIASES_WITH_COMMAS and "|" not in cell else "|"
    return [alias for alias in cell.split(separator) if alias.strip()]


def add_item(line: int, item: str, label: str, aliases: list[str], kind: str, builder: GazetteerBuilder) -> None:
    """Add an item of a knowledge base: one entry for its label and one per alias."""
    id = last_segment(item.strip())
    kind = kind if builder.mapping is not None else last_segment(kind.strip())
    if label.strip() == id:
        builder.add_problem(line, f"the item {id} has no label in this language")
    elif label.strip() or not aliases:
        builder.add(line, label, kind, None, id or None)
    for alias in aliases:
        builder.add(line, alias, kind, None, id or None)
