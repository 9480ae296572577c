"""What labelling a corpus came to: counts that add up across documents, chunks and processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from lacuner.annotate.gazetteer.entries import Entry
from lacuner.annotate.label_model import Layer
from lacuner.annotate.sources import Source
from lacuner.data import Document, Lost, Span

MOST_ROWS = 10_000
"""Of lost spans as many are kept as rows; of more only the number is known, so that memory stays flat."""

_label = itemgetter(2)


@dataclass(slots=True)
class SourceRow:
    """What one source says of one label. `overlaps` and `conflicts` are spans that meet another source's: at all, and
    with another label or another range. A span without a label contradicts nothing."""

    source: str
    label: str
    spans: int = 0
    kept: int = 0
    documents: int = 0
    overlaps: int = 0
    conflicts: int = 0


class EntryCount(NamedTuple):
    """How often an entry was found."""

    source: str
    entry: Entry
    matches: int


@dataclass(slots=True)
class LabellingStatistics:
    """Counts of one run of `annotate`."""

    documents: int = 0
    matched: int = 0
    """Documents with a span or an unsure one."""
    characters: int = 0
    spans: Counter[str] = field(default_factory=Counter)
    unsure: Counter[str] = field(default_factory=Counter)
    """Unsure spans a label; an empty label where the type is unknown."""
    rows: dict[tuple[str, str], SourceRow] = field(default_factory=dict)
    entries: dict[str, Counter[int]] = field(default_factory=dict)
    """A source's entries, by their number in its dictionary."""
    lost: Lost = field(default_factory=Lost)

    def add(self, docs: Sequence[Document], layers: Sequence[Layer], sources: Sequence[Source]) -> None:
        """Count some documents. The usual ones, with the spans of one source and nothing else, are counted together."""
        labels: list[str] = []
        labels_a_document: list[str] = []
        entries: list[int] = []
        for doc, layer in zip(docs, layers, strict=True):
            if len(sources) > 1 or layer.unsure or layer.lost:
                self._add(doc, layer, sources)
            elif layer.spans:
                self.matched += 1
                here = list(map(_label, layer.spans))
                labels += here
                labels_a_document += set(here)
                entries += layer.found[0].entries
        self.documents += len(docs)
        self.characters += sum([len(doc.text) for doc in docs])
        self.spans.update(labels)
        for label, times in Counter(labels_a_document).items():
            self._row(sources[0].name, label).documents += times
        for label, times in Counter(labels).items():
            row = self._row(sources[0].name, label)
            row.spans += times
            row.kept += times
        if entries:
            self.entries.setdefault(sources[0].name, Counter()).update(entries)

    def _add(self, doc: Document, layer: Layer, sources: Sequence[Source]) -> None:
        if layer.spans or layer.unsure:
            self.matched += 1
            self.spans.update(map(_label, layer.spans))
            self.unsure.update(map(_label, layer.unsure))
        said: list[list[Span]] = []
        for source, found in zip(sources, layer.found, strict=True):
            if found.entries:
                self.entries.setdefault(source.name, Counter()).update(found.entries)
            spans = [*found.spans, *(span for choice in found.choices for span in choice), *found.unsure]
            said.append(spans)
            for label, times in Counter(map(_label, spans)).items():
                row = self._row(source.name, label)
                row.spans += times
                row.documents += 1
        self._count_kept(layer, sources)
        if len(sources) > 1:
            self._count_meetings(sources, said)
        for span, reason in layer.lost:
            self._lose(doc, span, reason)

    def _row(self, source: str, label: str) -> SourceRow:
        row = self.rows.get((source, label))
        if row is None:
            row = self.rows[source, label] = SourceRow(source, label)
        return row

    def _count_kept(self, layer: Layer, sources: Sequence[Source]) -> None:
        """The spans of the layer by the source, or sources, they come from."""
        kept = Counter((span.source, span.label) for span in (*layer.spans, *layer.unsure))
        names = {source.name for source in sources}
        for (together, label), times in kept.items():
            for name in (together or "",) if together in names else (together or "").split("+"):
                self._row(name, label).kept += times

    def _count_meetings(self, sources: Sequence[Source], said: list[list[Span]]) -> None:
        everything = [(span, place) for place, spans in enumerate(said) for span in spans]
        everything.sort(key=lambda item: (item[0].start, item[0].end, item[1]))
        met: set[tuple[Span, int]] = set()
        against: set[tuple[Span, int]] = set()
        open_spans: list[tuple[Span, int]] = []
        for item in everything:
            span, place = item
            open_spans = [other for other in open_spans if other[0].end > span.start]
            for other in open_spans:
                if other[1] != place:
                    met.update((item, other))
                    if span.label and other[0].label and other[0][:3] != span[:3]:
                        against.update((item, other))
            open_spans.append(item)
        for span, place in met:
            self._row(sources[place].name, span.label).overlaps += 1
        for span, place in against:
            self._row(sources[place].name, span.label).conflicts += 1

    def _lose(self, doc: Document, span: Span, reason: str) -> None:
        if len(self.lost.spans) < MOST_ROWS:
            self.lost.span(doc, span, reason)
        else:
            self.lost.count(reason)

    def merge(self, other: LabellingStatistics) -> None:
        """Add the counts of another part of the corpus."""
        self.documents += other.documents
        self.matched += other.matched
        self.characters += other.characters
        self.spans.update(other.spans)
        self.unsure.update(other.unsure)
        for (source, label), more in other.rows.items():
            row = self._row(source, label)
            for name in ("spans", "kept", "documents", "overlaps", "conflicts"):
                setattr(row, name, getattr(row, name) + getattr(more, name))
        for source, counts in other.entries.items():
            self.entries.setdefault(source, Counter()).update(counts)
        room = MOST_ROWS - len(self.lost.spans)
        self.lost.spans.extend(other.lost.spans[:room])
        self.lost.counts.update(other.lost.counts)

    def table(self) -> list[SourceRow]:
        """A row a source and label, by name."""
        return [self.rows[key] for key in sorted(self.rows)]

    def top_entries(self, sources: Iterable[Source], most: int = 20) -> list[EntryCount]:
        """The entries with the most matches; as many come in the order of their dictionary."""
        counts = [
            (times, source, number)
            for source in sources
            for number, times in sorted(self.entries.get(source.name, Counter()).items())
        ]
        counts.sort(key=lambda count: -count[0])
        return [EntryCount(source.name, source.entries[number], times) for times, source, number in counts[:most]]
