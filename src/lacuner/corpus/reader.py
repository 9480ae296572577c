"""What the reader of every format is given: options, a place for losses and errors, and lines in bounded memory.

Lines are read by hand because Python's own line iteration has no limit on the length of a line, and `str.splitlines`
also breaks at U+2028 and similar characters, which occur inside sentences.
"""

import codecs
import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple

from lacuner.atomic import STANDARD_STREAM
from lacuner.corpus.streams import HEAD, Input, is_device
from lacuner.data import Lost, Span
from lacuner.errors import CorpusError

BLOCK = 1 << 20
MAX_LINE = 16 << 20
"""Characters per line, at most; a longer line is taken for a file without line breaks."""
MAX_TEXT = 4 * MAX_LINE
"""Characters of a document that is a file of its own, or a paragraph of lines, at most."""
MAX_LINES = 1_000_000
"""Lines of a paragraph, at most."""


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
    label_names: tuple[str, ...] = ()
    """Names of integer tags, in the order of their numbers, where the file does not have them."""
    text_field: str | None = None
    """JSON: the key of the text, or of the list of words; by default the key that the tool uses."""
    tag_field: str | None = None
    """JSON and data sets: the key of the words' tags; by default `tags` or `ner_tags`."""
    offsets: Literal["characters", "utf-16", "bytes"] = "characters"
    """Unit of character offsets in JSON: JavaScript counts UTF-16 units, some tools count bytes of UTF-8."""
    split: str | None = None
    """Folders: the split to read, if there are several."""
    keep_bad_spans: bool = False
    """Keep spans that are empty or outside the text instead of refusing them; only for `check`."""


class Block(NamedTuple):
    """Consecutive lines of a file, and the number of the first."""

    first: int
    lines: list[str]


class Part(NamedTuple):
    """A part of a file that can be read on its own: bytes `start` to `stop`, which are whole lines or row groups."""

    start: int
    stop: int
    line: int = 1
    """Number of its first line in the file."""
    row: int = 1
    """Number of its first document, which is the id of a document that has none."""
    groups: tuple[int, int] | None = None
    """Parquet: its first row group, and the one after its last."""


_READ_ERRORS = (OSError, EOFError, lzma.LZMAError, zlib.error)


