"""Prodigy's JSON lines: `spans`, perhaps `tokens`, and an `answer`.

What an answer means depends on the interface. In `ner_manual` the annotator sees the whole text, so an accepted one is
complete; so does the person who decides in `review` between several such versions. In `ner` (ner.teach, ner.match) the
annotator judges the one span that is shown, and the rest stays unknown: accepted spans are entities, rejected ones are
ruled out, ignored ones are unsure. A rejected task with several spans does not say which is wrong, so they become
unsure. In other interfaces, such as `blocks`, `_is_binary` tells whether an answer is about one span, but nothing
tells whether all of the text was seen. Several lines about one text are merged: those with the same `_input_hash`, for
which the file is held in memory, and neighbours with the same `id`.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from lacuner.corpus.annotators import Judgement, apply_judgements
from lacuner.corpus.json_rows import (
    as_object,
    count_unread,
    get,
    get_text,
    new_id,
    new_span,
    show,
    text_key,
    write_lines,
)
from lacuner.corpus.json_stream import read_rows
from lacuner.corpus.reader import CorpusFile
from lacuner.corpus.records import Record, convert_records, finish_document
from lacuner.corpus.words import split_words
from lacuner.data import Document, Lost, Span, Words
from lacuner.errors import CorpusError

_MANUAL = ("ner_manual", "spans_manual")
_BINARY = ("ner", "spans")
_KEYS = {"id", "text", "tokens", "spans", "answer", "_view_id", "relations", "complete", "meta", "versions"}


def is_prodigy(row: Any) -> bool:
    """Whether a row is one of Prodigy's: it has an answer or a task hash, or tokens with offsets."""
    if not isinstance(row, dict) or "text" not in row or not isinstance(row.get("spans", []), list):
        return False
    tokens = row.get("tokens")
    has_offsets = isinstance(tokens, list) and bool(tokens) and isinstance(tokens[0], dict) and "start" in tokens[0]
    return has_offsets or row.get("answer") in ("accept", "reject", "ignore") or "_task_hash" in row


class _Line(NamedTuple):
    """A line of the file as a document, and what its answer says."""

    doc: Document
    judgement: Judgement
    input_hash: str | None


def read_prodigy(file: CorpusFile) -> Iterator[Document]:
    """Documents in the order of their first lines; first those without `_input_hash`, which need not be held."""
    held: dict[tuple[str, str], list[_Line]] = {}
    read_lines = convert_records(file, read_rows(file), partial(_read_line, file))
    for _, group in groupby(read_lines, key=lambda line: (line.doc.id, line.doc.text)):
        lines = list(group)
        if lines[0].input_hash is None:
            yield from _merge(lines, file)
        else:
            held.setdefault((lines[0].input_hash, lines[0].doc.text), []).extend(lines)
    for lines in held.values():
        yield from _merge(lines, file)


def _read_line(file: CorpusFile, record: Record) -> _Line:
    row = as_object(record.value)
    doc = finish_document(_document(row, record.number, file), file, record.line)
    input_hash = row.get("_input_hash")
    return _Line(doc, _judge(row, doc, file.lost), None if input_hash is None else str(input_hash))


def _merge(lines: list[_Line], file: CorpusFile) -> Iterator[Document]:
    doc = lines[0].doc
    for line in lines[1:]:
        doc.words = doc.words or line.doc.words
        doc.meta = {**line.doc.meta, **doc.meta}
    apply_judgements(doc, [line.judgement for line in lines], file.lost)
    yield doc


def _document(row: dict[str, Any], number: int, file: CorpusFile) -> Document:
    """A line as a document, with all its spans as entities whatever the answer is."""
    text = get_text(row, file)
    spans = tuple([_span(entry) for entry in get(row, "spans", list, [])])
    file.lost.count("relation not read", len(get(row, "relations", list, [])))
    file.lost.count("version before the review not read", len(get(row, "versions", list, [])))
    if isinstance(row.get("accept"), list) or isinstance(row.get("label"), str):
        file.lost.count("label of the whole text not read")
    meta = {**get(row, "meta", dict, {}), **count_unread(row, _KEYS | {text_key(file)}, file.lost)}
    return Document(
        new_id(row.get("id"), file.number_id(number)), text, _words(row.get("tokens"), text), spans, meta=meta
    )


