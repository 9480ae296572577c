"""Pages of texts with highlighted entities: for `lacuner predict --html` and the demo page of the service."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lacuner.data import Document, Span
from lacuner.reporting.html import render_page

COLOURS = 8
"""Label colours of the template `entities.html.jinja`; further labels use them again."""
MAX_DOCUMENTS = 1_000
MAX_CHARACTERS = 2_000_000
"""Limits of a page: browsers become slow above them."""


class Segment(NamedTuple):
    """A piece of a text: an entity, or what stands between entities."""

    text: str
    span: Span | None = None


def split_at_spans(text: str, spans: Iterable[Span]) -> list[Segment]:
    """Cut a text into entities and the text between them. Spans may not overlap; predictions never do.

    >>> [segment.text for segment in split_at_spans("Mara Teel left Halden.", [Span(15, 21, "PLACE")])]
    ['Mara Teel left ', 'Halden', '.']
    """
    segments: list[Segment] = []
    position = 0
    for span in sorted(spans, key=lambda span: span.start):
        if span.start < position:
            raise ValueError(f"the span {span.start}-{span.end} overlaps another one")
        segments += [Segment(text[position : span.start]), Segment(text[span.start : span.end], span)]
        position = span.end
    segments.append(Segment(text[position:]))
    return [segment for segment in segments if segment.text]


class EntityPage:
    """Collects documents for a page, as many as fit, and counts all of them.

    >>> page = EntityPage("predictions")
    >>> page.add(Document("1", "Mara left Halden.", spans=(Span(10, 16, "PLACE", 0.9),)))
    >>> "<mark" in page.render() and "PLACE" in page.render()
    True
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self.documents = 0
        self.labels: Counter[str] = Counter()
        self._shown: list[tuple[str, list[Segment]]] = []
        self._characters = 0

    def add(self, doc: Document) -> None:
        """Count a document, and show it if there is room."""
        self.documents += 1
        self.labels.update(span.label for span in doc.spans)
        room = len(self._shown) < MAX_DOCUMENTS and self._characters + len(doc.text) <= MAX_CHARACTERS
        if room and len(self._shown) == self.documents - 1:  # the page shows the first documents, without gaps
            self._characters += len(doc.text)
            self._shown.append((doc.id, split_at_spans(doc.text, doc.spans)))

    def render(self) -> str:
        """The page: one HTML file that loads nothing else."""
        template = Path(__file__).with_name("predictions.html.jinja")
        counts = dict(sorted(self.labels.items(), key=lambda item: (-item[1], item[0])))
        facts = {"title": self.title, "documents": self.documents, "shown": self._shown, "counts": counts}
        return render_entities(template, list(counts), **facts)


def render_entities(template: Path, labels: Sequence[str], **values: Any) -> str:
    """Render a template that imports `entities.html.jinja`; each label gets a colour, by its place in `labels`.

    >>> template = Path(__file__).with_name("predictions.html.jinja")
    >>> page = render_entities(template, ["PLACE"], title="none", documents=0, shown=[], counts={"PLACE": 0})
    >>> '<bdi class="e e0">PLACE</bdi> 0' in page
    True
    """
    colours: Mapping[str, int] = {label: number % COLOURS for number, label in enumerate(labels)}
    return render_page(template, [], {}, labels=labels, colours=colours, **values)
