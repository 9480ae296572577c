"""JSON lines: our own lossless form, and the words-and-tags form that other tools write.

Ours: `{"id", "text", "words", "spans", "rejected", "unsure", "complete", "meta"}`, offsets in characters; all but
`text` may be missing. Theirs: `{"tokens": [...], "tags" or "ner_tags": [...]}`, or `spans` of word numbers,
`{"start", "end", "label"}` half-open; `entities` or `label` (doccano) for `spans`. Keys that neither knows are kept
in `meta`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from lacuner.atomic import atomic_write
from lacuner.corpus import tags as tagging
from lacuner.corpus.conll import tagged
from lacuner.corpus.lines import read_blocks
from lacuner.corpus.reader import Reading, check_spans, words_problem
from lacuner.corpus.words import find_words, join_words
from lacuner.data import Document, Lost, Span, Where, Words
from lacuner.errors import CorpusError

_OURS = ("id", "text", "words", "spans", "rejected", "unsure", "complete", "meta")
_TAG_KEYS = ("tags", "ner_tags")
_SPAN_KEYS = ("spans", "entities", "label", "labels")
"""Where spans stand: ours, and where other tools put them."""


def read_jsonl(reading: Reading) -> Iterator[Document]:
    """Documents, one a line, in either form."""
    number = 0
    for block in read_blocks(reading.path, reading.options.encoding, seen=reading.seen):
        for line_number, line in enumerate(block.lines, block.first):
            if not line or line.isspace():
                continue
            number += 1
            try:
                doc = _document(_row(line), str(number), reading)
                doc.where = Where(str(reading.path), line_number)
                check_spans(doc, reading, line_number)
            except CorpusError as error:
                reading.report(reading.error(error.problem, line_number))
                continue
            yield doc


def _row(line: str) -> dict[str, Any]:
    try:
        row = json.loads(line, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise CorpusError(f"this is not JSON: {error.msg} at character {error.pos}") from error
    except (ValueError, RecursionError) as error:
        raise CorpusError(
            "this is not JSON that can be read: it is nested too deeply or has an absurd number"
        ) from error
    if not isinstance(row, dict):
        raise CorpusError('a line must be a JSON object, such as {"text": ...}')
    if "\\u" in line:  # only an escape can smuggle in what the file's encoding cannot have
        _check_characters(row)
    return row


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a number in JSON")


def _check_characters(value: Any) -> None:
    if isinstance(value, str):
        if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
            raise CorpusError("there is a NUL or half of a surrogate pair in this line")
    elif isinstance(value, dict):
        for key, part in value.items():
            _check_characters(key)
            _check_characters(part)
    elif isinstance(value, list):
        for part in value:
            _check_characters(part)


def _document(row: dict[str, Any], number: str, reading: Reading) -> Document:
    tokens = _take(row, "tokens", list, None)
    text = _take(row, "text", str, None)
    chars = text is not None
    words: Words | None = None
    if tokens is not None:
        if not all(isinstance(token, str) and token for token in tokens):
            raise CorpusError("`tokens` must be a list of words, none of them empty")
        if text is None:
            text, words = join_words(tokens)
        else:
            words = find_words(text, tokens)
    elif text is None:
        raise CorpusError("there is neither `text` nor `tokens` in this line")
    if "words" in row:
        words = _words(row["words"], text)
    doc = Document(id=_id(row, number), text=text, words=words, complete=_take(row, "complete", bool, None))
    theirs = next((key for key in _SPAN_KEYS if key in row and isinstance(row[key], list)), "spans")
    for state in ("spans", "rejected", "unsure"):
        entries = _take(row, theirs if state == "spans" else state, list, [])
        spans = tuple([_span(entry, state) for entry in entries])
        if not chars and words is not None:
            spans = tuple([_from_words(span, words) for span in spans])
        setattr(doc, state, spans)
    key = next((key for key in _TAG_KEYS if key in row), None)
    if key is not None and words is not None:
        doc.spans += _tag_spans(_take(row, key, list, []), words, reading)
    known = {*_OURS, "tokens", theirs} | ({key} if key and words is not None else set())
    doc.meta = {**_take(row, "meta", dict, {}), **{key: row[key] for key in row if key not in known}}
    return doc


def _take(row: dict[str, Any], key: str, kind: type, default: Any) -> Any:
    value = row.get(key)
    if value is None:
        return default
    if not isinstance(value, kind):
        names = {list: "a list", str: "a string", bool: "true or false", dict: "an object"}
        raise CorpusError(f"`{key}` must be {names[kind]}, not {json.dumps(value)[:40]}")
    return value


def _id(row: dict[str, Any], number: str) -> str:
    value = row.get("id")
    if value is None:
        return number
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise CorpusError("`id` must be a string or a number")
    return str(value)


def _words(value: Any, text: str) -> Words | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(
        isinstance(pair, list) and len(pair) == 2 and all(type(edge) is int for edge in pair) for pair in value
    ):
        raise CorpusError("`words` must be a list of [start, end] pairs")
    words = tuple([(start, end) for start, end in value])
    problem = words_problem(text, words)
    if problem:
        raise CorpusError(problem)
    return words


def _span(entry: Any, state: str) -> Span:
    if isinstance(entry, list) and len(entry) == 3:
        entry = dict(zip(("start", "end", "label"), entry, strict=True))
    if not isinstance(entry, dict) or type(entry.get("start")) is not int or type(entry.get("end")) is not int:
        raise CorpusError(f"an entry of `{state}` must have whole numbers `start` and `end`: {json.dumps(entry)[:60]}")
    label = entry.get("label", entry.get("type", ""))
    if not isinstance(label, str) or (state == "spans" and not label):
        raise CorpusError(f"the entry {entry['start']}-{entry['end']} of `{state}` needs a `label`")
    score, source = entry.get("score"), entry.get("source")
    if score is not None and (type(score) not in (int, float) or not math.isfinite(score)):
        raise CorpusError(f"the score of {entry['start']}-{entry['end']} must be a finite number")
    if source is not None and not isinstance(source, str):
        raise CorpusError(f"the source of {entry['start']}-{entry['end']} must be a string")
    return Span(entry["start"], entry["end"], label, None if score is None else float(score), source)


def _from_words(span: Span, words: Words) -> Span:
    if not 0 <= span.start < span.end <= len(words):
        raise CorpusError(f"the span of words {span.start}-{span.end} is empty or outside the {len(words)} words")
    return span._replace(start=words[span.start][0], end=words[span.end - 1][1])


def _tag_spans(tags: list[Any], words: Words, reading: Reading) -> tuple[Span, ...]:
    if len(tags) != len(words):
        raise CorpusError(f"there are {len(tags)} tags for {len(words)} tokens")
    if not all(isinstance(tag, str) for tag in tags):
        raise CorpusError("tags must be names such as B-PER: numbers say nothing without the list of their names")
    if reading.options.scheme == "IO" and not all(map(tagging.is_tag, tags)):
        tags = [tag if tag == "O" else f"I-{tag}" for tag in tags]
    bad = next((tag for tag in tags if not tagging.is_tag(tag)), None)
    if bad is not None:
        raise CorpusError(f"{bad!r} is not a tag (O, or a letter of BIESLUM, a hyphen and a label)")
    return tuple([Span(words[i][0], words[j - 1][1], label) for i, j, label in tagging.decode(tags)])


def write_jsonl(docs: Iterable[Document], path: Path, lost: Lost, scheme: str = "IOB2") -> None:
    """Our own form, which loses nothing."""
    with atomic_write(path) as stream:
        for doc in docs:
            stream.write(as_line(doc).encode())


def as_line(doc: Document) -> str:
    """A document in our own form, as one line."""
    row: dict[str, Any] = {"id": doc.id, "text": doc.text}
    if doc.words is not None:
        row["words"] = doc.words
    for state in ("spans", "rejected", "unsure"):
        spans = getattr(doc, state)
        if spans or state == "spans":
            row[state] = [{key: value for key, value in span._asdict().items() if value is not None} for span in spans]
    if doc.complete is not None:
        row["complete"] = doc.complete
    if doc.meta:
        row["meta"] = doc.meta
    return json.dumps(row, ensure_ascii=False) + "\n"


def write_tokens(docs: Iterable[Document], path: Path, lost: Lost, scheme: str = "IOB2") -> None:
    """`tokens` and `ner_tags`, as other tools read them; `text` only where the words alone would not give it back."""
    with atomic_write(path) as stream:
        for doc in docs:
            tokens, tags = tagged(doc, lost, scheme)
            row: dict[str, Any] = {"id": doc.id, "tokens": tokens, "ner_tags": tags}
            if join_words(tokens)[0] != doc.text:
                row["text"] = doc.text
            if doc.meta:
                row["meta"] = doc.meta
            stream.write((json.dumps(row, ensure_ascii=False) + "\n").encode())
