"""Plain text: a folder is one document a file, a single file is one document a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from lacuner.atomic import atomic_write
from lacuner.corpus.lines import read_blocks, read_text
from lacuner.corpus.reader import Reading
from lacuner.data import Document, Lost, Where
from lacuner.errors import CorpusError


def read_txt(reading: Reading) -> Iterator[Document]:
    """A folder: every `.txt` below it, offsets in the file's own text. A file: its lines that are not blank."""
    if reading.path.is_dir():
        yield from _read_folder(reading)
        return
    for block in read_blocks(reading.path, reading.options.encoding, seen=reading.seen):
        for number, line in enumerate(block.lines, block.first):
            if line and not line.isspace():
                yield Document(id=str(number), text=line, where=Where(str(reading.path), number))


def _read_folder(reading: Reading) -> Iterator[Document]:
    files = sorted(path for path in reading.path.rglob("*") if path.is_file())
    paths = [path for path in files if path.suffix.lower() == ".txt"]
    reading.lost.count("file without the ending .txt not read", len(files) - len(paths))
    if not paths:
        raise reading.error("there is no .txt file in this folder")
    for path in paths:
        try:
            text = read_text(path, reading.options.encoding, seen=reading.seen)
        except CorpusError as error:
            reading.report(error)
            continue
        yield Document(id=path.relative_to(reading.path).as_posix(), text=text, where=Where(str(path)))


def write_txt(docs: Iterable[Document], path: Path, lost: Lost, scheme: str = "IOB2") -> None:
    """The texts, one a line; line breaks inside a text become spaces, so that offsets stay true."""
    with atomic_write(path) as stream:
        for number, doc in enumerate(docs, 1):
            text = doc.text.replace("\n", " ").replace("\r", " ")
            lost.count("text: line break became a space", text != doc.text)
            lost.count("text: byte order mark at the beginning", number == 1 and text.startswith("\ufeff"))
            lost.count("document without text", not text.strip())
            lost.count("id not written", doc.id != str(number))
            lost.count("words not written", doc.words is not None)
            lost.count("meta not written", bool(doc.meta))
            lost.count("complete or not: not written", doc.complete is not None)
            for span in (*doc.spans, *doc.rejected, *doc.unsure):
                lost.span(doc, span, "span not written: plain text has none")
            stream.write((text + "\n").encode())
