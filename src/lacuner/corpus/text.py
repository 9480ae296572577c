"""Plain text: a folder has one document per file, a single file one document per line."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from lacuner.corpus.folders import count_others, visible_paths
from lacuner.corpus.reader import CorpusFile
from lacuner.corpus.streams import open_output
from lacuner.data import Document, Lost, Where
from lacuner.errors import CorpusError

SHORTEST_PROSE = 20
"""Characters of a line that is a text of its own; a line of a column file is shorter."""


def read_txt(file: CorpusFile) -> Iterator[Document]:
    """Documents from every `.txt` below a folder, or from the non-blank lines of a file."""
    if file.path.is_dir():
        yield from _read_folder(file)
        return
    for block in file.read_blocks():
        for number, line in enumerate(block.lines, block.first):
            if line and not line.isspace():
                yield Document(id=file.number_id(number), text=line, where=Where(str(file.path), number))


def is_prose(file: CorpusFile) -> bool:
    """Whether most lines at the beginning are long and have no tab: texts, rather than columns of words or a table."""
    lines = [line for line in file.head_lines() if line.strip()]
    return 2 * sum(len(line) >= SHORTEST_PROSE and "\t" not in line for line in lines) > len(lines)


def _read_folder(folder: CorpusFile) -> Iterator[Document]:
    files = visible_paths(folder)
    paths = [path for path in files if path.suffix.lower() == ".txt"]
    count_others(folder, "file without the ending .txt not read", files, paths)
    if not paths:
        raise folder.error("there is no .txt file in this folder: give the format of its files with --format")
    for path in paths:
        try:
            text = folder.at(path).read_text()
        except CorpusError as error:
            folder.report(error)
            continue
        yield Document(id=path.relative_to(folder.path).as_posix(), text=text, where=Where(str(path)))


def write_txt(docs: Iterable[Document], path: Path, lost: Lost, scheme: str = "IOB2") -> None:
    """One text per line; line breaks inside a text become spaces, which keeps all offsets valid."""
    with open_output(path) as stream:
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
