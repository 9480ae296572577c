"""The table of file formats, and `read` and `write` for all of them."""

from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from lacuner.atomic import STANDARD_STREAM
from lacuner.corpus import conll, docbin, jsonl, text
from lacuner.corpus.reader import COMPRESSED, CorpusFile, ReadOptions, raise_error
from lacuner.corpus.tags import SCHEMES
from lacuner.corpus.words import split_spaces
from lacuner.data import Document, Lost
from lacuner.errors import ConfigError, CorpusError


class Format(NamedTuple):
    """A file format: file name endings, reader and writer."""

    endings: tuple[str, ...]
    read: Callable[[CorpusFile], Iterator[Document]]
    write: Callable[[Iterable[Document], Path, Lost, str], None]


FORMATS: dict[str, Format] = {
    "jsonl": Format((".jsonl", ".ndjson"), jsonl.read_jsonl, jsonl.write_jsonl),
    "conll": Format((".conll", ".iob", ".iob2", ".bio"), conll.read_conll, conll.write_conll),
    "tokens": Format((), jsonl.read_jsonl, jsonl.write_tokens),
    "txt": Format((".txt",), text.read_txt, text.write_txt),
    "spacy": Format((".spacy",), docbin.read_docbin, docbin.write_docbin),
}
"""jsonl is lossless; tokens is JSON lines with `tokens` and `ner_tags`; spacy is spaCy's DocBin."""
STREAMED = ("jsonl", "conll", "tokens", "txt")
"""Formats that can be read from standard input and written to standard output (`-`)."""


def format_of(path: str | PathLike[str], name: str | None = None) -> Format:
    """The format of this name or, without one, of the path's ending."""
    if name is not None:
        if name not in FORMATS:
            raise CorpusError(f"there is no format {name!r}: choose from {', '.join(FORMATS)}", file=path)
        return FORMATS[name]
    path = Path(path)
    if path == STANDARD_STREAM:
        raise CorpusError(f"standard input has no ending that tells its format: add --format {'|'.join(STREAMED)}")
    if path.is_dir():
        return FORMATS["txt"]
    ending = path.suffix.lower()
    if ending in COMPRESSED:
        ending = Path(path.stem).suffix.lower()
    for known in FORMATS.values():
        if ending in known.endings:
            return known
    endings = " ".join(ending for known in FORMATS.values() for ending in known.endings)
    raise CorpusError(f"unknown ending: use one of {endings}, or --format for an input", file=path)


def read(
    path: str | PathLike[str],
    *,
    format: str | None = None,
    complete: bool | None = None,
    options: ReadOptions = ReadOptions(),
    lost: Lost | None = None,
    on_error: Callable[[CorpusError], None] = raise_error,
    on_bytes: Callable[[int], object] | None = None,
) -> Iterator[Document]:
    """Stream documents from a file or folder.

    Arguments:
        path: a file, a folder of `.txt` files, or `-` for standard input.
        format: a name in `FORMATS`; by default it follows from the path's ending.
        complete: value of `Document.complete` for documents whose file does not say.
        options: layout of the file.
        lost: records what the reader repaired or ignored.
        on_error: receives the error of a single document, which is then skipped; by default errors are raised.
        on_bytes: called with the number of bytes just read, for a progress bar.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "gold.conll"
    >>> _ = file.write_text("Mara B-PER\\nleft O\\nOslo B-LOC\\n")
    >>> [doc] = read(file, complete=True)
    >>> doc.text, [span.key for span in doc.spans]
    ('Mara left Oslo', [(0, 4, 'PER'), (10, 14, 'LOC')])
    """
    path = Path(path)
    if path == STANDARD_STREAM:
        _check_streamed(format, "standard input")
    elif not path.exists():
        raise CorpusError("there is no such file or folder", file=path)
    file_format = format_of(path, format)
    if options.words not in ("unicode", "space"):
        raise ConfigError(f"--words is unicode or space, not {options.words!r}")
    if options.scheme is not None:
        _check_scheme(options.scheme)
    file = CorpusFile(path, options, lost if lost is not None else Lost(), on_error, on_bytes)
    return _apply_defaults(file_format.read(file), complete, options)


def _check_streamed(format: str | None, stream: str) -> None:
    if format in FORMATS and format not in STREAMED:
        raise ConfigError(f"{stream} cannot be in the format {format}: name a file, or choose {', '.join(STREAMED)}")


def _check_scheme(scheme: str) -> None:
    if scheme not in SCHEMES:
        raise ConfigError(f"there is no tag scheme {scheme!r}: --scheme is one of {', '.join(SCHEMES)}")


def _apply_defaults(docs: Iterator[Document], complete: bool | None, options: ReadOptions) -> Iterator[Document]:
    for doc in docs:
        if doc.complete is None:
            doc.complete = complete
        if options.words == "space" and doc.words is None:
            doc.words = split_spaces(doc.text)
        yield doc


def write(
    docs: Iterable[Document], path: str | PathLike[str], *, format: str | None = None, scheme: str = "IOB2"
) -> Lost:
    """Write documents and return what the format cannot express; `scheme` is for formats with tags.

    The path `-` is standard output, where the default format is jsonl.

    >>> import tempfile
    >>> lost = write([Document("a", "Mara left")], Path(tempfile.mkdtemp()) / "texts.txt")
    >>> print(lost)
    lost: id not written: 1
    """
    _check_scheme(scheme)
    lost = Lost()
    if Path(path) == STANDARD_STREAM:
        _check_streamed(format, "standard output")
        format = format or "jsonl"
    if Path(path).suffix.lower() in COMPRESSED:
        raise CorpusError("compressed files can be read, not written: leave out the last ending", file=path)
    format_of(path, format).write(docs, Path(path), lost, scheme)
    return lost
