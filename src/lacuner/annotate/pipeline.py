"""Weak documents from documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lacuner.annotate.label_model import Ambiguous, By, LabelModel
from lacuner.annotate.matching.matcher import Overlaps
from lacuner.annotate.sources import Source
from lacuner.annotate.statistics import LabellingStatistics
from lacuner.data import Document, Span
from lacuner.processes import map_in_order

HERE, SENT = 20_000, 200_000
"""Characters labelled at a time: here few, so that they stay in the cache; workers are sent many at once."""

MOST_DOCUMENTS = 1_000
"""Documents labelled at a time, at most."""

Plain = list[tuple[int, int, str, float | None, str | None]]
"""Spans as plain tuples: named ones take five times as long to send from one process to another."""


def annotate(
    docs: Iterable[Document],
    sources: Iterable[Source],
    *,
    by: By = "priority",
    ambiguous: Ambiguous = "unsure",
    overlaps: Overlaps = "longest",
    statistics: LabellingStatistics | None = None,
    workers: int = 1,
) -> Iterator[Document]:
    """Label documents with one layer of weak spans, combined by `LabelModel` from what the sources find.

    What the documents already had as annotation is neither kept nor shown to the sources. Nothing is said to be
    complete. Words that are given are respected: what does not fit them is lost, see `statistics.lost`; words that
    are not given are not split. `statistics` is filled as the documents go by; neither it nor they depend on `workers`.
    """
    model = LabelModel(tuple(sources), by, ambiguous, overlaps)
    return _annotate(docs, model, LabellingStatistics() if statistics is None else statistics, workers)


def _annotate(
    docs: Iterable[Document], model: LabelModel, statistics: LabellingStatistics, workers: int
) -> Iterator[Document]:
    if workers <= 1:
        for chunk in _chunks(docs, HERE):
            layers = [model(doc) for doc in chunk]
            statistics.add(chunk, layers, model.sources)
            for doc, layer in zip(chunk, layers, strict=True):
                doc.spans, doc.unsure = layer.spans, layer.unsure
            yield from chunk
        return
    for chunk, (found, part) in map_in_order(_chunks(docs, SENT), _LabelChunk(model), workers):
        statistics.merge(part)
        for doc, (spans, unsure) in zip(chunk, found, strict=True):
            doc.spans = tuple([Span(*span) for span in spans])
            doc.unsure = tuple([Span(*span) for span in unsure])
        yield from chunk


@dataclass(frozen=True, slots=True)
class _LabelChunk:
    """What a worker does."""

    model: LabelModel

    def __call__(self, docs: list[Document]) -> tuple[list[tuple[Plain, Plain]], LabellingStatistics]:
        layers = [self.model(doc) for doc in docs]
        statistics = LabellingStatistics()
        statistics.add(docs, layers, self.model.sources)
        return [(_plain(layer.spans), _plain(layer.unsure)) for layer in layers], statistics


def _plain(spans: tuple[Span, ...]) -> Plain:
    return [(start, end, label, score, source) for start, end, label, score, source in spans]


def _chunks(docs: Iterable[Document], characters: int) -> Iterator[list[Document]]:
    """Copies of the documents without their annotation, some at a time."""
    chunk: list[Document] = []
    size = 0
    for doc in docs:
        chunk.append(Document(doc.id, doc.text, doc.words, (), (), (), False, doc.meta, doc.where))
        size += len(doc.text)
        if size >= characters or len(chunk) >= MOST_DOCUMENTS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
