"""Documents from the records of a file: rows of JSON or of a table, paragraphs of lines, elements of XML."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from lacuner.corpus.offsets import OffsetTable, to_characters
from lacuner.corpus.reader import CorpusFile, span_problem
from lacuner.data import Document, Span, Where
from lacuner.errors import CorpusError

T = TypeVar("T")


class Record(NamedTuple):
    """What one document is read from."""

    number: int
    """Its number in the file, from 1."""
    line: int | None
    """Number of its first line; None if the file has no lines."""
    value: Any


def convert_records(file: CorpusFile, records: Iterable[Record], convert: Callable[[Record], T]) -> Iterator[T]:
    """What a function makes of each record. An error is reported with the line, and the next record is read."""
    for record in records:
        try:
            converted = convert(record)
        except CorpusError as error:
            place = f"row {record.number}: " if record.line is None else ""
            file.report(file.error(place + error.problem, record.line))
            continue
        yield converted


def read_documents(
    file: CorpusFile,
    records: Iterable[Record],
    convert: Callable[[Any, int, CorpusFile], Document],
    offsets: str | None = None,
) -> Iterator[Document]:
    """One document per record, by a function of its value, its number and the file.

    `offsets` is the unit of the spans that the function returns, by default that of the reader's options.
    """

    def convert_record(record: Record) -> Document:
        return finish_document(convert(record.value, record.number, file), file, record.line, offsets)

    return convert_records(file, records, convert_record)


def locate(
    table: OffsetTable, start: int, end: int, surface: str | None, file: CorpusFile
) -> tuple[int, int, str | None]:
    """The characters of a span: by `--offsets`, or else by its text in the file, as `OffsetTable.locate` does."""
    unit = file.options.offsets
    if unit == "characters":
        return table.locate(start, end, surface)
    [span] = to_characters(table.text, [Span(start, end, "")], unit)
    return span.start, span.end, None


def finish_document(doc: Document, file: CorpusFile, line: int | None, offsets: str | None = None) -> Document:
    """The document with offsets in characters and its place; an error if a span is impossible."""
    doc.where = Where(str(file.path), line)
    unit = offsets or file.options.offsets
    if unit != "characters":
        for state in ("spans", "rejected", "unsure"):
            setattr(doc, state, tuple(to_characters(doc.text, getattr(doc, state), unit)))
    if not file.options.keep_bad_spans:
        length = len(doc.text)
        for spans in (doc.spans, doc.rejected, doc.unsure):
            for span in spans:
                if not 0 <= span.start < span.end <= length:
                    problem = span_problem(doc.text, span)
                    for unit, first, last in OffsetTable(doc.text).other_units(span.start, span.end):
                        raise CorpusError(f"{problem}; with --offsets {unit} it is {doc.text[first:last][:40]!r}")
                    raise CorpusError(f"{problem}; `lacuner check --fix` repairs such files")
    return doc