def raise_error(error: CorpusError) -> None:
    """Raise the error of a single document: what `CorpusFile.report` does by default."""
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
    part: Part | None = None
    """The part to read, of a file of lines or a Parquet file that is not compressed; None for all of it."""
    id_prefix: str = ""
    """What precedes the number in the id of a document that has none: files of a folder have their names there."""
    input: Input = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "input", Input(self.path))

    def at(self, path: Path) -> "CorpusFile":
        """Another file that is read in the same way, e.g. one in this folder."""
        return replace(self, path=path)

    def head(self) -> bytes:
        """The first bytes of the file, decompressed; a pipe can still be read from its beginning."""
        try:
            return self.input.head()
        except _READ_ERRORS as error:
            raise self._unreadable(error) from error

    def head_text(self) -> str:
        """The beginning of the file; characters that cannot be decoded are replaced."""
        self._decoder()  # an unknown encoding is an error
        try:
            return self.head().decode(self.options.encoding, "replace").removeprefix("\ufeff")
        except UnicodeError as error:
            raise self._undecodable(error) from error

    def head_lines(self) -> list[str]:
        """The complete lines at the beginning of the file."""
        lines = _split_lines(self.head_text())
        return lines[:-1] if len(self.head()) >= HEAD and len(lines) > 1 else lines

    def number_id(self, number: int) -> str:
        """The id of a document that has none in the file: its number."""
        return f"{self.id_prefix}{number}"

    def error(self, problem: str, line: int | None = None) -> CorpusError:
        """An error that names this file."""
        return CorpusError(problem, file="standard input" if self.path == STANDARD_STREAM else self.path, line=line)

    def read_blocks(self, max_line: int | None = None) -> Iterator[Block]:
        """Lines in blocks of about a megabyte; line ends are LF or CRLF, a byte order mark is skipped."""
        for block in self._read_blocks(max_line or MAX_LINE):
            if max_line is not None and max(map(len, block.lines)) > max_line:
                number = next(i for i, line in enumerate(block.lines, block.first) if len(line) > max_line)
                raise self.error(f"this line is longer than {max_line:,} characters", number)
            yield block

    def _read_blocks(self, max_line: int) -> Iterator[Block]:
        first, rest = self.part.line if self.part else 1, ""
        for text in self.read_pieces():
            text = rest + text
            cut = text.rfind("\n") + 1
            if cut:
                yield Block(first, _split_lines(text[: cut - 1]))
                first += text.count("\n", 0, cut)
            rest = text[cut:]
            if len(rest) > max_line:
                raise self.error(f"this line is longer than {max_line:,} characters", first)
        if rest:
            yield Block(first, _split_lines(rest))

    def read_paragraphs(self, max_line: int | None = None, marker: str = "\n") -> Iterator[Block]:
        """Runs of lines that are not blank. A line that begins with the word `marker` is a paragraph without lines."""
        lines: list[str] = []
        first, initial = 1, marker[0]
        for block in self.read_blocks(max_line):
            at = 0
            breaks = [
                i
                for i, line in enumerate(block.lines)
                if not line or line.isspace() or (line[0] == initial and begins_with_word(line, marker))
            ]
            for stop in breaks:
                if lines or stop > at:
                    yield Block(first if lines else block.first + at, lines + block.lines[at:stop])
                    lines = []
                if block.lines[stop].startswith(marker):
                    yield Block(block.first + stop, [])
                at = stop + 1
            first = first if lines else block.first + at
            lines += block.lines[at:]
            if len(lines) > MAX_LINES or sum(map(len, lines)) > MAX_TEXT:
                limits = f"{MAX_LINES:,} lines or {MAX_TEXT:,} characters"
                raise self.error(f"from here on there are more than {limits} without a blank line", first)
        if lines:
            yield Block(first, lines)

    def read_text(self) -> str:
        """The whole file with its line ends; a byte order mark is skipped."""
        parts: list[str] = []
        size = 0
        for text in self.read_pieces():
            parts.append(text)
            size += len(text)
            if size > MAX_TEXT:
                raise self.error(f"this document is longer than {MAX_TEXT:,} characters: split the file")
        return "".join(parts)

    def read_bytes(self, limit: int) -> bytes:
        """The whole file, decompressed, if it is not larger than `limit` bytes."""
        if is_device(self.path):
            raise self.error("this is a device, not a file")
        parts: list[bytes] = []
        size = 0
        for data in self.read_chunks():
            parts.append(data)
            size += len(data)
            if size > limit:
                raise self.error(f"this file is larger than {limit >> 20:,} MiB: split it")
        return b"".join(parts)

    def read_chunks(self) -> Iterator[bytes]:
        """The decompressed bytes in blocks; the last is empty."""
        position = 0
        if self.part is not None:
            yield from self._read_part(self.part)
            return
        try:
            with self.input.open() as (stream, taken):
                while True:
                    data = stream.read(BLOCK)
                    if self.on_bytes is not None:
                        self.on_bytes(taken() - position)
                        position = taken()
                    yield data
                    if not data:
                        return
        except _READ_ERRORS as error:
            raise self._unreadable(error) from error

    def _read_part(self, part: Part) -> Iterator[bytes]:
        left = part.stop - part.start
        try:
            with self.path.open("rb") as stream:
                stream.seek(part.start)
                while data := stream.read(min(BLOCK, left)):
                    left -= len(data)
                    yield data
        except _READ_ERRORS as error:
            raise self._unreadable(error) from error
        if left:
            raise self.error("this file has become shorter while it was read")
        yield b""

    def _unreadable(self, error: Exception) -> CorpusError:
        return self.error(f"cannot read this file: {getattr(error, 'strerror', None) or error}")

    def read_pieces(self) -> Iterator[str]:
        """The text in pieces, without byte order mark; NUL bytes and undecodable bytes are errors."""
        encoding, line = self.options.encoding, self.part.line if self.part else 1
        start = not self.part or not self.part.start  # a byte order mark is at the beginning of the file only
        decoder = self._decoder()
        try:
            for data in self.read_chunks():
                if start and encoding == "utf-8" and data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                    raise self.error("this looks like UTF-16: save it as UTF-8, or use --encoding utf-16")
                text = decoder.decode(data, final=not data)
                if start and text:
                    text, start = text.removeprefix("\ufeff"), False
                if "\0" in text:
                    line += text.count("\n", 0, text.index("\0"))
                    raise self.error("there is a NUL byte here: is this a binary file?", line)
                yield text
                line += text.count("\n")
        except UnicodeDecodeError as error:
            line += error.object[: error.start].decode(encoding, "ignore").count("\n")
            advice = f"give the encoding of all input files with --encoding, or convert this file to {encoding}"
            problem = f"this is not {encoding} text ({error.reason}): {advice}"
            raise self.error(problem, line) from error
        except UnicodeError as error:  # UTF-16 and UTF-32 without a byte order mark
            raise self._undecodable(error) from error

    def _undecodable(self, error: UnicodeError) -> CorpusError:
        encoding = self.options.encoding
        return self.error(f"this is not {encoding} text ({error}): give the encoding with --encoding, e.g. utf-16-le")

    def _decoder(self) -> codecs.IncrementalDecoder:
        encoding = self.options.encoding
        try:
            "".encode(encoding)  # fails for codecs that are not text encodings, unlike codecs.lookup
            return codecs.getincrementaldecoder(encoding)()
        except (LookupError, ValueError) as error:  # NUL in the name, and the codec "undefined"
            raise self.error(f"there is no encoding called {encoding!r}: check --encoding") from error


def _split_lines(text: str) -> list[str]:
    lines = text.split("\n")
    if "\r" in text:
        lines = [line.removesuffix("\r") for line in lines]
    return lines


def begins_with_word(line: str, word: str) -> bool:
    """Whether a line begins with a word that white space, or the end of the line, follows."""
    return line.startswith(word) and not line[len(word) : len(word) + 1].strip()


def span_problem(text: str, span: Span) -> str | None:
    """Why a span is impossible in this text, or None."""
    place = "-".join(f"{offset}"[:20] for offset in span[:2])  # a file may have offsets of thousands of digits
    if span.start == span.end:
        return f"the span {place} is empty"
    if span.start > span.end:
        return f"the span {place} ends before it begins"
    if span.start < 0 or span.end > len(text):
        return f"the span {place} is outside the text of {len(text)} characters"
    return None
