"""T10: whatever text a queue has, the review page has the same elements and attributes, and no code runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lacuner.audit.issues import new_issue
from lacuner.data import Document, Span
from lacuner.reporting.html import escape_control_characters
from lacuner.review.queue import ReviewQueue, Sentence
from tests.hostile.test_html import HOSTILE, PLAIN
from tests.review.conftest import ReviewServer, Tab

pytestmark = pytest.mark.integration

# tags with the names of their attributes; texts and labels may only be values
ELEMENTS = """() => [...document.querySelectorAll("*")].map(
    (node) => [node.localName, ...node.getAttributeNames().sort()].join(" "))"""


def hostile_queue(texts: list[str]) -> ReviewQueue:
    """A queue with each text at every place where text can come from outside."""
    docs, issues, sentences = {}, [], []
    for number, bad in enumerate(texts):
        doc = Document(f"{number} {bad}", f"before {bad} after", spans=(Span(0, 6, bad, None, bad),))
        docs[doc.id] = doc
        mention = {"document": doc.id, "start": 0, "end": 6, "label": bad}
        entry = {"term": bad, "label": bad}
        evidence = {"gazetteer": [entry], "labeled": {bad: 1}, "unlabeled": 1, "mentions": [mention], bad: bad}
        span = Span(7, 7 + len(bad), bad)
        issues.append(new_issue("missing", doc, span, (), 0.9, evidence))
        issues.append(new_issue("wrong_boundary", doc, Span(0, 7 + len(bad), bad), doc.spans, 0.8, evidence))
        sentences.append(Sentence(doc.id, 0.5, (span,)))
    return ReviewQueue(tuple(issues), docs, tuple(sentences), tuple(texts))


def walk_through(tab: Tab, issues: int) -> list[tuple[list[str], str]]:
    """Elements and text of the page at every issue, and at every sentence."""
    seen = []
    for _ in range(issues):
        seen.append((tab.page.evaluate(ELEMENTS), tab.page.evaluate("document.body.innerText")))
        tab.press("ArrowLeft", "j")
    tab.press("m")
    for _ in range(issues // 2):
        seen.append((tab.page.evaluate(ELEMENTS), tab.page.evaluate("document.body.innerText")))
        tab.press("1", "j")
    return seen


def test_text_is_inert(serve: Callable[[ReviewQueue], ReviewServer], open_tab: Callable[..., Tab]) -> None:
    texts = [bad.strip() for bad in HOSTILE.values()]
    assert len(texts) == 14
    plain = serve(hostile_queue([f"{PLAIN}{number}" for number in range(14)]))
    issue, boundary, sentence = (sorted(elements) for elements, _ in walk_through(open_tab(plain.url), 2))
    server = serve(hostile_queue(texts))
    tab = open_tab(server.url)
    seen = walk_through(tab, 28)
    assert len(seen) == 42
    for number, (elements, text) in enumerate(seen):
        expected = sentence if number >= 28 else (issue, boundary)[number % 2]
        assert sorted(elements) == expected, number
        shown = "".join(escape_control_characters(texts[number % 14 if number >= 28 else number // 2]).split())
        assert shown in "".join(text.split()), "it is there, as text"
        assert not set(text) & set("\u202a\u202b\u202d\u202e\u2066\u2067\u2068\0")
    assert tab.page.evaluate("window.length") == 0


def test_decisions_keep_the_original_text(
    serve: Callable[[ReviewQueue], ReviewServer], open_tab: Callable[..., Tab]
) -> None:
    """What is made visible on the page is not what is written: labels and offsets are the corpus's own."""
    bad = HOSTILE["control"].strip()
    server = serve(hostile_queue([bad, "other"]))
    tab = open_tab(server.url)
    tab.press("a", "2", "a")
    first, second = server.decisions()
    assert [span.key for span in first.edits[0].spans] == [(7, 7 + len(bad), bad)]
    assert second.edits[0].spans[0].label == "other"
