"""brat standoff: a folder with `NAME.txt` and `NAME.ann`, or one such pair.

brat splits a span at line breaks; such parts are joined again. Other discontinuous spans cannot be expressed and are
counted as lost, as are relations, events, attributes and notes.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

from lacuner.atomic import STANDARD_STREAM, atomic_write
from lacuner.corpus.intervals import IntervalSet
from lacuner.corpus.offsets import OffsetTable
from lacuner.corpus.reader import CorpusFile
from lacuner.corpus.records import finish_document, locate
from lacuner.corpus.unwritten import count_unwritten
from lacuner.data import Document, Lost, Span
from lacuner.errors import CorpusError

_TEXT_BOUND = re.compile(r"T\S*\t(\S+) (\d{1,12} \d{1,12}(?:;\d{1,12} \d{1,12})*)(?:\t(.*))?", re.DOTALL)
_KINDS = {
    "R": "relation",
    "E": "event",
    "A": "attribute",
    "M": "attribute",
    "N": "normalisation",
    "#": "note",
    "*": "equivalence",
}
_WRITABLE_NAME = re.compile(r"[\w-][\w.-]{0,99}")


def is_brat(file: CorpusFile) -> bool:
    """Whether a folder has `.ann` files, or this is one of them."""
    if file.path.is_dir():
        return next(file.path.rglob("*.ann"), None) is not None
    return file.path.suffix.lower() == ".ann"


def read_brat(file: CorpusFile) -> Iterator[Document]:
    """One document per text; a text without `.ann` file has not been annotated, so it is incomplete."""
    folder = file.path if file.path.is_dir() else file.path.parent
    if file.path.is_dir():
        names = {path.with_suffix("") for path in folder.rglob("*") if path.suffix.lower() in (".txt", ".ann")}
    else:
        names = {file.path.with_suffix("")}
    for name in sorted(names):
        text_file, notes = file.at(name.with_suffix(".txt")), file.at(name.with_suffix(".ann"))
        try:
            if not text_file.path.is_file():
                raise notes.error(f"there is no {text_file.path.name} beside this file")
            doc = Document(name.relative_to(folder).as_posix(), text_file.read_text())
            if notes.path.is_file():
                _read_annotation(doc, notes)
            else:
                doc.complete = False
            yield finish_document(doc, text_file, line=None, offsets="characters")
        except CorpusError as error:
            file.report(CorpusError(error.problem, file=error.file or notes.path, line=error.line))


def _read_annotation(doc: Document, file: CorpusFile) -> None:
    table = OffsetTable(doc.text)
    spans: list[Span] = []
    unsure: list[Span] = []
    tokens: IntervalSet | None = None
    for block in file.read_blocks():
        for number, line in enumerate(block.lines, block.first):
            if not line.strip():
                continue
            if not line.startswith("T"):
                file.lost.count(f"{_KINDS.get(line[0], 'line of an unknown kind')} not read")
                continue
            match = _TEXT_BOUND.fullmatch(line)
            if match is None:
                raise file.error(f"this is not a span of brat (T1<TAB>LABEL START END<TAB>text): {line[:60]!r}", number)
            places = sorted(_place(part, table, file) for part in match[2].split(";"))
            start, end = places[0][0], max(place[1] for place in places)
            if len(places) > 1 and tokens is None:
                tokens = IntervalSet(match.span() for match in re.finditer(r"\S+", doc.text))
            if any(tokens is not None and tokens.overlaps(left[1], right[0]) for left, right in pairwise(places)):
                file.lost.span(
                    doc, Span(start, end, match[1]), "discontinuous span not read; the text around it became unsure"
                )
                unsure.append(Span(start, end, match[1]))
                continue
            try:
                surface = match[3] if file.options.offsets == "characters" else None
                start, end, unit = table.locate(start, end, surface)
            except CorpusError as error:
                raise file.error(error.problem, number) from error
            file.lost.count("offset corrected by the span's text", unit is not None)
            spans.append(Span(start, end, match[1]))
    doc.spans, doc.unsure = tuple(spans), tuple(unsure)


def _place(part: str, table: OffsetTable, file: CorpusFile) -> tuple[int, int]:
    """Start and end of one part of a span, in characters."""
    start, end = map(int, part.split())
    return locate(table, start, end, None, file)[:2]


def write_brat(docs: Iterable[Document], path: Path, lost: Lost, scheme: str = "IOB2") -> None:
    """Write a new folder; it appears when all of it is written."""
    from lacuner.processes import atomic_folder  # late: it loads multiprocessing

    if path == STANDARD_STREAM:
        raise CorpusError("brat's format is a folder: it cannot be written to standard output")
    try:
        taken_already = path.exists() and (not path.is_dir() or any(path.iterdir()))
    except OSError as error:
        raise CorpusError(f"cannot write this folder: {error.strerror or error}", file=path) from error
    if taken_already:
        raise CorpusError("brat's files are written to a new folder: choose a name that is not taken", file=path)
    with atomic_folder(path) as part:
        taken: set[str] = set()
        for number, doc in enumerate(docs, 1):
            _write_pair(doc, part / _name(doc, number, taken, lost), lost)


def _name(doc: Document, number: int, taken: set[str], lost: Lost) -> str:
    """A file name: the id, if it is a plain and new name whatever the file system does with case."""
    if _WRITABLE_NAME.fullmatch(doc.id) and doc.id.isascii() and doc.id.casefold() not in taken:
        name = doc.id
    else:
        lost.count("id not written: it cannot be the name of a file")
        name = next(name for name in _numbered(number) if name not in taken)
    taken.add(name.casefold())
    return name


def _numbered(number: int) -> Iterator[str]:
    yield f"{number:06d}"
    for attempt in range(1_000_000):
        yield f"{number:06d}-{attempt}"


def _write_pair(doc: Document, stem: Path, lost: Lost) -> None:
    count_unwritten(doc, lost)
    lost.count("text: byte order mark at the beginning", doc.text.startswith("\ufeff"))
    lines: list[str] = []
    for span in doc.spans:
        text = doc.text[span.start : span.end]
        if text != text.strip("\n"):
            lost.span(doc, span, "span begins or ends with a line break")
            continue
        label = re.sub(r"\s", "_", span.label)
        lost.count("label changed: brat has no white space in labels", label != span.label)
        parts = [(match.start() + span.start, match.end() + span.start) for match in re.finditer(r"[^\n]+", text)]
        offsets = ";".join(f"{start} {end}" for start, end in parts)
        surface = " ".join(doc.text[start:end] for start, end in parts).replace("\t", " ").replace("\r", " ")
        lines.append(f"T{len(lines) + 1}\t{label} {offsets}\t{surface}\n")
    for ending, content in ((".txt", doc.text), (".ann", "".join(lines))):
        with atomic_write(stem.with_name(stem.name + ending)) as stream:
            stream.write(content.encode())
