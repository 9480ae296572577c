"""doccano's JSON lines: `label` as `[start, end, label]`, or `entities` with `start_offset` and relations.

doccano's export does not say which documents an annotator has confirmed, so `complete` stays open. Further columns
are doccano's metadata, and ours.
"""

from typing import Any

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
    write_lines,
)
from lacuner.corpus.reader import CorpusFile
from lacuner.corpus.unwritten import count_unwritten
from lacuner.data import Document, Lost, Span
from lacuner.errors import CorpusError

_SPAN_KEYS = ("entities", "label", "labels")
_RESERVED = frozenset({"id", "text", "relations", "Comments", *_SPAN_KEYS})


def is_doccano(row: Any) -> bool:
    """Whether a row is one of doccano's: a text with a list under `label`, or entities with `start_offset`."""
    if not isinstance(row, dict) or not isinstance(row.get("text"), str):
        return False
    if any(isinstance(entry, dict) and "start_offset" in entry for entry in row.get("entities") or () if entry):
        return True
    labels = row.get("label", row.get("labels"))
    has_spans = isinstance(labels, list) and all(isinstance(entry, list) and len(entry) == 3 for entry in labels)
    return (has_spans and (bool(labels) or "Comments" in row)) or {"entities", "relations", "Comments"} <= row.keys()


def _document(row: dict[str, Any], number: int, file: CorpusFile) -> Document:
    """A document with the spans of either form; relations are counted, not read."""
    key = next((key for key in _SPAN_KEYS if isinstance(row.get(key), list)), "label")
    spans = tuple([_span(entry, key) for entry in get(row, key, list, [])])
    file.lost.count("relation not read", len(get(row, "relations", list, [])))
    meta = count_unread(row, {"id", text_key(file), key, "relations"}, file.lost)
    if not meta.get("Comments", True):
        del meta["Comments"]  # doccano writes an empty list into every row
    return Document(id=new_id(row.get("id"), file.number_id(number)), text=get_text(row, file), spans=spans, meta=meta)


def _span(entry: Any, key: str) -> Span:
    if isinstance(entry, list) and len(entry) == 3:
        start, end, label = entry
        return new_span(start, end, label, key)
    if isinstance(entry, dict):
        start, end = entry.get("start_offset", entry.get("start")), entry.get("end_offset", entry.get("end"))
        return new_span(start, end, entry.get("label"), key)
    if isinstance(entry, str):
        raise CorpusError(f"`{key}` has labels of the whole text, not of spans: is this a text classification project?")
    raise CorpusError(f"an entry of `{key}` must be [start, end, label], or have start_offset: {show(entry)}")


def _row(doc: Document, lost: Lost) -> dict[str, Any]:
    """The form with `label`, which doccano imports into a sequence labelling project."""
    return {"id": doc.id, "text": doc.text, "label": [span.key for span in doc.spans], **_meta(doc, lost)}


def _row_with_entities(doc: Document, lost: Lost) -> dict[str, Any]:
    """The form with `entities`, which doccano exports and imports in a project with relations."""
    entities = [
        {"id": number, "label": span.label, "start_offset": span.start, "end_offset": span.end}
        for number, span in enumerate(doc.spans, 1)
    ]
    return {"id": doc.id, "text": doc.text, "entities": entities, "relations": [], **_meta(doc, lost), "Comments": []}


def _meta(doc: Document, lost: Lost) -> dict[str, Any]:
    """Metadata as columns of their own; counts everything that doccano cannot express."""
    count_unwritten(doc, lost, "meta")
    meta = {key: value for key, value in doc.meta.items() if key not in _RESERVED}
    lost.count("meta not written: doccano uses this key", len(doc.meta) - len(meta))
    return meta


read_doccano = json_reader(_document)
write_doccano = json_writer(_row, write_lines)
write_doccano_entities = json_writer(_row_with_entities, write_lines)
