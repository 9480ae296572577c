"""Label Studio: tasks with annotations and predictions (JSON), or one flat row per annotation (JSON-MIN).

An annotation that was submitted is complete. A cancelled (skipped) one says nothing, and a task without annotation is
incomplete: its predictions, if it has any, are read as spans with score and source. Annotations of several annotators
are merged (`annotators.py`); one that is marked as ground truth counts alone.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from lacuner.corpus.annotators import Judgement, apply_judgements
from lacuner.corpus.json_rows import (
    count_unread,
    get,
    get_text,
    json_reader,
    json_writer,
    new_id,
    new_span,
    show,
    text_key,
    write_array,
)
from lacuner.corpus.offsets import OffsetTable
from lacuner.corpus.reader import CorpusFile
from lacuner.corpus.unwritten import count_unwritten
from lacuner.data import Document, Lost, Span
from lacuner.errors import CorpusError

FROM_NAME, TO_NAME = "label", "text"
"""Names of the tags `<Labels name="label" toName="text">` and `<Text name="text" value="$text">` of the project."""
_SPAN_TYPES = ("labels", "hypertextlabels")
_ADDRESSES = ("http://", "https://", "/data/", "s3://", "gs://")
_BOOKKEEPING = {"created_at", "updated_at", "updated_by", "lead_time"}
_COUNTS = {"total_annotations", "cancelled_annotations", "total_predictions", "comment_count"}
_TASK_KEYS = {"id", "data", "annotations", "completions", "predictions", "meta", "drafts"} | _BOOKKEEPING | _COUNTS
_MIN_KEYS = {"id", "text", "annotator", "annotation_id"} | _BOOKKEEPING


def is_labelstudio(row: Any) -> bool:
    """Whether a row is a task: it has `data` with the text."""
    keys = {"annotations", "completions", "predictions"}
    return isinstance(row, dict) and isinstance(row.get("data"), dict) and (bool(keys & row.keys()) or len(row) <= 2)


def is_labelstudio_min(row: Any) -> bool:
    """Whether a row is one of JSON-MIN: it has an annotator, or regions with `start` and `labels`."""
    if not isinstance(row, dict) or "annotations" in row:
        return False
    return {"annotator", "annotation_id", "lead_time"} <= row.keys() or any(map(_is_regions, row.values()))


def _is_regions(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(region, dict) and "start" in region and "labels" in region for region in value)
    )


def _task(row: dict[str, Any], number: int, file: CorpusFile) -> Document:
    data = get(row, "data", dict, {})
    text_name = "text" if "text" in data and file.options.text_field is None else _text_key(data, file)
    meta = {key: data[key] for key in data if key not in (text_name, "id")} if len(data) > 1 else {}
    if row.get("meta"):
        meta |= get(row, "meta", dict, {})
    doc = Document(
        new_id(data.get("id", row.get("id")), file.number_id(number)), get_text(data, file, text_name), meta=meta
    )
    if not row.keys() <= _TASK_KEYS:
        count_unread(row, _TASK_KEYS, file.lost)
    table = OffsetTable(doc.text)
    annotations = _objects(row, "annotations", file.lost) or _objects(row, "completions", file.lost)
    if row.get("drafts"):
        file.lost.count("draft not read", len(get(row, "drafts", list, [])))
    submitted = [annotation for annotation in annotations if not annotation.get("was_cancelled")]
    file.lost.count("cancelled annotation not read", len(annotations) - len(submitted))
    if len(submitted) > 1:
        submitted = [annotation for annotation in submitted if annotation.get("ground_truth")] or submitted
    predictions = _objects(row, "predictions", file.lost)
    if submitted:
        judgements = [_judge(annotation, table, file) for annotation in submitted]
        apply_judgements(doc, judgements, file.lost)
        file.lost.count("prediction not read: the task has an annotation", len(predictions))
    else:
        doc.complete = False
        file.lost.count("prediction not read: only the last one is", max(len(predictions) - 1, 0))
        for prediction in predictions[-1:]:
            source = get(prediction, "model_version", str, None)
            judgement = _judge(prediction, table, file)
            doc.spans = tuple([span._replace(source=source) for span in judgement.spans])
            doc.unsure = tuple([span._replace(source=source) for span in judgement.unsure])
    return doc


def _objects(row: dict[str, Any], key: str, lost: Lost) -> list[dict[str, Any]]:
    """The annotations or predictions of a task; some exports have only their numbers."""
    if not row.get(key):
        return []
    entries = get(row, key, list, [])
    objects = [entry for entry in entries if isinstance(entry, dict)]
    if len(objects) < len(entries):
        lost.count(f"{key}: number instead of the content", len(entries) - len(objects))
    return objects


def _text_key(data: dict[str, Any], file: CorpusFile) -> str:
    if file.options.text_field is not None:
        return file.options.text_field
    keys = [key for key, value in data.items() if isinstance(value, str) and key != "id"]
    if not keys:
        raise CorpusError(f"none of the task's data is a text ({', '.join(data)[:80]}): dialogues are not read")
    if len(keys) != 1:
        raise CorpusError(f"which of the task's data is the text ({', '.join(keys)[:80]})? Give it with --text-field")
    return keys[0]


def _judge(annotation: dict[str, Any], table: OffsetTable, file: CorpusFile) -> Judgement:
    """What an annotation or a prediction says; a region without a label is unsure."""
    spans = _spans(annotation, table, file)
    if all(span.label for span in spans):
        return Judgement(spans, complete=True)
    without = tuple([span for span in spans if not span.label])
    file.lost.count("region without a label became unsure", len(without))
    return Judgement(tuple([span for span in spans if span.label]), unsure=without, complete=True)


def _spans(annotation: dict[str, Any], table: OffsetTable, file: CorpusFile) -> tuple[Span, ...]:
    spans: list[Span] = []
    for region in get(annotation, "result", list, []):
        value = region.get("value") if isinstance(region, dict) else None
        if not isinstance(value, dict):
            file.lost.count("result without a value not read")
        elif region.get("type", "labels") not in _SPAN_TYPES or "start" not in value:
            file.lost.count(f"result of type {show(region.get('type'), 40)} not read")
        else:
            spans += _region(value, region.get("score"), table, file)
    return tuple(dict.fromkeys(spans)) if len(spans) > 1 else tuple(spans)


def _region(value: dict[str, Any], score: Any, table: OffsetTable, file: CorpusFile) -> list[Span]:
    """One span per label of a region; offsets are corrected if the region's text shows that they count otherwise.

    A region without a label is one span without a label.
    """
    labels = value.get("labels") or value.get("hypertextlabels")
    start, end = value.get("start"), value.get("end")
    if "globalOffsets" in value:  # of HyperText: `start` and `end` are paths in the HTML
        offsets = get(value, "globalOffsets", dict, {})
        start, end = offsets.get("start", start), offsets.get("end", end)
    if type(start) is not int or type(end) is not int:
        start, end = _whole_numbers(start, end)
    if isinstance(labels, list) and labels:
        spans = [new_span(start, end, label, "result", score) for label in labels]
    else:
        spans = [new_span(start, end, "-", "result", score)._replace(label="")]
    surface = value.get("text")
    if 0 <= start < end and table.text[start:end] == surface:
        return spans
    if not isinstance(surface, str) or file.options.offsets != "characters":
        return spans
    if table.text.startswith(_ADDRESSES) and len(table.text.split()) == 1:
        raise CorpusError(f"the task has the address of its text, {table.text[:60]!r}, not the text itself")
    first, last, unit = table.locate(start, end, surface)
    if unit is not None:
        how = "found by the region's text" if unit == "search" else f"counted in {unit}"
        file.lost.count(f"offset corrected: {how}", len(spans))
    return [span._replace(start=first, end=last) for span in spans]


def _whole_numbers(start: Any, end: Any) -> tuple[Any, Any]:
    """Offsets that are written as strings of digits; others are returned as they are, for the error message."""
    if isinstance(start, str) and start.isascii() and start.isdigit() and isinstance(end, str) and len(start) < 10:
        return int(start), int(end) if end.isascii() and end.isdigit() and len(end) < 10 else None
    if isinstance(start, str):
        raise CorpusError(f"this region has an HTML path instead of a character offset: {show(start)}")
    return start, end


def _min_document(row: dict[str, Any], number: int, file: CorpusFile) -> Document:
    doc = Document(new_id(row.get("id"), file.number_id(number)), get_text(row, file))
    regions = {key: value for key, value in row.items() if _is_regions(value)}
    table = OffsetTable(doc.text)
    spans: list[Span] = []
    for value in regions.values():
        for region in value:
            spans += _region(region, region.get("score"), table, file)
    doc.spans, doc.unsure = tuple([s for s in spans if s.label]), tuple([s for s in spans if not s.label])
    file.lost.count("region without a label became unsure", len(doc.unsure))
    doc.complete = True if "annotation_id" in row or "annotator" in row else None
    doc.meta = count_unread(row, _MIN_KEYS | regions.keys() | {text_key(file)}, file.lost)
    if doc.meta.get(FROM_NAME) == []:
        del doc.meta[FROM_NAME]  # no regions in this text
    return doc


def read_labelstudio_min(file: CorpusFile) -> Iterator[Document]:
    """One document per text; neighbouring rows of one task are the annotations of several annotators."""
    rows = json_reader(_min_document)(file)
    for _, group in groupby(rows, key=lambda doc: (doc.id, doc.text)):
        docs = list(group)
        judgements = [Judgement(doc.spans, unsure=doc.unsure, complete=doc.complete) for doc in docs]
        apply_judgements(docs[0], judgements, file.lost)
        yield docs[0]


def as_task(doc: Document, lost: Lost) -> dict[str, Any]:
    """A document as a task: with an annotation if it is complete, otherwise a prediction, which annotators correct.

    >>> task = as_task(Document("7", "Mara left", spans=(Span(0, 4, "PER", 0.8, "gazetteer"),)), Lost())
    >>> task["predictions"][0]["model_version"], task["predictions"][0]["result"][0]["value"]["labels"]
    ('gazetteer', ['PER'])
    """
    count_unwritten(doc, lost, "score meta source complete")
    result = []
    for number, span in enumerate(doc.spans):
        region: dict[str, Any] = {"id": f"r{number}", "from_name": FROM_NAME, "to_name": TO_NAME, "type": "labels"}
        region["value"] = _value(doc, span)
        result.append(region if span.score is None else {**region, "score": span.score})
    data = {"text": doc.text, "id": doc.id}
    task: dict[str, Any] = {"data": data, "annotations": [], "predictions": []}
    if doc.meta:
        task["meta"] = doc.meta
    if doc.complete:
        lost.count("source not written", sum(span.source is not None for span in doc.spans))
        task["annotations"] = [{"result": result, "was_cancelled": False, "ground_truth": False}]
        return task
    lost.count("complete or not: left open, but a prediction is incomplete", doc.complete is None)
    if doc.spans:
        sources = {span.source for span in doc.spans}
        source = min(filter(None, sources), default=None) if len(sources) == 1 else None
        lost.count("source not written: a prediction has one", len(doc.spans) if source is None and any(sources) else 0)
        scores = [span.score for span in doc.spans if span.score is not None]
        prediction: dict[str, Any] = {"model_version": source or "undefined", "result": result}
        if source is None:
            del prediction["model_version"]
        if scores:
            prediction["score"] = sum(scores) / len(scores)
        task["predictions"] = [prediction]
    return task


def _min_row(doc: Document, lost: Lost) -> dict[str, Any]:
    """A document as a flat row, as the export JSON-MIN has it."""
    count_unwritten(doc, lost, "score meta")
    meta = {key: value for key, value in doc.meta.items() if key not in (*_MIN_KEYS, FROM_NAME)}
    lost.count("meta not written: Label Studio uses this key", len(doc.meta) - len(meta))
    regions = [
        _value(doc, span) if span.score is None else {**_value(doc, span), "score": span.score} for span in doc.spans
    ]
    return {"id": doc.id, "text": doc.text, FROM_NAME: regions, **meta}


def _value(doc: Document, span: Span) -> dict[str, Any]:
    surface = doc.text[span.start : span.end]
    return {"start": span.start, "end": span.end, "text": surface, "labels": [span.label]}


read_labelstudio = json_reader(_task)
write_labelstudio = json_writer(as_task, write_array)
write_labelstudio_min = json_writer(_min_row, write_array)
