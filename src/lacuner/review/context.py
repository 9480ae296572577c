"""What a reviewer sees of a document: a part of its text with words and labels, and other mentions of a string.

All strings are made visible (`escape_control_characters`), which keeps their length, so offsets stay right.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lacuner.audit.issues import LabelIssue, normalise_space
from lacuner.corpus.words import split_words, words_touching
from lacuner.data import Document, Span
from lacuner.reporting.html import escape_control_characters

CONTEXT = 300
"""Characters shown on each side of a span."""
MAX_CONTEXT = 20_000
MENTIONS = 4
_MENTION_CONTEXT = 40
_MENTIONS_KEPT = 20
"""Mentions of each string that are remembered as examples; all are counted."""


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


class Mentions:
    """All labeled mentions and label issues of each surface string.

    >>> doc = Document("1", "Mara left", spans=(Span(0, 4, "PER"),))
    >>> Mentions([doc], []).describe("Mara", {"1": doc})["labeled"]
    [('PER', 1)]
    """

    def __init__(self, docs: Iterable[Document], issues: Iterable[LabelIssue]) -> None:
        self._counts: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._examples: defaultdict[str, list[tuple[str, Span]]] = defaultdict(list)
        for doc, span in _labeled(docs):
            surface = normalise_space(doc.text[span.start : span.end])
            self._counts[surface][span.label] += 1
            if len(self._examples[surface]) < _MENTIONS_KEPT:
                self._examples[surface].append((doc.id, span))
        for issue in issues:
            if issue.kind == "missing":
                surface = normalise_space(issue.text)
                self._counts[surface][""] += 1
                if len(self._examples[surface]) < _MENTIONS_KEPT:
                    self._examples[surface].append((issue.doc_id, Span(issue.start, issue.end, "")))

    def describe(self, text: str, docs: Mapping[str, Document], besides: tuple[str, int] = ("", -1)) -> dict[str, Any]:
        """How often a string is labeled with each type, how often it is an issue without label, and examples.

        `besides`: document and start of the mention that is under review.
        """
        surface = normalise_space(text)
        counts: Mapping[str, int] = self._counts.get(surface, {})
        labeled = sorted(((label, n) for label, n in counts.items() if label), key=lambda item: (-item[1], item[0]))
        places = [place for place in self._examples.get(surface, ()) if (place[0], place[1].start) != besides]
        examples = [_excerpt(docs[doc_id], span) for doc_id, span in _spread(places, MENTIONS)]
        return {
            "labeled": [(show(label), n) for label, n in labeled],
            "unlabeled": counts.get("", 0),
            "examples": examples,
        }


def _labeled(docs: Iterable[Document]) -> Iterator[tuple[Document, Span]]:
    return ((doc, span) for doc in docs for span in doc.spans)


def _spread(places: Sequence[tuple[str, Span]], number: int) -> list[tuple[str, Span]]:
    """Some of the places: first one of each label, then others."""
    first: dict[str, tuple[str, Span]] = {}
    for place in places:
        first.setdefault(place[1].label, place)
    chosen = list(first.values())
    chosen += [place for place in places if place not in chosen]
    return chosen[:number]


def _excerpt(doc: Document, span: Span) -> dict[str, Any]:
    before = doc.text[max(0, span.start - _MENTION_CONTEXT) : span.start]
    after = doc.text[span.end : span.end + _MENTION_CONTEXT]
    shown = {"before": before, "text": doc.text[span.start : span.end], "after": after, "label": span.label}
    return {name: show(text) for name, text in shown.items()}
