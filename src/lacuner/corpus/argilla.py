"""Argilla: records with a span question (2.x and 1.x) or their columns in a data set, and token classification (1.x).

A submitted response (2.x) or a validated record (1.x) is complete. A draft has spans but is not complete. A discarded
response says nothing, which is not the same as no entities. Without responses, the suggestion is read: spans with
score and agent, incomplete.
"""

from typing import Any, TypeGuard

from lacuner.corpus.annotators import Judgement, apply_judgements
from lacuner.corpus.json_rows import (
    count_unread,
    get,
    get_text,
    json_reader,
    json_writer,
    new_id,
    new_score,
    new_span,
    show,
    text_key,
    write_array,
    write_lines,
)
from lacuner.corpus.json_stream import parse_json
from lacuner.corpus.reader import CorpusFile
from lacuner.corpus.unwritten import count_unwritten
from lacuner.corpus.words import find_words, split_words, word_texts
from lacuner.data import Document, Lost, Span
from lacuner.errors import CorpusError

QUESTION = "spans"
"""Name of the span question in the records that we write."""
PLACEHOLDER_USER = "00000000-0000-0000-0000-000000000000"
"""The user of the responses that we write: Argilla refuses a response without one."""
_AGENTS = {"prediction_agent", "annotation_agent"}
_V1_KEYS = {"id", "text", "tokens", "prediction", "annotation", "metadata", "status", "vectors", "metrics"} | _AGENTS
_FEEDBACK = "-suggestion-metadata"
"""The column of each question that is unique to the feedback data sets of Argilla 1.x."""
_COLUMNS = (".suggestion", ".responses", _FEEDBACK)
_V2_KEYS = {"id", "_server_id", "fields", "metadata", "suggestions", "responses", "vectors", "status"}


def is_argilla(row: Any) -> bool:
    """Whether a row is a record of Argilla, of whichever version."""
    if not isinstance(row, dict):
        return False
    if isinstance(row.get("fields"), dict) and ("responses" in row or "suggestions" in row):
        return True
    return _is_v1(row) or any(isinstance(key, str) and key.endswith(_COLUMNS) for key in row)


def _is_v1(row: dict[str, Any]) -> bool:
    agents = {"annotation_agent", "prediction_agent"} & row.keys()
    states = ("Default", "Validated", "Discarded", "Edited")
    return "tokens" in row and bool(agents or {"annotation", "prediction"} & row.keys() or row.get("status") in states)


def document_from_row(row: dict[str, Any], number: int, file: CorpusFile) -> Document:
    """A document from a record of whichever version."""
    if isinstance(row.get("fields"), dict):
        return _record(row, number, file)
    if any(isinstance(key, str) and key.endswith(_FEEDBACK) for key in row):
        return _record(_from_feedback(row), number, file)
    if any(isinstance(key, str) and key.endswith(_COLUMNS) for key in row):
        return _record(_from_columns(row), number, file)
    return _record_v1(row, number, file)


def _record(row: dict[str, Any], number: int, file: CorpusFile) -> Document:
    fields = get(row, "fields", dict, {})
    texts = [key for key, value in fields.items() if isinstance(value, str)]
    key = file.options.text_field or ("text" if "text" in fields or len(texts) != 1 else texts[0])
    doc = Document(
        new_id(row.get("id"), file.number_id(number)), get_text(fields, file, key), meta=get(row, "metadata", dict, {})
    )
    doc.meta = {**{name: value for name, value in fields.items() if name != key}, **doc.meta}
    count_unread(row, _V2_KEYS, file.lost)
    judgements: list[Judgement] = []
    for name, responses in get(row, "responses", dict, {}).items():
        for response in responses if isinstance(responses, list) else [responses]:
            value = _entries(response.get("value")) if isinstance(response, dict) else None
            status = response.get("status") if isinstance(response, dict) else None
            if status == "discarded":
                file.lost.count("discarded response not read")
            elif _is_spans(value):
                # to_json leaves the status out; the record's own status says whether its responses were submitted
                submitted = status == "submitted" or (status is None and row.get("status") == "completed")
                judgements.append(Judgement(_spans(value, name), complete=submitted))
            else:
                file.lost.count(f"response to another question, `{str(name)[:40]}`, not read")
    suggestions = get(row, "suggestions", dict, {})
    if judgements:
        apply_judgements(doc, judgements, file.lost)
        values = [suggestion.get("value") for suggestion in suggestions.values() if isinstance(suggestion, dict)]
        file.lost.count("suggestion not read: the record has a response", len([*filter(None, values)]))
        return doc
    doc.complete = False
    suggested: list[Span] = []
    for name, suggestion in suggestions.items():
        value = _entries(suggestion.get("value")) if isinstance(suggestion, dict) else None
        if not _is_spans(value):
            file.lost.count(f"suggestion for another question, `{str(name)[:40]}`, not read", value is not None)
            continue
        scores = suggestion.get("score")
        agent = suggestion.get("agent")
        spans = _spans(value, name)
        if isinstance(scores, list) and len(scores) == len(spans):
            pairs = zip(spans, scores, strict=True)
            spans = tuple([span._replace(score=new_score(score, name)) for span, score in pairs])
        elif type(scores) in (int, float):
            score = new_score(scores, name)
            spans = tuple([span._replace(score=score if span.score is None else span.score) for span in spans])
        suggested += [span._replace(source=agent if isinstance(agent, str) else None) for span in spans]
    doc.spans = tuple(suggested)
    return doc


