"""Rows of JSON, streamed: JSON lines, the elements of a top-level array, or those of a list in a top-level object.

The standard library can parse only a complete text, and exports of annotation tools are often one array of a gigabyte.
So a file is decoded value by value, from a buffer that grows until the next value is complete.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from lacuner.corpus.reader import MAX_LINE, CorpusFile
from lacuner.corpus.records import Record
from lacuner.errors import CorpusError

_SPACE = re.compile(r"[ \t\r\n]*")
_ESCAPED = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
"""Escapes of NUL and surrogates: only an escape can contain characters that the encoding of the file cannot."""
_REFUSED = re.compile("[\0\ud800-\udfff]")
_PAIR = re.compile(r'\[\s*"')
"""How a line begins that is a pair of spaCy 2; an array of rows begins with a bracket or a brace."""
_LISTS = ("documents", "data", "rows", "examples", "tasks", "PubTator3")
"""Keys of a top-level object whose list holds the rows."""


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number in JSON")


SAMPLE = 100
"""Rows from which the format of a file is recognised, at most."""
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def parse_json(text: str) -> Any:
    """Parse one value; whatever is wrong with it is one sentence.

    >>> parse_json('{"text": "Mara"}')
    {'text': 'Mara'}
    """
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise CorpusError(f"this line is not JSON: {error.msg} at character {error.pos}") from error
    except (ValueError, RecursionError) as error:
        raise CorpusError("this line is not readable JSON: nested too deeply, or a number out of range") from error
    if "\\" in text and _ESCAPED.search(text):
        check_characters(value)
    return value


def check_characters(value: Any) -> None:
    """Refuse NUL and halves of surrogate pairs anywhere in a value."""
    values = [value]
    while values:
        value = values.pop()
        if isinstance(value, str):
            if _REFUSED.search(value):
                raise CorpusError("there is a NUL or half of a surrogate pair in this line")
        elif isinstance(value, dict):
            values += [*value, *value.values()]
        elif isinstance(value, list):
            values += value


def read_rows(file: CorpusFile) -> Iterator[Record]:
    """All rows of a file. A line that is not JSON is reported and skipped; an array cannot be read beyond a mistake."""
    if is_lines(file):
        return _read_lines(file)
    return read_array(file, file.read_pieces())


def is_lines(file: CorpusFile) -> bool:
    """Whether a file has one row per line; otherwise it is one JSON array or object."""
    return _is_lines(file.head_text())


def sample_rows(file: CorpusFile) -> list[Any]:
    """The first rows of a file, from which its format is recognised; none if it is not JSON."""
    head = file.head_text()
    if not head.lstrip().startswith(("{", "[")):
        return []
    rows: list[Any] = []
    try:
        if _is_lines(head):
            for line in file.head_lines():
                if line.strip() and len(rows) < SAMPLE:
                    rows.append(parse_json(line))
        else:
            for row in islice(read_array(file, iter([head])), SAMPLE):
                rows.append(row.value)
    except CorpusError:
        pass  # the end of the sample, or a mistake, which the reader reports
    return rows


def read_array(file: CorpusFile, pieces: Iterator[str], lists: Sequence[str] = _LISTS) -> Iterator[Record]:
    """The elements of an array, or of the list under one of the keys `lists` of an object; or the objects of a file."""
    stream = _JsonStream(file, pieces)
    if stream.peek() == "[":
        values = stream.read_list()
    elif stream.peek() == "{":
        values = _rows_of_object(stream, lists)
    else:
        raise file.error("this is not JSON: it begins with neither { nor [")
    is_array = stream.peek() == "["
    for number, (line, value) in enumerate(values, 1):
        yield Record(number, line, value)
    if is_array and stream.peek():
        raise stream.error("there is more after the end of the JSON array")


def _is_lines(head: str) -> bool:
    """Whether the first line is a complete object of its own, or not JSON at all."""
    first = head.lstrip().partition("\n")[0].strip()
    if not first.startswith("{"):
        return not first.startswith("[") or _PAIR.match(first) is not None
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        # an object on several lines has a first line of few characters, or one that is longer than what we have of it;
        # otherwise these are JSON lines, and the first is broken
        return len(first) > 1 and "\n" in head.lstrip() and not first.endswith(("{", "[", ","))
    return "text" in value or not any(isinstance(value.get(key), list) for key in _LISTS)


def _read_lines(file: CorpusFile) -> Iterator[Record]:
    number = file.part.row - 1 if file.part else 0
    for block in file.read_blocks():
        for line_number, line in enumerate(block.lines, block.first):
            if not line or line.isspace():
                continue
            number += 1
            try:
                yield Record(number, line_number, parse_json(line))
            except CorpusError as error:
                file.report(file.error(error.problem, line_number))


def _rows_of_object(stream: _JsonStream, lists: Sequence[str]) -> Iterator[tuple[int, Any]]:
    """The rows of an object's list, or consecutive objects on several lines each."""
    stream.skip("{")
    fields: dict[str, Any] = {}
    line, start = stream.line, stream.position
    while stream.peek() not in ("}", ""):
        key = stream.read_value()
        if not isinstance(key, str):
            raise stream.error("the key of an object must be a string")
        stream.skip(":")
        if key in lists and stream.peek() == "[" and "text" not in fields:
            yield from stream.read_list()
            return  # what follows the list is about the whole collection
        fields[key] = stream.read_value()
        if stream.position - start > MAX_LINE:
            raise stream.error(f"this object is longer than {MAX_LINE:,} characters")
        if stream.peek() == ",":
            stream.skip(",")
    stream.skip("}")
    yield line, fields
    while stream.peek() == "{":
        line = stream.line
        yield line, stream.read_value()
    if stream.peek():
        raise stream.error("there is more after the end of the JSON object")


