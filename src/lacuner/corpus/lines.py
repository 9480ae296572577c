"""Lines of a text file in bounded memory, with their line numbers.

Written by hand because Python's own line iteration has no limit on the length of a line, and `str.splitlines` also
breaks at U+2028 and similar characters, which occur inside sentences.
"""

import codecs
from collections.abc import Callable, Iterator
from os import PathLike
from typing import NamedTuple

from lacuner.errors import CorpusError

BLOCK = 1 << 20
MAX_LINE = 16 << 20
"""Characters per line, at most; a longer line is taken for a file without line breaks."""

OnBytes = Callable[[int], object]
"""Called with the number of bytes just read, for a progress bar."""


class Block(NamedTuple):
    """Consecutive lines of a file, and the number of the first."""

    first: int
    lines: list[str]


def read_blocks(
    path: str | PathLike[str], encoding: str = "utf-8", limit: int = MAX_LINE, on_bytes: OnBytes | None = None
) -> Iterator[Block]:
    """Lines in blocks of about a megabyte; line ends are LF or CRLF, a byte order mark is skipped."""
    first, rest = 1, ""
    for text in _decode(path, encoding, on_bytes):
        text = rest + text
        cut = text.rfind("\n") + 1
        if cut:
            yield Block(first, _lines(text[: cut - 1]))
            first += text.count("\n", 0, cut)
        rest = text[cut:]
        if len(rest) > limit:
            raise CorpusError(
                f"this line is longer than {limit:,} characters",
                file=path,
                line=first,
            )
    if rest:
        yield Block(first, _lines(rest))


def read_text(
    path: str | PathLike[str], encoding: str = "utf-8", limit: int = 4 * MAX_LINE, on_bytes: OnBytes | None = None
) -> str:
    """The whole file with its line ends; a byte order mark is skipped."""
    parts: list[str] = []
    size = 0
    for text in _decode(path, encoding, on_bytes):
        parts.append(text)
        size += len(text)
        if size > limit:
            raise CorpusError(f"this document is longer than {limit:,} characters: split the file", file=path)
    return "".join(parts)


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if "\r" in text:
        lines = [line.removesuffix("\r") for line in lines]
    return lines


def _decode(path: str | PathLike[str], encoding: str, on_bytes: OnBytes | None) -> Iterator[str]:
    """The text in pieces, without byte order mark; NUL bytes and undecodable bytes are errors."""
    decoder = _decoder(path, encoding)
    line = 1
    try:
        with open(path, "rb") as stream:
            start = True
            while True:
                data = stream.read(BLOCK)
                if start and encoding == "utf-8" and data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                    raise CorpusError("this looks like UTF-16: save it as UTF-8, or use --encoding utf-16", file=path)
                text = decoder.decode(data, final=not data)
                if start and text:
                    text, start = text.removeprefix("\ufeff"), False
                if "\0" in text:
                    line += text.count("\n", 0, text.index("\0"))
                    raise CorpusError("there is a NUL byte here: is this a binary file?", file=path, line=line)
                if on_bytes is not None:
                    on_bytes(len(data))
                yield text
                if not data:
                    return
                line += text.count("\n")
    except UnicodeDecodeError as error:
        line += error.object[: error.start].decode(encoding, "ignore").count("\n")
        problem = f"this is not {encoding} text ({error.reason}): give the encoding of the file with --encoding"
        raise CorpusError(problem, file=path, line=line) from error
    except OSError as error:
        raise CorpusError(f"cannot read this file: {error.strerror or error}", file=path) from error


def _decoder(path: str | PathLike[str], encoding: str) -> codecs.IncrementalDecoder:
    try:
        "".encode(encoding)  # fails for codecs that are not text encodings, unlike codecs.lookup
        return codecs.getincrementaldecoder(encoding)()
    except LookupError as error:
        raise CorpusError(f"there is no encoding called {encoding!r}: check --encoding", file=path) from error
