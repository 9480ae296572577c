"""JSON lines: our own lossless form, and the tokens-and-tags form that other tools write.

Our form has `{"id", "text", "words", "spans", "rejected", "unsure", "complete", "meta"}`, with character offsets; only
`text` is required. The other form has `tokens` and either `tags` (or `ner_tags`) or `spans` over token numbers,
`{"start", "end", "label"}`, half-open. In both, `entities` or `label` (doccano) may stand for `spans`. Unknown keys
are kept in `meta`.
"""

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from lacuner.atomic import atomic_write
from lacuner.corpus import tags as tagging
from lacuner.corpus.conll import to_tags
from lacuner.corpus.reader import CorpusFile, span_problem
from lacuner.corpus.words import find_words, join_words
from lacuner.data import Document, Lost, Span, Where, Words
from lacuner.errors import CorpusError

_KEYS = ("id", "text", "words", "spans", "rejected", "unsure", "complete", "meta")
_TAG_KEYS = ("tags", "ner_tags")
_SPAN_KEYS = ("spans", "entities", "label", "labels")
"""Keys for spans: ours, and those of other tools."""


def read_jsonl(file: CorpusFile) -> Iterator[Document]:
    """Documents, one per line, in either form."""
    number = 0
    for block in file.read_blocks():
        for line_number, line in enumerate(block.lines, block.first):
            if not line or line.isspace():
                continue
            number += 1
            try:
                doc = _document(_parse(line), str(number), file.options.scheme)
                if not file.options.keep_bad_spans:
                    _check_spans(doc)
            except CorpusError as error:
                file.report(file.error(error.problem, line_number))
                continue
            doc.where = Where(str(file.path), line_number)
            yield doc


