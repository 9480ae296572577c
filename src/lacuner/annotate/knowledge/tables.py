"""Spreadsheets, SPARQL results and other tables as concepts. They are read as a whole, as `--dictionary` reads them."""

import zipfile
from collections.abc import Iterator

from lacuner.annotate.gazetteer.entries import Gazetteer, GazetteerBuilder, GazetteerWarning
from lacuner.annotate.gazetteer.load import load_gazetteer
from lacuner.annotate.gazetteer.tables import read_table
from lacuner.annotate.knowledge.concepts import Concept, KnowledgeFile, Name
from lacuner.errors import ConfigError

MAX_UNPACKED = 1 << 30
"""Bytes that a spreadsheet may take when it is unpacked."""
MAX_COLUMNS = 1_000
_UNLABELED = "(no label)"


def read_tables(file: KnowledgeFile) -> Iterator[Concept]:
    """The rows of a CSV, TSV or JSON file, or of the result of a SPARQL query; the class is its label column."""
    format = None if file.path.suffix.lower() in (".json", ".csv", ".tsv", ".tab", ".jsonl", ".txt", ".srj") else "csv"
    encoding = None if file.encoding == "utf-8" else file.encoding
    yield from _concepts(
        file, load_gazetteer(file.path, label=file.label or _UNLABELED, format=format, encoding=encoding)
    )


def read_spreadsheet(file: KnowledgeFile) -> Iterator[Concept]:
    """The rows of an Excel file, as of any other table: of its first sheet, or of the one that is named."""
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise ConfigError("Excel files need openpyxl: pip install 'lacuner[xlsx]'", file=file.path) from error
    try:
        with zipfile.ZipFile(file.path) as archive:
            if sum(member.file_size for member in archive.infolist()) > MAX_UNPACKED:
                raise file.error(f"this spreadsheet unpacks to more than {MAX_UNPACKED >> 30} GiB: save it as CSV")
        book = load_workbook(file.path, read_only=True, data_only=True)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, SyntaxError, TypeError, AttributeError) as error:
        raise file.error(f"this is not an Excel file (.xlsx) that can be read ({error})") from error
    try:
        if file.sheet is not None and file.sheet not in book.sheetnames:
            sheets = ", ".join(book.sheetnames)
            raise file.error(f"there is no sheet called {file.sheet!r}: --sheet is one of {sheets}")
        sheet = book[file.sheet] if file.sheet is not None else book.worksheets[0]
        builder = GazetteerBuilder(str(file.path), file.label or _UNLABELED, None)
        try:
            rows = [_line(row) for row in sheet.iter_rows(values_only=True, max_col=MAX_COLUMNS)]
        except Exception as error:  # openpyxl parses cells as they are read, and fails in many ways
            raise file.error(f"this spreadsheet is damaged ({type(error).__name__})") from error
    finally:
        book.close()
    read_table("\n".join(rows), builder, "\t")
    yield from _concepts(file, builder.finish())


def _line(row: tuple[object, ...]) -> str:
    """A row as a line of a TSV file; whole numbers have no decimal point."""
    cells = ["" if cell is None else str(cell).removesuffix(".0" if isinstance(cell, float) else "") for cell in row]
    while cells and not cells[-1].strip():
        cells.pop()
    return "\t".join(" ".join(cell.split()) for cell in cells)


def _concepts(file: KnowledgeFile, gazetteer: Gazetteer) -> Iterator[Concept]:
    for problem in gazetteer.problems:
        if not isinstance(problem, GazetteerWarning):
            file.skip(problem.problem, problem.line or 0)
    for entry in gazetteer.entries:
        yield Concept(entry.id or "", [Name(entry.surface)], () if entry.label == _UNLABELED else (entry.label,))