def _from_columns(row: dict[str, Any]) -> dict[str, Any]:
    """A row of `to_datasets`, whose keys are `QUESTION.responses` and the like, as a record."""
    record: dict[str, Any] = {"fields": {}, "responses": {}, "suggestions": {}, "metadata": {}}
    questions = {key.rpartition(".")[0] for key in row if key.endswith((".suggestion", ".responses"))}
    for name in sorted(questions):
        values = row.get(f"{name}.responses") or []
        states = row.get(f"{name}.responses.status") or [None] * len(values)
        if not isinstance(values, list) or not isinstance(states, list):
            raise CorpusError(f"`{name}.responses` must be a list")
        pairs = zip(values, states, strict=False)
        record["responses"][name] = [{"value": value, "status": status} for value, status in pairs]
        suggestion = {"value": row.get(f"{name}.suggestion")}
        suggestion |= {part: row.get(f"{name}.suggestion.{part}") for part in ("score", "agent")}
        record["suggestions"][name] = suggestion
    for key, value in row.items():
        if key in ("id", "status", "_server_id"):
            record[key] = value
        elif not any(key.startswith(f"{name}.") for name in questions):
            record["fields" if isinstance(value, str) else "metadata"][key] = value
    if not any(record["responses"].values()):
        del record["responses"]
    return record


def _from_feedback(row: dict[str, Any]) -> dict[str, Any]:
    """A row of a feedback data set of Argilla 1.x, whose keys are `QUESTION-suggestion` and the like, as a record."""
    record: dict[str, Any] = {"id": row.get("external_id"), "fields": {}, "responses": {}, "suggestions": {}}
    metadata = row.get("metadata")
    record["metadata"] = parse_json(metadata) if isinstance(metadata, str) else metadata
    others = set(row) - {"external_id", "metadata", "vectors"}
    for key in [key for key in row if key.endswith(_FEEDBACK)]:
        name = key.removesuffix(_FEEDBACK)
        others -= {name, key, f"{name}-suggestion"}
        record["responses"][name] = row.get(name) or []
        record["suggestions"][name] = {**get(row, key, dict, {}), "value": row.get(f"{name}-suggestion")}
    record["fields"] = {key: row[key] for key in row if key in others}
    return record


def _entries(value: Any) -> Any:
    """A list of objects; data sets have an object of lists instead, one for each key."""
    if isinstance(value, dict) and value and all(isinstance(column, list) for column in value.values()):
        return [dict(zip(value, entry, strict=False)) for entry in zip(*value.values(), strict=False)]
    return value


def _record_v1(row: dict[str, Any], number: int, file: CorpusFile) -> Document:
    text = get_text(row, file)
    tokens = get(row, "tokens", list, [])
    if not all(isinstance(token, str) and token for token in tokens):
        raise CorpusError("`tokens` must be a list of words, none of them empty")
    doc = Document(new_id(row.get("id"), file.number_id(number)), text, meta=get(row, "metadata", dict, {}))
    doc.words = find_words(text, [token for token in tokens if token.strip()]) if tokens else None
    doc.meta = {**count_unread(row, _V1_KEYS | {text_key(file)}, file.lost), **doc.meta}
    annotation, prediction = get(row, "annotation", list, None), get(row, "prediction", list, [])
    status = row.get("status")
    if status == "Discarded":
        file.lost.count("discarded record: its annotation is not read")
        doc.complete = False
    elif annotation is not None:
        doc.spans = _spans(annotation, "annotation")
        file.lost.count("prediction not read: the record has an annotation", bool(prediction))
        doc.complete = status == "Validated" if status is not None else None
    else:
        agent = get(row, "prediction_agent", str, None)
        doc.spans = tuple([span._replace(source=agent) for span in _spans(prediction, "prediction")])
        doc.complete = False
    return doc


