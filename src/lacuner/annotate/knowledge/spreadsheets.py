"""Excel files as concepts, read as any other table; a small file must not become large in memory."""

import zipfile
from collections.abc import Iterator
from typing import Any
from xml.parsers import expat

from lacuner.annotate.gazetteer.entries import GazetteerBuilder
from lacuner.annotate.gazetteer.tables import read_table
from lacuner.annotate.knowledge.concepts import Concept, KnowledgeFile
from lacuner.annotate.knowledge.tables import UNLABELED, to_concepts
from lacuner.corpus.reader import BLOCK, MAX_TEXT
from lacuner.corpus.streams import is_device
from lacuner.corpus.xml_stream import MAX_DEPTH, feed_parser
from lacuner.errors import LacunerError, first_line, need_library

MAX_UNPACKED = 1 << 30
"""Bytes that a spreadsheet may take when it is unpacked."""
MAX_ELEMENTS, MAX_ROW_ELEMENTS = 10_000_000, 100_000
"""XML elements of a spreadsheet, and of a row or a string: openpyxl holds a row in memory, and all strings."""
MAX_ROWS, MAX_COLUMNS = 1 << 20, 1_000
"""Rows of a sheet, as in Excel, and columns that are read."""
MAX_CELLS = 50_000_000
"""Cells of a sheet, counting the empty ones before a cell that is far to the right."""


def read_spreadsheet(file: KnowledgeFile) -> Iterator[Concept]:
    """The rows of an Excel file, as of any other table: of its first sheet, or of the one that is named."""
    with need_library("Excel files need openpyxl", "lacuner[xlsx]", file=file.path):
        from openpyxl import load_workbook
    try:
        _check_sizes(file)
        book = load_workbook(file.path, read_only=True, data_only=True)
    except LacunerError:
        raise
    except Exception as error:  # openpyxl fails in many ways
        raise file.error(f"this is not an Excel file (.xlsx) that can be read ({first_line(error)})") from error
    try:
        if file.sheet is not None and file.sheet not in book.sheetnames:
            sheets = ", ".join(book.sheetnames)[:200]
            raise file.error(f"there is no sheet called {file.sheet!r}: --sheet is one of {sheets}")
        builder = GazetteerBuilder(str(file.path), file.label or UNLABELED, None)
        text = "\n".join(_lines(book, file))
    finally:
        book.close()
    read_table(text, builder, "\t")
    yield from to_concepts(file, builder.finish())


def _check_sizes(file: KnowledgeFile) -> None:
    """Refuse an archive that would fill the memory, before openpyxl reads it."""
    elements = row = depth = row_depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal elements, row, depth
        depth += 1
        elements += 1
        row = 0 if depth <= row_depth else row + 1
        if elements > MAX_ELEMENTS or row > MAX_ROW_ELEMENTS or depth > MAX_DEPTH:
            raise file.error("this spreadsheet has too many cells, or is no spreadsheet: save it as CSV")

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1

    def refuse_entity(*_: object) -> None:
        raise file.error("this spreadsheet declares XML entities, which Excel does not do: save it as CSV")

    if is_device(file.path):
        raise file.error("this is a device, not a file")
    with zipfile.ZipFile(file.path) as archive:
        if sum(member.file_size for member in archive.infolist()) > MAX_UNPACKED:
            raise file.error(f"this spreadsheet unpacks to more than {MAX_UNPACKED >> 30} GiB: save it as CSV")
        for member in archive.infolist():
            if member.filename.endswith((".xml", ".rels")):
                parser = expat.ParserCreate()
                parser.StartElementHandler, parser.EndElementHandler = start, end
                parser.EntityDeclHandler = refuse_entity
                depth, row_depth = 0, 3 if "worksheets/" in member.filename else 2
                with archive.open(member) as stream:
                    for _ in feed_parser(parser, _chunks(stream), file.error):
                        pass


def _chunks(stream: Any) -> Iterator[bytes]:
    while data := stream.read(BLOCK):
        yield data
    yield b""


def _lines(book: Any, file: KnowledgeFile) -> Iterator[str]:
    """The rows of a sheet as lines of a TSV file."""
    characters = cells = 0
    try:
        sheet = book[file.sheet] if file.sheet is not None else book.worksheets[0]
        sheet.reset_dimensions()  # rows have the width of their cells, not the one that the file states
        for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
            line = _line(row[:MAX_COLUMNS])
            characters += len(line)
            cells += len(row)
            if number > MAX_ROWS or characters > MAX_TEXT or cells > MAX_CELLS:
                raise file.error("this sheet is too large: save it as CSV", number)
            yield line
    except LacunerError:
        raise
    except Exception as error:  # openpyxl parses cells as they are read, and fails in many ways
        raise file.error(f"this spreadsheet is damaged ({type(error).__name__})") from error


def _line(row: tuple[object, ...]) -> str:
    """A row as a line of a TSV file; whole numbers have no decimal point."""
    cells = ["" if cell is None else str(cell).removesuffix(".0" if isinstance(cell, float) else "") for cell in row]
    while cells and not cells[-1].strip():
        cells.pop()
    return "\t".join(" ".join(cell.split()) for cell in cells)
