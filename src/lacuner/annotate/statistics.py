"""Statistics of a labelling run: counts that can be added up across documents, chunks and processes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any

from lacuner.annotate.boundaries import NeighbourSample
from lacuner.annotate.gazetteer.entries import Entry
from lacuner.annotate.label_model import Layer
from lacuner.annotate.sources import Source
from lacuner.data import Document, Lost, Span

_label = itemgetter(2)


@dataclass(slots=True)
class SourceRow:
    """Counts for one source and label.

    `overlaps` counts spans that overlap a span of another source, `conflicts` those of them where label or boundaries
    differ. A span without a label conflicts with nothing.
    """

    source: str
    label: str
    spans: int = 0
    kept: int = 0
    documents: int = 0
    overlaps: int = 0
    conflicts: int = 0


@dataclass(slots=True)
class LabellingStatistics:
    """Counts of one run of `annotate`, filled while the documents stream by.

    >>> from lacuner.annotate import annotate, regex_source
    >>> statistics = LabellingStatistics()
    >>> docs = [Document("1", "in 1912"), Document("2", "no year")]
    >>> weak = list(annotate(docs, [regex_source("YEAR", "[0-9]+")], statistics=statistics))
    >>> statistics.documents, statistics.matched, dict(statistics.spans)
    (2, 1, {'YEAR': 1})
    """

    documents: int = 0
    matched: int = 0
    """Documents with a span, sure or unsure."""
    characters: int = 0
    spans: Counter[str] = field(default_factory=Counter)
    """Spans by label."""
    unsure: Counter[str] = field(default_factory=Counter)
    """Unsure spans by label; an empty label where the type is unknown."""
    by_source: dict[tuple[str, str], Counter[str]] = field(default_factory=partial(defaultdict, Counter))
    """By source and label: the counts of `SourceRow`."""
    entries: dict[str, Counter[int]] = field(default_factory=partial(defaultdict, Counter))
    """By source: matches of each entry, by its position in the source's gazetteer."""
    neighbours: NeighbourSample | None = None
    """The words beside the matches of gazetteers; only if there is a sample to add to, because it takes time."""
    lost: Lost = field(default_factory=Lost)

    def add(self, docs: Sequence[Document], layers: Sequence[Layer], sources: Sequence[Source]) -> None:
        """Count some documents. In the usual case, spans of one source and nothing else, they are counted together."""
        labels: list[str] = []
        labels_by_document: list[str] = []
        entries: list[int] = []
        for doc, layer in zip(docs, layers, strict=True):
            if len(sources) > 1 or layer.unsure or layer.lost:
                self._add_document(doc, layer, sources)
            elif layer.spans:
                self.matched += 1
                document_labels = list(map(_label, layer.spans))
                labels += document_labels
                labels_by_document += set(document_labels)
                entries += layer.outputs[0].entries
        if self.neighbours is not None:
            for doc, layer in zip(docs, layers, strict=True):
                for source, output in zip(sources, layer.outputs, strict=True):
                    if source.entries:
                        self.neighbours.add(doc, source.name, output)
        self.documents += len(docs)
        self.characters += sum([len(doc.text) for doc in docs])
        self.spans.update(labels)
        for label, times in Counter(labels_by_document).items():
            self.by_source[sources[0].name, label]["documents"] += times
        for label, times in Counter(labels).items():
            self.by_source[sources[0].name, label].update(spans=times, kept=times)
        if entries:
            self.entries[sources[0].name].update(entries)

    def _add_document(self, doc: Document, layer: Layer, sources: Sequence[Source]) -> None:
        if layer.spans or layer.unsure:
            self.matched += 1
            self.spans.update(map(_label, layer.spans))
            self.unsure.update(map(_label, layer.unsure))
        spans_by_source: list[list[Span]] = []
        for source, output in zip(sources, layer.outputs, strict=True):
            if output.entries:
                self.entries[source.name].update(output.entries)
            spans = [*output.spans, *(span for group in output.ambiguous for span in group), *output.unsure]
            spans_by_source.append(spans)
            for label, times in Counter(map(_label, spans)).items():
                self.by_source[source.name, label].update(spans=times, documents=1)
        self._count_kept(layer, sources, spans_by_source)
        if len(sources) > 1:
            self._count_overlaps(sources, spans_by_source)
        for span, reason in layer.lost:
            self.lost.span(doc, span, reason)

    def _count_kept(self, layer: Layer, sources: Sequence[Source], spans_by_source: list[list[Span]]) -> None:
        """Count the spans of the layer for the source they come from, or for every source that voted for them."""
        names = {source.name for source in sources}
        voted: Counter[tuple[int, int, str]] = Counter()
        for span in (*layer.spans, *layer.unsure):
            if span.source in names:
                self.by_source[span.source or "", span.label]["kept"] += 1
            else:
                voted[span.key] += 1
        if voted:  # the joined names of the voters cannot be split: a name may contain the sign that joins them
            for source, spans in zip(sources, spans_by_source, strict=True):
                for start, end, label in {span.key for span in spans}:
                    self.by_source[source.name, label]["kept"] += voted[start, end, label]

    def _count_overlaps(self, sources: Sequence[Source], spans_by_source: list[list[Span]]) -> None:
        if sum(map(bool, spans_by_source)) < 2:
            return
        for number, spans in enumerate(spans_by_source):
            others = [span for other, found in enumerate(spans_by_source) if other != number for span in found]
            places, labeled = _Places(others), _Places([span for span in others if span.label])
            same = Counter(span.key for span in others)
            for span in set(spans):
                counts = self.by_source[sources[number].name, span.label]
                if places.count_overlapping(span):
                    counts["overlaps"] += 1
                if span.label and labeled.count_overlapping(span) > same[span.key]:
                    counts["conflicts"] += 1

    def merge(self, other: LabellingStatistics) -> None:
        """Add the counts of another part of the corpus."""
        self.documents += other.documents
        self.matched += other.matched
        self.characters += other.characters
        self.spans.update(other.spans)
        self.unsure.update(other.unsure)
        for key, counts in other.by_source.items():
            self.by_source[key].update(counts)
        for source, matches in other.entries.items():
            self.entries[source].update(matches)
        if self.neighbours is not None and other.neighbours is not None:
            self.neighbours.merge(other.neighbours)
        self.lost.spans += other.lost.spans[: self.lost.MAX_ROWS - len(self.lost.spans)]
        self.lost.counts.update(other.lost.counts)

    def as_json(self) -> dict[str, Any]:
        """The counts as JSON, without the rows of lost spans and the words beside matches.

        >>> LabellingStatistics.from_json(LabellingStatistics(documents=2).as_json()).documents
        2
        """
        by_source: dict[str, dict[str, dict[str, int]]] = defaultdict(dict)
        for (source, label), counts in sorted(self.by_source.items()):
            by_source[source][label] = dict(counts)
        entries = {
            source: {str(number): times for number, times in sorted(counts.items())}
            for source, counts in sorted(self.entries.items())
        }
        totals = {"documents": self.documents, "matched": self.matched, "characters": self.characters}
        labels = {"spans": dict(self.spans), "unsure": dict(self.unsure)}
        return {**totals, **labels, "sources": dict(by_source), "entries": entries, "lost": dict(self.lost.counts)}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> LabellingStatistics:
        """The inverse of `as_json`."""
        statistics = cls(row["documents"], row["matched"], row["characters"])
        statistics.spans.update(row["spans"])
        statistics.unsure.update(row["unsure"])
        for source, labels in row["sources"].items():
            for label, counts in labels.items():
                statistics.by_source[source, label].update(counts)
        for source, counts in row["entries"].items():
            statistics.entries[source].update({int(number): times for number, times in counts.items()})
        statistics.lost.counts.update(row["lost"])
        return statistics

    def table(self) -> list[SourceRow]:
        """One row per source and label, by name."""
        return [SourceRow(source, label, **counts) for (source, label), counts in sorted(self.by_source.items())]

    def top_entries(self, sources: Iterable[Source], limit: int) -> list[tuple[str, Entry, int]]:
        """Source, entry and number of matches of the entries with the most; ties in the order of the gazetteer."""
        counts = [
            (times, source, number) for source in sources for number, times in sorted(self.entries[source.name].items())
        ]
        counts.sort(key=lambda count: -count[0])
        return [(source.name, source.entries[number], times) for times, source, number in counts[:limit]]


class _Places:
    """Counts the spans that overlap another one, however many there are."""

    def __init__(self, spans: Iterable[Span]) -> None:
        spans = list(spans)
        self._starts, self._ends = sorted(span.start for span in spans), sorted(span.end for span in spans)

    def count_overlapping(self, span: Span) -> int:
        """All but those that begin at its end or later, and those that end at its start or earlier."""
        return bisect_left(self._starts, span.end) - bisect_right(self._ends, span.start)