def _span(entry: Any) -> Span:
    if not isinstance(entry, dict):
        raise CorpusError(f"an entry of `spans` must be an object with start, end and label: {show(entry)}")
    if not entry.get("label"):
        span = new_span(entry.get("start"), entry.get("end"), "-", "spans", entry.get("score"), entry.get("source"))
        return span._replace(label="")
    return new_span(
        entry.get("start"), entry.get("end"), entry["label"], "spans", entry.get("score"), entry.get("source")
    )


def _words(tokens: Any, text: str) -> Words | None:
    if tokens is None:
        return None
    words, position = [], 0
    for token in tokens if isinstance(tokens, list) else [tokens]:
        start, end = (token.get("start"), token.get("end")) if isinstance(token, dict) else (None, None)
        if type(start) is not int or type(end) is not int:
            raise CorpusError(f"an entry of `tokens` must have whole numbers as start and end: {show(token)}")
        if not position <= start <= end <= len(text):
            raise CorpusError(f"the token {start}-{end} is out of order or outside the text")
        position = end
        surface = text[start:end]
        if surface.strip() or split_words(surface):  # spaCy has tokens of white space
            words.append((start, end))
    return tuple(words)


def _judge(row: dict[str, Any], doc: Document, lost: Lost) -> Judgement:
    """What an answer says: see the module's description."""
    spans = doc.spans
    answer, view = row.get("answer"), row.get("_view_id")
    if view == "review":
        view = row.get("view_id")
    binary = view in _BINARY or row.get("_is_binary")
    if answer not in ("accept", "reject", "ignore", None):
        raise CorpusError(f"`answer` must be accept, reject or ignore, not {show(answer)}")
    if answer in ("accept", None):
        if not all(span.label for span in spans):
            raise CorpusError("a span without a label can be rejected or ignored, not accepted")
        if answer is None:
            return Judgement(spans, complete=get(row, "complete", bool, None))
        return Judgement(spans, complete=True if view in _MANUAL else False if binary else None)
    if answer == "reject" and len(spans) == 1 and view not in _MANUAL and binary is not False:
        return Judgement(rejected=spans, complete=False)
    if answer == "reject":
        for span in spans:
            lost.span(doc, span, "rejected as a whole: which span is wrong is unknown, so it became unsure")
    return Judgement(unsure=spans, complete=False)


def write_prodigy(docs: Iterable[Document], path: Path, lost: Lost, scheme: str = "IOB2") -> None:
    """Write one task per document, and one answered `ner` task per rejected or unsure span.

    A complete document is an accepted `ner_manual` task; all others have no answer, so Prodigy shows them for review.
    """
    write_lines(path, (row for doc in docs for row in _rows(doc, lost)))


def _rows(doc: Document, lost: Lost) -> Iterator[dict[str, Any]]:
    own = {key: value for key, value in doc.meta.items() if key.startswith("_") and key != "_view_id"}
    meta = {key: value for key, value in doc.meta.items() if not key.startswith("_")}
    start = {"id": doc.id, "text": doc.text, **own, **({"meta": meta} if meta else {})}
    tokens: dict[str, Any] = {}
    firsts: dict[int, int] = {}
    lasts: dict[int, int] = {}
    if doc.words is not None:
        words = doc.words
        tokens["tokens"] = [
            {"text": doc.text[i:j], "start": i, "end": j, "id": number, "ws": doc.text[j : j + 1] == " "}
            for number, (i, j) in enumerate(words)
        ]
        firsts = {start: number for number, (start, _) in enumerate(words)}
        lasts = {end: number for number, (_, end) in enumerate(words)}

    def entry(span: Span) -> dict[str, Any]:
        values: dict[str, Any] = {"start": span.start, "end": span.end, "label": span.label or None}
        if span.start in firsts and span.end in lasts:  # both ends inclusive
            values |= {"token_start": firsts[span.start], "token_end": lasts[span.end]}
        values |= {"score": span.score, "source": span.source}
        return {key: value for key, value in values.items() if value is not None}

    row: dict[str, Any] = {**start, **tokens, "spans": [entry(span) for span in doc.spans]}
    if doc.complete:
        row |= {"answer": "accept", "_view_id": "ner_manual"}
    elif doc.complete is False:
        row["complete"] = False
    elif doc.rejected or doc.unsure:
        lost.count("complete or not: left open, but an answer to a single span makes it incomplete")
    yield row
    for answer, spans in (("reject", doc.rejected), ("ignore", doc.unsure)):
        for span in spans:
            yield {"id": doc.id, "text": doc.text, "spans": [entry(span)], "answer": answer, "_view_id": "ner"}
