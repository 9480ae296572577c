"""The table of formats, and the two functions that use it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from lacuner.corpus import conll, docbin, jsonl, text
from lacuner.corpus.lines import Seen
from lacuner.corpus.reader import Reading, ReadOptions, raise_error
from lacuner.corpus.tags import SCHEMES
from lacuner.corpus.words import split_spaces
from lacuner.data import Document, Lost
from lacuner.errors import ConfigError, CorpusError


class Format(NamedTuple):
    """A way to keep documents in a file."""

    endings: tuple[str, ...]
    read: Callable[[Reading], Iterator[Document]]
    write: Callable[[Iterable[Document], Path, Lost, str], None]
    what: str


FORMATS: dict[str, Format] = {
    "jsonl": Format(
        (".jsonl", ".ndjson"), jsonl.read_jsonl, jsonl.write_jsonl, "JSON lines, lossless; reads tokens + tags too"
    ),
    "conll": Format(
        (".conll", ".iob", ".iob2", ".bio"), conll.read_conll, conll.write_conll, "columns, one word a line"
    ),
    "tokens": Format((), jsonl.read_jsonl, jsonl.write_tokens, "JSON lines with tokens and ner_tags"),
    "txt": Format((".txt",), text.read_txt, text.write_txt, "plain text: a folder of files, or a document a line"),
    "spacy": Format((".spacy",), docbin.read_docbin, docbin.write_docbin, "spaCy DocBin"),
}


def format_of(path: str | PathLike[str], name: str | None = None) -> Format:
    """The named format, or the one that the path's ending tells."""
    if name is not None:
        if name not in FORMATS:
            raise CorpusError(f"there is no format {name!r}; there are {', '.join(FORMATS)}", file=path)
        return FORMATS[name]
    path = Path(path)
    if path.is_dir():
        return FORMATS["txt"]
    for known in FORMATS.values():
        if path.suffix.lower() in known.endings:
            return known
    endings = " ".join(ending for known in FORMATS.values() for ending in known.endings)
    raise CorpusError(f"the ending tells no format (known: {endings}); name one of {', '.join(FORMATS)}", file=path)


def read(
    path: str | PathLike[str],
    *,
    format: str | None = None,
    complete: bool | None = None,
    options: ReadOptions = ReadOptions(),
    lost: Lost | None = None,
    on_error: Callable[[CorpusError], None] | None = None,
    seen: Seen | None = None,
) -> Iterator[Document]:
    """Documents from a file or folder, one at a time.

    `complete` holds for documents that do not say it themselves. What a reader had to repair is added to `lost`.
    With `on_error`, a document that cannot be read is handed over as an error and skipped; without, it is raised.
    `seen` is told how many bytes have been read, for a progress bar.
    """
    path = Path(path)
    if not path.exists():
        raise CorpusError("there is no such file or folder", file=path)
    found = format_of(path, format)
    if options.words not in ("unicode", "space"):
        raise ConfigError(f"words are split by unicode or by space, not by {options.words!r}")
    if options.scheme is not None and options.scheme not in SCHEMES:
        raise ConfigError(f"there is no tag scheme {options.scheme!r}; there are {', '.join(SCHEMES)}")
    reading = Reading(path, options, lost if lost is not None else Lost(), on_error or raise_error, seen)
    return _as_asked(found.read(reading), complete, options)


def _as_asked(docs: Iterator[Document], complete: bool | None, options: ReadOptions) -> Iterator[Document]:
    for doc in docs:
        if doc.complete is None:
            doc.complete = complete
        if options.words == "space" and doc.words is None:
            doc.words = split_spaces(doc.text)
        yield doc


def write(
    docs: Iterable[Document], path: str | PathLike[str], *, format: str | None = None, scheme: str = "IOB2"
) -> Lost:
    """Write documents, and return what the format could not express."""
    if scheme not in SCHEMES:
        raise ConfigError(f"there is no tag scheme {scheme!r}; there are {', '.join(SCHEMES)}")
    lost = Lost()
    format_of(path, format).write(docs, Path(path), lost, scheme)
    return lost
