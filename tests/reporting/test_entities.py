"""Pages with highlighted entities: the text is complete and in order, whatever it contains; pages stay small."""

from __future__ import annotations

import pytest
from hypothesis import given

from lacuner.data import Document, Span
from lacuner.reporting import entities
from lacuner.reporting.entities import EntityPage, split_at_spans
from lacuner.reporting.html import escape_control_characters
from tests.hostile.test_html import HOSTILE, PLAIN, Page
from tests.strategies import documents


@given(documents(flat=True))
def test_the_segments_are_the_text(doc: Document) -> None:
    segments = split_at_spans(doc.text, doc.spans)
    assert "".join(segment.text for segment in segments) == doc.text
    marked = [(segment.span, segment.text) for segment in segments if segment.span is not None]
    expected = sorted(doc.spans, key=lambda span: span.start)
    assert marked == [(span, doc.text[span.start : span.end]) for span in expected]


def test_overlapping_spans_are_refused() -> None:
    with pytest.raises(ValueError, match="4-9 overlaps"):
        split_at_spans("Mara Teel left", [Span(0, 5, "A"), Span(4, 9, "B")])


def render(bad: str) -> str:
    page = EntityPage(bad)
    span = Span(6, 6 + len(bad), bad, 0.5, bad)
    page.add(Document(bad, f"here: {bad} after {bad}", spans=(span,)))
    page.add(Document(bad, f"{bad} without"))
    return page.render()


@pytest.mark.parametrize("name", HOSTILE)
def test_text_is_inert(name: str) -> None:
    bad, plain = HOSTILE[name], Page(render(PLAIN))
    page = Page(render(bad))
    assert page.pairs == plain.pairs and page.elements["mark"] == 1 and "script" not in page.elements
    shown = "".join(text for text, where in page.texts if "mark" in where and "small" not in where)
    assert shown == escape_control_characters(bad)


def test_a_page_shows_the_first_documents_and_counts_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entities, "MAX_CHARACTERS", 50)
    page = EntityPage("predicted")
    for number, text in enumerate(["x" * 30, "y" * 30, "z"]):
        page.add(Document(f"doc{number}", text, spans=(Span(0, 1, "A"),)))
    html = page.render()
    assert "3 entities in 3 documents; the first 1 are shown" in html
    assert "doc0" in html and "doc1" not in html
    assert "doc2" not in html, "a shorter document does not slip in after one that was too long"
