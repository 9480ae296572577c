"""What the reader of every format is given: options, a place for losses and errors, and lines in bounded memory.

Lines are read by hand because Python's own line iteration has no limit on the length of a line, and `str.splitlines`
also breaks at U+2028 and similar characters, which occur inside sentences.
"""

import bz2
import codecs
import gzip
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

from lacuner.atomic import STANDARD_STREAM
from lacuner.data import Lost, Span
from lacuner.errors import CorpusError

COMPRESSED: dict[str, Callable[[BinaryIO], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
"""Endings of compressed files, which are read like the files inside."""
BLOCK = 1 << 20
MAX_LINE = 16 << 20
"""Characters per line, at most; a longer line is taken for a file without line breaks."""
MAX_TEXT = 4 * MAX_LINE
"""Characters of a document that is a file of its own, at most."""


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file; by default the layout is detected from the beginning of the file.

    >>> ReadOptions(separator=",", tag_column=1).scheme is None  # detected
    True
    """

    encoding: str = "utf-8"
    separator: str | None = None
    """Column files: column separator; None detects it."""
    token_column: int = 0
    """Column files: column of the word, from 0, or from the end if negative."""
    tag_column: int = -1
    """Column files: column of the tag."""
    scheme: str | None = None
    """Column files and tags in JSON: one of `tags.SCHEMES`; None detects it."""
    strict: bool = False
    """Drop entities whose tags break the scheme, as seqeval's strict mode does; by default they are repaired as
    conlleval reads them."""
    words: Literal["unicode", "space"] = "unicode"
    """Word splitting of texts without words: by the Unicode rule, or at white space."""
    keep_bad_spans: bool = False
    """Keep spans that are empty or outside the text instead of refusing them; only for `check`."""


class Block(NamedTuple):
    """Consecutive lines of a file, and the number of the first."""

    first: int
    lines: list[str]


def raise_error(error: CorpusError) -> None:
    raise error


@dataclass(frozen=True)
class CorpusFile:
    """A file or folder being read; `report` receives the error of a single document, and raises it by default."""

    path: Path
    options: ReadOptions = ReadOptions()
    lost: Lost = field(default_factory=Lost)
    report: Callable[[CorpusError], None] = raise_error
    on_bytes: Callable[[int], object] | None = None
    """Called with the number of bytes just read, for a progress bar."""

    def error(self, problem: str, line: int | None = None) -> CorpusError:
        return CorpusError(problem, file=self.path, line=line)

    def read_blocks(self) -> Iterator[Block]:
        """Lines in blocks of about a megabyte; line ends are LF or CRLF, a byte order mark is skipped."""
        first, rest = 1, ""
        for text in self._decode():
            text = rest + text
            cut = text.rfind("\n") + 1
            if cut:
                yield Block(first, _split_lines(text[: cut - 1]))
                first += text.count("\n", 0, cut)
            rest = text[cut:]
            if len(rest) > MAX_LINE:
                raise self.error(f"this line is longer than {MAX_LINE:,} characters", first)
        if rest:
            yield Block(first, _split_lines(rest))

    def read_text(self) -> str:
        """The whole file with its line ends; a byte order mark is skipped."""
        parts: list[str] = []
        size = 0
        for text in self._decode():
            parts.append(text)
            size += len(text)
            if size > MAX_TEXT:
                raise self.error(f"this document is longer than {MAX_TEXT:,} characters: split the file")
        return "".join(parts)

    def _decode(self) -> Iterator[str]:
        """The text in pieces, without byte order mark; NUL bytes and undecodable bytes are errors."""
        encoding, line, start, position = self.options.encoding, 1, True, 0
        decoder = self._decoder()
        try:
            with self._open() as file, self._decompress(file) as stream:
                while True:
                    data = stream.read(BLOCK)
                    if start and encoding == "utf-8" and data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                        raise self.error("this looks like UTF-16: save it as UTF-8, or use --encoding utf-16")
                    text = decoder.decode(data, final=not data)
                    if start and text:
                        text, start = text.removeprefix("\ufeff"), False
                    if "\0" in text:
                        line += text.count("\n", 0, text.index("\0"))
                        raise self.error("there is a NUL byte here: is this a binary file?", line)
                    if self.on_bytes is not None:
                        reached = file.tell() if file.seekable() else position + len(data)
                        self.on_bytes(reached - position)
                        position = reached
                    yield text
                    if not data:
                        return
                    line += text.count("\n")
        except UnicodeDecodeError as error:
            line += error.object[: error.start].decode(encoding, "ignore").count("\n")
            problem = f"this is not {encoding} text ({error.reason}): give the encoding of the file with --encoding"
            raise self.error(problem, line) from error
        except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
            raise self.error(f"cannot read this file: {getattr(error, 'strerror', None) or error}") from error

    def _open(self) -> AbstractContextManager[BinaryIO]:
        return nullcontext(sys.stdin.buffer) if self.path == STANDARD_STREAM else open(self.path, "rb")

    def _decompress(self, file: BinaryIO) -> AbstractContextManager[BinaryIO]:
        opener = COMPRESSED.get(self.path.suffix.lower())
        return nullcontext(file) if opener is None else opener(file)

    def _decoder(self) -> codecs.IncrementalDecoder:
        encoding = self.options.encoding
        try:
            "".encode(encoding)  # fails for codecs that are not text encodings, unlike codecs.lookup
            return codecs.getincrementaldecoder(encoding)()
        except LookupError as error:
            raise self.error(f"there is no encoding called {encoding!r}: check --encoding") from error


def _split_lines(text: str) -> list[str]:
    lines = text.split("\n")
    if "\r" in text:
        lines = [line.removesuffix("\r") for line in lines]
    return lines


def span_problem(text: str, span: Span) -> str | None:
    """Why a span is impossible in this text, or None."""
    if span.start == span.end:
        return f"the span {span.start}-{span.end} is empty"
    if span.start > span.end:
        return f"the span {span.start}-{span.end} ends before it begins"
    if span.start < 0 or span.end > len(text):
        return f"the span {span.start}-{span.end} is outside the text of {len(text)} characters"
    return None
