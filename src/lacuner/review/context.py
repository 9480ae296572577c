"""What a reviewer sees of a document: a part of its text with words and labels, and the evidence for an issue.

All strings are made visible (`escape_control_characters`), which keeps their length, so offsets stay right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

from lacuner.corpus.words import split_words, words_touching
from lacuner.data import Document, Span
from lacuner.reporting.html import escape_control_characters

CONTEXT = 300
"""Characters shown on each side of a span."""
MAX_CONTEXT = 20_000
_MENTION_CONTEXT = 40
_MAX_VALUE = 200


def show(text: str) -> str:
    """A string as it is sent to the page.

    >>> show("a\\x00b")
    'a␀b'
    """
    return escape_control_characters(text)


def text_window(doc: Document, start: int, end: int, context: int = CONTEXT) -> dict[str, Any]:
    """A part of a document around a span, with the words in it. Offsets are those of the document.

    >>> window = text_window(Document("1", "Mara left Halden."), 5, 9, context=2)
    >>> window["text"], window["offset"], window["words"]
    ('a left H', 3, [3, 4, 5, 9, 10, 11])
    """
    first, last = max(0, start - context), min(len(doc.text), end + context)
    text = doc.text[first:last]
    if doc.words is not None:
        low, high = words_touching(doc.words, first, last)
        words: Iterable[tuple[int, int]] = doc.words[low:high]
    else:  # only the window: a long document takes long to split
        words = ((first + a, first + b) for a, b in split_words(text))
    inside = [(max(a, first), min(b, last)) for a, b in words]
    window = {"text": show(text), "offset": first, "words": [place for word in inside for place in word]}
    return window | {"before": first, "after": len(doc.text) - last}


def labels_in(doc: Document, spans: Iterable[Span], window: dict[str, Any]) -> list[Span]:
    """The spans that can be seen in a window.

    >>> doc = Document("1", "Mara left", spans=(Span(0, 4, "PER"), Span(5, 9, "LOC")))
    >>> labels_in(doc, doc.spans, {"offset": 5, "after": 0})
    [Span(start=5, end=9, label='LOC', score=None, source=None)]
    """
    first, last = window["offset"], len(doc.text) - window["after"]
    return [span for span in spans if span.start < last and first < span.end]


def show_evidence(
    evidence: Mapping[str, Any], docs: Mapping[str, Document], besides: tuple[str, int] | None = None
) -> dict[str, Any]:
    """The evidence of an issue as the page shows it; other mentions with some text around them.

    Evidence is free-form JSON: keys that are not known here are shown as text. `besides` is the document and start of
    the span under review, which is not another mention.

    >>> doc = Document("1", "Mara met Teel.")
    >>> mention = {"document": "1", "start": 9, "end": 13, "label": "PER"}
    >>> shown = show_evidence({"probability": 0.9, "mentions": [mention]}, {"1": doc})
    >>> shown["probability"], shown["mentions"]
    (0.9, [{'before': 'Mara met ', 'text': 'Teel', 'after': '.', 'label': 'PER'}])
    """
    rest = dict(evidence)
    probability, unlabeled = (_number(rest.pop(name, None)) for name in ("probability", "unlabeled"))
    entries = [row for row in _rows(rest.pop("gazetteer", None)) if "term" in row]
    labeled = rest.pop("labeled", None)
    labeled = labeled if isinstance(labeled, dict) else {}
    places = [row for row in _rows(rest.pop("mentions", None)) if (row.get("document"), row.get("start")) != besides]
    mentions = [_excerpt(row, docs) for row in places]
    return {
        "probability": probability,
        "gazetteer": [(show(str(row["term"])), show(str(row.get("label", "")))) for row in entries],
        "labeled": [(show(label), n) for label, n in labeled.items() if _number(n) is not None],
        "unlabeled": unlabeled,
        "mentions": [mention for mention in mentions if mention is not None],
        "other": [(show(str(name)), show(str(value))[:_MAX_VALUE]) for name, value in rest.items()],
    }


def _number(value: Any) -> float | int | None:
    return value if isinstance(value, int | float) and isfinite(value) else None


def _rows(value: Any) -> list[dict[str, Any]]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _excerpt(row: dict[str, Any], docs: Mapping[str, Document]) -> dict[str, str] | None:
    doc, start, end = docs.get(row.get("document", "")), row.get("start"), row.get("end")
    if doc is None or not isinstance(start, int) or not isinstance(end, int) or not 0 <= start < end <= len(doc.text):
        return None
    return excerpt(doc, start, end, str(row.get("label", "")))


def excerpt(doc: Document, start: int, end: int, label: str = "") -> dict[str, str]:
    """A span with a little of the text around it.

    >>> excerpt(Document("1", "Mara left Halden."), 10, 16)
    {'before': 'Mara left ', 'text': 'Halden', 'after': '.', 'label': ''}
    """
    first, last = max(0, start - _MENTION_CONTEXT), min(len(doc.text), end + _MENTION_CONTEXT)
    before, after = "…" * (first > 0) + doc.text[first:start], doc.text[end:last] + "…" * (last < len(doc.text))
    text = doc.text[start : min(end, start + _MAX_VALUE)]
    return {name: show(t) for name, t in {"before": before, "text": text, "after": after, "label": label}.items()}