def _is_spans(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list) and all(isinstance(entry, dict) and "start" in entry for entry in value)


def _spans(entries: list[Any], key: str) -> tuple[Span, ...]:
    return tuple([_span(entry, key) for entry in entries])


def _span(entry: Any, key: str) -> Span:
    """A span as an object, or as the list `[label, start, end]` or `[label, start, end, score]` of version 1."""
    if isinstance(entry, list) and len(entry) in (3, 4):
        entry = dict(zip(("label", "start", "end", "score"), entry, strict=False))
    if not isinstance(entry, dict):
        raise CorpusError(f"an entry of `{key}` must be [label, start, end], or have start and end: {show(entry)}")
    return new_span(entry.get("start"), entry.get("end"), entry.get("label"), key, entry.get("score"))


def as_record(doc: Document, lost: Lost) -> dict[str, Any]:
    """A document as a record of version 2 for a span question: a response if it is complete, otherwise a suggestion.

    >>> record = as_record(Document("7", "Mara left", spans=(Span(0, 4, "PER", 0.8, "gazetteer"),)), Lost())
    >>> record["suggestions"]["spans"]["agent"], record["suggestions"]["spans"]["score"]
    ('gazetteer', [0.8])
    """
    count_unwritten(doc, lost, "score source meta complete")
    record: dict[str, Any] = {"id": doc.id, "fields": {"text": doc.text}, "metadata": doc.meta, "suggestions": {}}
    record |= {"responses": {}, "vectors": {}, "status": "completed" if doc.complete else "pending"}
    value = [{"start": span.start, "end": span.end, "label": span.label} for span in doc.spans]
    scores = [span.score for span in doc.spans]
    if doc.complete:
        lost.count("score not written: a response has none", sum(score is not None for score in scores))
        lost.count("source not written: a response has none", sum(span.source is not None for span in doc.spans))
        record["responses"][QUESTION] = [{"value": value, "user_id": PLACEHOLDER_USER, "status": "submitted"}]
        return record
    lost.count("complete or not: left open, but a suggestion is incomplete", doc.complete is None)
    if value:
        sources = {span.source for span in doc.spans}
        agent = sources.pop() if len(sources) == 1 else None
        lost.count("source not written: a suggestion has one agent", len(doc.spans) if any(sources) else 0)
        all_scores = None not in scores
        lost.count("score not written: some spans have none", 0 if all_scores else sum(s is not None for s in scores))
        suggestion = {"value": value, "score": scores if all_scores else None, "agent": agent}
        record["suggestions"][QUESTION] = suggestion
    return record


def _as_record_v1(doc: Document, lost: Lost) -> dict[str, Any]:
    """A document as a token classification record of version 1."""
    count_unwritten(doc, lost, "words score source meta complete")
    tokens = word_texts(doc)
    if "".join(tokens) != "".join(doc.text.split()):
        lost.count("words not written: they leave out text")
        tokens = [doc.text[start:end] for start, end in split_words(doc.text)]
    row: dict[str, Any] = {"id": doc.id, "text": doc.text, "tokens": tokens, "metadata": doc.meta}
    spans = [{"label": span.label, "start": span.start, "end": span.end, "score": span.score} for span in doc.spans]
    sources = {span.source for span in doc.spans}
    if doc.complete:
        lost.count("source not written: an annotation has none", sum(span.source is not None for span in doc.spans))
        return row | {"annotation": spans, "annotation_agent": None, "prediction": None, "status": "Validated"}
    lost.count("complete or not: left open, but a prediction is incomplete", doc.complete is None)
    agent = sources.pop() if len(sources) == 1 else None
    lost.count("source not written: a prediction has one agent", len(doc.spans) if any(sources) else 0)
    return row | {"prediction": spans, "prediction_agent": agent, "annotation": None, "status": "Default"}


read_argilla = json_reader(document_from_row)
write_argilla = json_writer(as_record, write_array)
write_argilla_v1 = json_writer(_as_record_v1, write_lines)
