"""PubTator: `ID|t|title`, `ID|a|abstract`, then one line per mention; offsets count one character between the two."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from lacuner.corpus.offsets import OffsetTable
from lacuner.corpus.reader import CorpusFile
from lacuner.corpus.records import Record, locate, read_documents
from lacuner.corpus.streams import open_output
from lacuner.corpus.unwritten import count_unwritten
from lacuner.data import Document, Lost, Span
from lacuner.errors import CorpusError

_PASSAGE = re.compile(r"([^|\t]{1,200})\|([a-z])\|(.*)", re.DOTALL)
_WRITABLE_ID = re.compile(r"[\w.:+-]{1,200}")


def is_pubtator(file: CorpusFile) -> bool:
    """Whether the first line that is not blank is a title."""
    if file.path.is_dir():
        return False
    first = next((line for line in file.head_lines() if line.strip()), "")
    match = _PASSAGE.fullmatch(first)
    return match is not None and match[2] == "t"


def read_pubtator(file: CorpusFile) -> Iterator[Document]:
    """One document per block of lines; relations are counted, not read."""
    records = (Record(number, *block) for number, block in enumerate(file.read_paragraphs(), 1))
    return read_documents(file, records, _document, offsets="characters")


def _document(lines: list[str], number: int, file: CorpusFile) -> Document:
    passages: list[str] = []
    id_ = ""
    for line in lines:
        match = _PASSAGE.fullmatch(line)
        if match is None:
            break
        id_ = id_ or match[1]
        passages.append(match[3])
    if not passages:
        raise CorpusError(f"a document of PubTator begins with ID|t|title, not {lines[0][:60]!r}")
    mentions = lines[len(passages) :]
    if len(passages) == 2 and not passages[1]:
        passages.pop()
    doc = Document(id_, "\n".join(passages))
    table = OffsetTable(doc.text)
    spans, identifiers = [], []
    for line in mentions:
        columns = line.split("\t")
        if len(columns) < 5 or not columns[1].isdecimal() or not columns[2].isdecimal():
            file.lost.count("relation or other line not read")
            continue
        if len(columns[1]) > 12 or len(columns[2]) > 12 or not columns[4]:
            raise CorpusError(f"this mention has no type, or offsets out of range: {line[:60]!r}")
        span = _mention(int(columns[1]), int(columns[2]), columns, table, file)
        spans.append(span)
        if len(columns) > 5 and columns[5] not in ("", "-"):
            identifiers.append([span.start, span.end, columns[5]])
    doc.spans = tuple(spans)
    if identifiers:
        doc.meta = {"identifiers": identifiers}
    return doc


def _mention(start: int, end: int, columns: list[str], table: OffsetTable, file: CorpusFile) -> Span:
    try:
        start, end, unit = locate(table, start, end, columns[3], file)
        file.lost.count("offset corrected by the mention's text", unit is not None)
    except CorpusError:  # PubTator normalises some mentions, e.g. Greek letters
        file.lost.count("mention differs from the text at its offsets")
    return Span(start, end, columns[4])


def write_pubtator(docs: Iterable[Document], path: Path, lost: Lost, scheme: str = "IOB2") -> None:
    """Write the first line of a text as title, the others as abstract."""
    with open_output(path) as stream:
        for number, doc in enumerate(docs, 1):
            if not doc.text.strip():
                lost.count("document without text")
                continue
            stream.write(_block(doc, number, lost).encode())


def _block(doc: Document, number: int, lost: Lost) -> str:
    identifiers = identifiers_of(doc)
    count_unwritten(doc, lost, "meta")
    lost.count("meta not written", len(doc.meta) > bool(identifiers))
    id_ = doc.id if _WRITABLE_ID.fullmatch(doc.id) else str(number)
    lost.count("id not written", id_ != doc.id)
    title, break_, abstract = doc.text.replace("\r", " ").partition("\n")
    lost.count("text: line break became a space", "\n" in abstract or "\r" in doc.text)
    lost.count("text: line break at the end", bool(break_) and not abstract)
    lines = [f"{id_}|t|{title}", f"{id_}|a|{abstract.replace(chr(10), ' ')}"]
    for span in doc.spans:
        if any(mark in span.label for mark in "\t\n\r"):
            lost.span(doc, span, "label would break its line")
            continue
        mention = " ".join(doc.text[span.start : span.end].splitlines()).replace("\t", " ")
        columns = [id_, str(span.start), str(span.end), mention, span.label]
        columns.append(identifiers.get(span[:2], "-"))  # other readers skip a mention without this column
        lines.append("\t".join(columns))
    return "\n".join(lines) + "\n\n"


def identifiers_of(doc: Document) -> dict[tuple[int, int], str]:
    """The identifiers of spans, which PubTator and BioC keep in `meta`."""
    entries = doc.meta.get("identifiers")
    if not isinstance(entries, list) or not all(map(_is_identifier, entries)):
        return {}
    return {(start, end): identifier for start, end, identifier in entries}


def _is_identifier(entry: object) -> bool:
    return (
        isinstance(entry, list)
        and [type(item) for item in entry] == [int, int, str]
        and not any(mark in entry[2] for mark in "\t\n\r")
    )
