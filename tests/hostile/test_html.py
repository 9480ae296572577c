"""T10: whatever text a report is about, the page it makes has the template's elements and attributes, and no others."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser

import pytest

from lacuner.annotate import Entry, EntryPrecision, LabellingStatistics, LintRow, annotate, gazetteer_source, lint
from lacuner.annotate.report import AnnotationReport, ExampleSampler, render_report, report_json
from lacuner.data import Document, Lost, Span, Where
from lacuner.noise import measure
from lacuner.reporting.html import escape_control_characters

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "end of script": "</script></style></title><h1>x",
    "attribute": "\"><img src=x onerror=alert(1)>' onmouseover='alert(1)",
    "link": "<a href='javascript:alert(1)'>x</a>",
    "expression": "{{7*7}}${7*7}#{7*7}",
    "statement": "{% raw %}{% for x in y %}{# x",
    "svg": "]]></text></svg><svg onload=alert(1)>&lt;b&gt;&#60;b&#62;",
    "comment": "--><b>x<!-- <![CDATA[",
    "mathematics": "$\\frac{x}$ \\u003cb\\u003e %s",
    "line separator": "a\u2028b\u2029c\u0085d",
    "direction": "a\u202eb\u2066c\u2069d\u2069e\u200ff",
    "control": "a\0b\x07c\x1bd\x7fe\ufffef",
    "half a character": "a\ud800b",
    "scripts": "请假 ไทย עברית العربية 🏴‍☠️",
}
PLAIN = "plain"
VOID = {"meta", "br", "hr", "img", "input", "link"}


class Page(HTMLParser):
    """Elements with their attributes, and each text with the elements it stands in."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.pairs: Counter[tuple[str, str]] = Counter()
        self.elements: Counter[str] = Counter()
        self.links: list[str] = []
        self.texts: list[tuple[str, tuple[str, ...]]] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] += 1
        self.pairs.update((tag, name) for name, _ in attrs)
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "xlink:href", "action")]
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append((data, tuple(self._open)))


def report(bad: str) -> str:
    """A report with this text at every place where text can come from outside."""
    end = 6 + len(bad)
    spans = (Span(6, end, bad, None, bad),)
    weak = [
        Document(f"1 {bad}", f"here: {bad} after {bad}", spans=(Span(6, end, bad, None, bad),)),
        Document(f"2 {bad}", f"there {bad} again", spans=(Span(6, end, f"{bad} 2", None, bad),)),
        Document(f"3 {bad}", f"there {bad} again", unsure=(Span(6, end, bad, None, bad), Span(6, end, "", None, bad))),
    ]
    gold = [Document(doc.id, doc.text, spans=spans, complete=True) for doc in weak]
    gold[2].spans = (Span(0, 5, bad),)
    examples = ExampleSampler()
    for doc, real in zip(weak, gold, strict=True):
        examples.add(doc, real)
    statistics = LabellingStatistics(documents=3, matched=3, characters=100)
    statistics.spans.update({bad: 1, f"{bad} 2": 1})
    statistics.unsure.update({bad: 1, "": 1})
    statistics.by_source[bad, bad] = Counter(spans=2, kept=1, documents=1, overlaps=1, conflicts=1)
    statistics.entries[bad] = Counter({0: 3})
    statistics.lost.span(weak[0], Span(6, end, bad), f"lost {bad}")
    source = gazetteer_source([], name=bad)
    source = type(source)(bad, source.find, [Entry(bad, bad, 1.0, bad, Where(bad, 7))])
    row = LintRow(bad, (bad, f"{bad} 2"), 3, (f"reason {bad}",), Where(bad, 7), 1, 2, stop=True)
    other = Lost()
    other.count(f"other {bad}")
    labelling = AnnotationReport(
        title=bad,
        settings={"corpus": bad, "dictionary": [bad, bad]},
        statistics=statistics,
        sources=[source],
        examples=examples,
        lint_rows=[row],
        gold_scores=measure(weak, gold).as_json(),
        lost={"writing": other},
        problems=[f"{bad}: {bad}"],
    )
    return render_report(report_json(labelling))


@pytest.fixture(scope="module")
def plain() -> Page:
    return Page(report(PLAIN))


@pytest.mark.parametrize("name", HOSTILE)
def test_text_is_inert(name: str, plain: Page) -> None:
    bad = HOSTILE[name]
    page = Page(report(bad))
    assert page.pairs == plain.pairs
    assert page.elements == plain.elements
    shown = "".join(escape_control_characters(bad).split())
    assert sum(shown in "".join(text.split()) for text, _ in page.texts) >= 15, "it is there, as text"
    assert not any("\0" in text for text, _ in page.texts)


def test_all_hostile_texts_ran() -> None:
    assert len(HOSTILE) == 14


def test_the_template_is_harmless(plain: Page) -> None:
    assert not plain.elements.keys() & {"script", "img", "iframe", "object", "embed", "link", "form", "base", "image"}
    assert not [pair for pair in plain.pairs if pair[1].startswith("on")]
    assert plain.links and all(link.startswith("#") for link in plain.links)
    page = report(PLAIN)
    assert "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">" in page
    assert "://" not in page and "@import" not in page and "url(" not in page


def test_directions_stay_where_they_are() -> None:
    """What changes the direction of all that follows is gone, and the direction of letters ends where the text does."""
    page = Page(report(HOSTILE["direction"]))
    assert not any(set(text) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069") for text, _ in page.texts)
    places = [where for text, where in page.texts if "\u200f" in text]
    assert len(places) > 15
    # the title is apart from everything else by itself
    assert all("bdi" in where or where[-1] == "title" for where in places)


def test_from_the_dictionary_to_the_page() -> None:
    """The same by the way that users take, as far as texts can be entries."""
    pages = []
    for bad in [PLAIN, *(bad for bad in HOSTILE.values() if "\0" not in bad and "\ud800" not in bad)]:
        docs = [Document(f"{bad} {number}", f"Here ( {bad} ) it is.") for number in range(4)]
        source = gazetteer_source([Entry(bad, bad, where=Where(bad, 1))], name=bad)
        statistics, examples, precision = LabellingStatistics(), ExampleSampler(), EntryPrecision()
        for doc in annotate(docs, [source], statistics=statistics):
            examples.add(doc)
            precision.add(doc, Document("", doc.text))
        rows = lint(source, statistics, precision=precision)
        labelling = AnnotationReport(
            title=bad, settings={}, statistics=statistics, sources=[source], examples=examples, lint_rows=rows
        )
        pages.append(Page(render_report(report_json(labelling))))
        assert statistics.spans == {bad: 4}
    assert all(page.pairs == pages[0].pairs for page in pages)