def _parse(line: str) -> dict[str, Any]:
    try:
        row = json.loads(line, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise CorpusError(f"this line is not JSON: {error.msg} at character {error.pos}") from error
    except (ValueError, RecursionError) as error:
        raise CorpusError("this line is not readable JSON: nested too deeply, or a number out of range") from error
    if not isinstance(row, dict):
        raise CorpusError('a line must be a JSON object, such as {"text": ...}')
    if "\\u" in line:  # only an escape can contain characters that the encoding of the file cannot
        _check_characters(row)
    return row


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number in JSON")


def _check_characters(value: Any) -> None:
    if isinstance(value, str):
        if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
            raise CorpusError("there is a NUL or half of a surrogate pair in this line")
    elif isinstance(value, dict | list):
        for item in [*value, *value.values()] if isinstance(value, dict) else value:
            _check_characters(item)


def _check_spans(doc: Document) -> None:
    for span in (*doc.spans, *doc.rejected, *doc.unsure):
        problem = span_problem(doc.text, span)
        if problem:
            raise CorpusError(f"{problem}; `lacuner check --fix` repairs such files")


def _document(row: dict[str, Any], number: str, scheme: str | None) -> Document:
    tokens = _get(row, "tokens", list, None)
    text = _get(row, "text", str, None)
    words: Words | None = None
    offsets_are_tokens = text is None
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
    id_ = number if row.get("id") is None else row["id"]
    if type(id_) not in (str, int):
        raise CorpusError("`id` must be a string or a whole number")
    doc = Document(id=str(id_), text=text, words=words, complete=_get(row, "complete", bool, None))
    span_key = next((key for key in _SPAN_KEYS if key in row and isinstance(row[key], list)), "spans")
    for state in ("spans", "rejected", "unsure"):
        entries = _get(row, span_key if state == "spans" else state, list, [])
        spans = tuple([_span(entry, state) for entry in entries])
        if offsets_are_tokens and words is not None:
            spans = tuple([_from_words(span, words) for span in spans])
        setattr(doc, state, spans)
    known = {*_KEYS, "tokens", span_key}
    tag_key = next((key for key in _TAG_KEYS if key in row), None)
    if tag_key is not None and words is not None:
        doc.spans += _spans_of_tags(_get(row, tag_key, list, []), words, scheme)
        known.add(tag_key)
    doc.meta = {**_get(row, "meta", dict, {}), **{key: row[key] for key in row if key not in known}}
    return doc


def _get(row: dict[str, Any], key: str, kind: type, default: Any) -> Any:
    value = row.get(key)
    if value is None:
        return default
    if not isinstance(value, kind):
        names = {list: "a list", str: "a string", bool: "true or false", dict: "an object"}
        raise CorpusError(f"`{key}` must be {names[kind]}, not {json.dumps(value)[:40]}")
    return value


def _words(value: Any, text: str) -> Words | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(
        isinstance(pair, list) and len(pair) == 2 and all(type(edge) is int for edge in pair) for pair in value
    ):
        raise CorpusError("`words` must be a list of [start, end] pairs")
    position = 0
    for start, end in value:
        if not position <= start < end <= len(text):
            raise CorpusError(f"the word {start}-{end} is empty, out of order or outside the text")
        position = end
    return tuple([(start, end) for start, end in value])


def _span(entry: Any, state: str) -> Span:
    if isinstance(entry, list) and len(entry) == 3:
        entry = dict(zip(("start", "end", "label"), entry, strict=True))
    if not isinstance(entry, dict) or type(entry.get("start")) is not int or type(entry.get("end")) is not int:
        raise CorpusError(f"an entry of `{state}` must have whole numbers `start` and `end`: {json.dumps(entry)[:60]}")
    place = f"{entry['start']}-{entry['end']}"
    label = entry.get("label", entry.get("type", ""))
    if not isinstance(label, str) or (state == "spans" and not label):
        raise CorpusError(f"the entry {place} of `{state}` needs a `label`")
    score, source = entry.get("score"), entry.get("source")
    if score is not None and (type(score) not in (int, float) or not math.isfinite(score)):
        raise CorpusError(f"the score of {place} must be a finite number")
    if source is not None and not isinstance(source, str):
        raise CorpusError(f"the source of {place} must be a string")
    return Span(entry["start"], entry["end"], label, None if score is None else float(score), source)


def _from_words(span: Span, words: Words) -> Span:
    if not 0 <= span.start < span.end <= len(words):
        raise CorpusError(f"the span of tokens {span.start}-{span.end} is empty or outside the {len(words)} tokens")
    return span._replace(start=words[span.start][0], end=words[span.end - 1][1])


def _spans_of_tags(tags: list[Any], words: Words, scheme: str | None) -> tuple[Span, ...]:
    if len(tags) != len(words):
        raise CorpusError(f"there are {len(tags)} tags for {len(words)} tokens")
    if not all(isinstance(tag, str) for tag in tags):
        raise CorpusError("tags must be strings such as B-PER: numbers have no meaning without a list of their names")
    if scheme == "IO" and not all(map(tagging.is_tag, tags)):
        tags = [tag if tag == "O" else f"I-{tag}" for tag in tags]
    for tag in tags:
        if not tagging.is_tag(tag):
            raise CorpusError(tagging.not_a_tag(tag))
    return tuple([Span(words[i][0], words[j - 1][1], label) for i, j, label in tagging.decode(tags)])


def write_jsonl(docs: Iterable[Document], path: Path, lost: Lost, scheme: str = "IOB2") -> None:
    """Write our own form, which loses nothing."""
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
    """Write `tokens` and `ner_tags`; `text` only if the tokens do not determine it."""
    with atomic_write(path) as stream:
        for doc in docs:
            tokens, tags = to_tags(doc, lost, scheme)
            row: dict[str, Any] = {"id": doc.id, "tokens": tokens, "ner_tags": tags}
            if join_words(tokens)[0] != doc.text:
                row["text"] = doc.text
            if doc.meta:
                row["meta"] = doc.meta
            stream.write((json.dumps(row, ensure_ascii=False) + "\n").encode())
