"""Documents from rows of JSON and back: what the formats that consist of such rows share."""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from lacuner.corpus.json_stream import read_rows
from lacuner.corpus.reader import CorpusFile
from lacuner.corpus.records import read_documents
from lacuner.corpus.streams import open_output
from lacuner.corpus.tags import is_tag
from lacuner.data import Document, Lost, Span
from lacuner.errors import CorpusError

to_json = json.JSONEncoder(ensure_ascii=False).encode
"""A value as JSON on one line; `json.dumps` would build an encoder for each call."""
_ANNOTATION_KEYS = {"entities", "named_entities", "ents", "ner", "spans", "relations", "ner_tags"}
MAX_DEPTH = 4
"""Levels of a value in which annotation is looked for."""
_OFFSET_KEYS = ("start", "begin", "offset", "offsets", "start_offset", "startOffset", "BeginOffset", "start_char")


def as_object(value: Any) -> dict[str, Any]:
    """A row, which must be a JSON object."""
    if not isinstance(value, dict):
        raise CorpusError('a line must be a JSON object, such as {"text": ...}')
    return value


def json_reader(
    convert: Callable[[dict[str, Any], int, CorpusFile], Document],
    as_row: Callable[[Any], dict[str, Any]] = as_object,
    offsets: str | None = None,
) -> Callable[[CorpusFile], Iterator[Document]]:
    """The reader of a format with one document per row, by a function of the row, its number and the file.

    `offsets` as for `read_documents`.
    """

    def convert_value(value: Any, number: int, file: CorpusFile) -> Document:
        return convert(as_row(value), number, file)

    return lambda file: read_documents(file, read_rows(file), convert_value, offsets)


def json_writer(
    as_row: Callable[[Document, Lost], Any], write_rows: Callable[[Path, Iterable[Any]], None]
) -> Callable[[Iterable[Document], Path, Lost, str], None]:
    """The writer of a format with one row per document, as lines or as an array."""

    def write(docs: Iterable[Document], path: Path, lost: Lost, scheme: str = "IOB2") -> None:
        write_rows(path, (as_row(doc, lost) for doc in docs))

    return write


def count_unread(row: dict[str, Any], known: set[str] | frozenset[str], lost: Lost) -> dict[str, Any]:
    """The keys that a format does not know, for `meta`; those that look like annotation are counted in `lost`."""
    others = {key: row[key] for key in row if key not in known}
    for key, value in others.items():
        if (key in _ANNOTATION_KEYS and isinstance(value, list | dict) and value) or looks_like_annotation(value):
            lost.count(f"`{key[:40]}` looks like annotation and is not read")
    return others


def looks_like_annotation(value: Any, depth: int = MAX_DEPTH) -> bool:
    """Whether there are offsets, two numbers with a name, or tags in a value; of a list, the first item is looked at.

    Tags may be joined to a string.

    >>> looks_like_annotation([{"start": 0, "end": 4, "type": "PER"}]), looks_like_annotation([1, 2])
    (True, False)
    >>> [looks_like_annotation(value) for value in ({"PER": [[0, 4]]}, ["B-PER", "O"], "B-PER O", "Oslo")]
    [True, True, True, False]
    """
    if isinstance(value, str) and depth == MAX_DEPTH:
        words = value.split(maxsplit=50)[:50]
        return len(words) > 1 and looks_like_annotation(words, 1)
    if depth == 0 or not isinstance(value, list | dict) or not value:
        return False
    if isinstance(value, dict):
        items = list(value.values())[:20]
        has_offset = any(type(value.get(key)) is int or isinstance(value.get(key), list) for key in _OFFSET_KEYS)
        return has_offset or any(_is_pair(item) or looks_like_annotation(item, depth - 1) for item in items)
    kinds = sorted(type(item).__name__ for item in value[:3])
    if kinds == ["int", "int", "str"]:
        return True
    if all(isinstance(item, str) for item in value):
        return all(map(is_tag, value)) and any(item != "O" for item in value)
    return looks_like_annotation(next(filter(None, value), None), depth - 1)


def _is_pair(value: Any) -> bool:
    """Whether a list begins with two numbers, which may be the beginning and the end of a span."""
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, list) and [type(item) for item in first] == [int, int]


def text_key(file: CorpusFile, default: str = "text") -> str:
    """The key of the text."""
    return file.options.text_field or default


def get_text(row: dict[str, Any], file: CorpusFile, default: str = "text") -> str:
    """The text of a row, under the tool's key or the one of `--text-field`."""
    key = text_key(file, default)
    text = get(row, key, str, None)
    if text is None:
        raise CorpusError(f"there is no `{key}` in this line: give the key of the text with --text-field")
    return str(text)


def write_lines(path: Path, rows: Iterable[Any]) -> None:
    """Write JSON lines."""
    with open_output(path) as stream:
        for row in rows:
            stream.write((to_json(row) + "\n").encode())


def write_array(path: Path, rows: Iterable[Any]) -> None:
    """Write one JSON array, row by row."""
    with open_output(path) as stream:
        empty = True
        for number, row in enumerate(rows):
            stream.write((",\n" if number else "[\n").encode())
            stream.write(to_json(row).encode())
            empty = False
        stream.write(b"[]\n" if empty else b"\n]\n")


def get(row: dict[str, Any], key: str, kind: type, default: Any) -> Any:
    """The value of a key if it has the right type; None counts as missing."""
    value = row.get(key)
    if value is None:
        return default
    if not isinstance(value, kind):
        names = {list: "a list", str: "a string", bool: "true or false", dict: "an object"}
        raise CorpusError(f"`{key}` must be {names[kind]}, not {show(value)}")
    return value


def show(value: Any, length: int = 60) -> str:
    """The beginning of a value as JSON, for an error message."""
    return json.dumps(value)[:length]


def new_span(start: Any, end: Any, label: Any, place: str, score: Any = None, source: Any = None) -> Span:
    """A span from values of a file; `place` is the key that they come from.

    >>> new_span(0, 9, "PERSON", "label")
    Span(start=0, end=9, label='PERSON', score=None, source=None)
    """
    if type(start) is not int or type(end) is not int:
        raise CorpusError(
            f"an entry of `{place}` must have whole numbers as start and end: {show([start, end, label])}"
        )
    if not isinstance(label, str) or not label:
        raise CorpusError(f"the entry {start}-{end} of `{place}` needs a label")
    if score is not None:
        score = new_score(score, f"{start}-{end}")
    if source is not None and not isinstance(source, str):
        source = None
    return tuple.__new__(Span, (start, end, label, score, source))  # three times as fast as Span(...)


def new_score(score: Any, place: str) -> float | None:
    """A score from a file, which must be a finite number."""
    if score is None:
        return None
    try:
        number = float(score) if type(score) in (int, float) else float("nan")
    except OverflowError:
        number = float("inf")
    if number - number != 0:
        raise CorpusError(f"the score of {place} must be a finite number")
    return number


def new_id(value: Any, default: str) -> str:
    """The id of a document, which has the default if the file has none."""
    if value is None:
        return default
    if type(value) not in (str, int):
        raise CorpusError("`id` must be a string or a whole number")
    return str(value)