class _JsonStream:
    """Values of a JSON file that is not held in memory."""

    def __init__(self, file: CorpusFile, pieces: Iterator[str]) -> None:
        self._file, self._pieces = file, pieces
        self._text, self._at, self._done = "", 0, False
        self._dropped = 0
        self.line = 1

    @property
    def position(self) -> int:
        """Characters that were read."""
        return self._dropped + self._at

    def error(self, problem: str) -> CorpusError:
        return self._file.error(problem, self.line)

    def _fill(self) -> None:
        """Drop what was used, and at least double what is left, so that long values take linear time."""
        self._dropped += self._at
        self._text, self._at = self._text[self._at :], 0
        parts, size, least = [self._text], 0, max(len(self._text), 1)
        while size < least and not self._done:
            piece = next(self._pieces, None)
            if piece is None:
                self._done = True
            else:
                parts.append(piece)
                size += len(piece)
        self._text = "".join(parts)

    def peek(self) -> str:
        """The next character that is not white space; empty at the end."""
        while True:
            character = self._text[self._at : self._at + 1]
            if character and character not in " \t\r\n":
                return character
            match = _SPACE.match(self._text, self._at)
            end = match.end() if match else self._at
            self.line += self._text.count("\n", self._at, end)
            self._at = end
            if end == len(self._text):
                if self._done:
                    return ""
                self._fill()

    def skip(self, character: str) -> None:
        following = self.peek()
        if following != character:
            raise self.error(f"this is not JSON: {character!r} expected, not {following!r}")
        self._at += 1

    def read_value(self) -> Any:
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
                # a number or word at the end of the buffer may continue in the next block
                if end < len(self._text) or self._done:
                    break
            except json.JSONDecodeError as error:
                if self._done:
                    raise self.error(f"this is not JSON: {error.msg}") from error
            except (ValueError, RecursionError) as error:
                problem = "this is not readable JSON: nested too deeply, or a number out of range"
                raise self.error(problem) from error
            if len(self._text) - self._at > MAX_LINE:
                raise self.error(f"this value is longer than {MAX_LINE:,} characters, or not JSON")
            self._fill()
        if self._text.find("\\", self._at, end) >= 0 and _ESCAPED.search(self._text, self._at, end):
            try:
                check_characters(value)
            except CorpusError as error:
                raise self.error(error.problem) from error
        self.line += self._text.count("\n", self._at, end)
        self._at = end
        return value

    def read_list(self) -> Iterator[tuple[int, Any]]:
        """The elements of a list, each with its line."""
        self.skip("[")
        while self.peek() != "]":
            line = self.line
            yield line, self.read_value()
            following = self.peek()
            if following == ",":
                self._at += 1
            elif following != "]":
                raise self.error("this is not JSON: a comma or ] expected; is the file complete?")
        self.skip("]")
