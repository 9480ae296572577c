"""Lines of a text file in bounded memory, with true line numbers.

Written by hand because Python's own line iteration has no limit on a line's length, and because
`str.splitlines` would also break at U+2028 and its kin, which may stand inside a sentence.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from os import PathLike
from typing import NamedTuple

from lacuner.errors import CorpusError

BLOCK = 1 << 20
MAX_LINE = 16 << 20
"""Characters in a line, at most: beyond that it is not a line but a file without line breaks."""


Seen = Callable[[int], object]
"""Told how many more bytes of the input have been read."""


class Block(NamedTuple):
    """Some whole lines of a file, and the number of the first of them."""

    first: int
    lines: list[str]


def read_blocks(
    path: str | PathLike[str], encoding: str = "utf-8", limit: int = MAX_LINE, seen: Seen | None = None
) -> Iterator[Block]:
    """The file's lines, about a megabyte at a time; line ends are LF or CRLF, a byte order mark is skipped."""
    first, rest = 1, ""
    for text in _decoded(path, encoding, seen):
        text = rest + text
        cut = text.rfind("\n") + 1
        if cut:
            yield Block(first, _lines(text[: cut - 1]))
            first += text.count("\n", 0, cut)
        rest = text[cut:]
        if len(rest) > limit:
            raise CorpusError(f"this line is longer than {limit:,} characters", file=path, line=first)
    if rest:
        yield Block(first, _lines(rest))


def read_text(
    path: str | PathLike[str], encoding: str = "utf-8", limit: int = 4 * MAX_LINE, seen: Seen | None = None
) -> str:
    """The whole file as it is, line ends included; a byte order mark is skipped."""
    parts: list[str] = []
    size = 0
    for text in _decoded(path, encoding, seen):
        parts.append(text)
        size += len(text)
        if size > limit:
            raise CorpusError(f"this document is longer than {limit:,} characters", file=path)
    return "".join(parts)


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if "\r" in text:
        lines = [line.removesuffix("\r") for line in lines]
    return lines


def _decoded(path: str | PathLike[str], encoding: str, seen: Seen | None) -> Iterator[str]:
    """The file's text in pieces, without byte order mark; refuses NUL and what is not in the encoding."""
    decoder = _decoder(path, encoding)
    line = 1
    try:
        with open(path, "rb") as stream:
            start = True
            while True:
                data = stream.read(BLOCK)
                if start and encoding == "utf-8" and data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                    raise CorpusError("this looks like UTF-16; save it as UTF-8, or name the encoding", file=path)
                text = decoder.decode(data, final=not data)
                if start and text:
                    text, start = text.removeprefix("\ufeff"), False
                if "\0" in text:
                    line += text.count("\n", 0, text.index("\0"))
                    raise CorpusError("there is a NUL byte here; is this a binary file?", file=path, line=line)
                if seen is not None:
                    seen(len(data))
                yield text
                if not data:
                    return
                line += text.count("\n")
    except UnicodeDecodeError as error:
        line += error.object[: error.start].decode(encoding, "ignore").count("\n")
        sentence = f"this is not {encoding} text ({error.reason}); name its encoding, if it has another"
        raise CorpusError(sentence, file=path, line=line) from error
    except OSError as error:
        raise CorpusError(f"cannot read this file: {error.strerror or error}", file=path) from error


def _decoder(path: str | PathLike[str], encoding: str) -> codecs.IncrementalDecoder:
    try:
        "".encode(encoding)  # refuses codecs that are not text encodings, as codecs.lookup does not
        return codecs.getincrementaldecoder(encoding)()
    except LookupError as error:
        raise CorpusError(f"there is no encoding called {encoding!r}", file=path) from error
