"""Label a stream of documents, in one process or in several."""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

from lacuner.annotate.boundaries import NeighbourSample
from lacuner.annotate.label_model import Ambiguous, By, LabelModel, Layer
from lacuner.annotate.matching.matcher import Overlaps
from lacuner.annotate.sources import Source, SourceOutput
from lacuner.annotate.statistics import LabellingStatistics
from lacuner.data import Document, Span
from lacuner.processes import map_in_order

CHUNK, CHUNK_FOR_WORKER = 20_000, 200_000
"""Characters per chunk: small enough for the cache in this process, large enough to be worth sending to a worker."""

MAX_DOCUMENTS = 1_000
"""Documents per chunk."""

SAMPLE, SAMPLE_CHARACTERS = 20_000, 20_000_000
"""Documents, and characters, to which a label model is fitted, at most."""

SpanTuples = list[tuple[Any, ...]]
"""Spans as plain tuples: named tuples take five times as long to send between processes."""


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
    """Label documents with weak spans: run the sources and combine their spans with a `LabelModel`.

    Existing annotation is dropped and not shown to the sources. The result is never marked as complete. If a document
    has words, spans that do not align with them are dropped and recorded in `statistics.lost`; documents without words
    are not split. `statistics` is filled while the documents stream by. `workers` processes share the work, unless a
    source is a model that must run in this process; the result does not depend on their number.

    >>> from lacuner.annotate import Entry, gazetteer_source
    >>> [doc] = annotate([Document("1", "Aspirin helps.")], [gazetteer_source([Entry("aspirin", "Chemical")])])
    >>> doc.spans
    (Span(start=0, end=7, label='Chemical', score=None, source='dictionary'),)
    """
    return label_documents(
        docs, LabelModel(tuple(sources), by, ambiguous, overlaps), statistics=statistics, workers=workers
    )


def label_documents(
    docs: Iterable[Document], model: LabelModel, *, statistics: LabellingStatistics | None = None, workers: int = 1
) -> Iterator[Document]:
    """Label documents as `annotate` does, with a label model of your own.

    If it combines sources by `model` and is not fitted, it is fitted to the first 20,000 documents.

    >>> from lacuner.annotate import regex_source
    >>> model = LabelModel([regex_source("YEAR", "[0-9]+")])
    >>> [doc] = label_documents([Document("1", "in 1912")], model)
    >>> doc.spans[0].key
    (3, 7, 'YEAR')
    """
    docs, counts_of_all = iter(docs), LabellingStatistics() if statistics is None else statistics

    def add_labels(chunk: list[Document], layers: list[Layer]) -> list[Document]:
        counts_of_all.add(chunk, layers, model.sources)
        for doc, layer in zip(chunk, layers, strict=True):
            doc.spans, doc.unsure = layer.spans, layer.unsure
        return chunk

    if model.by == "model" and model.accuracy is None:
        sample, outputs = fit_to_beginning(docs, model)
        layers = [model.combine(doc, own_outputs) for doc, own_outputs in zip(sample, outputs, strict=True)]
        yield from add_labels(sample, layers)
    if workers <= 1 or not all(source.forkable for source in model.sources):
        for chunk in _split_chunks(docs, CHUNK):
            yield from add_labels(chunk, model.label(chunk))
        return
    work = partial(_label_chunk, model, neighbours=counts_of_all.neighbours is not None)
    for chunk, (labels, counts) in map_in_order(_split_chunks(docs, CHUNK_FOR_WORKER), work, workers):
        counts_of_all.merge(counts)
        for doc, (spans, unsure) in zip(chunk, labels, strict=True):
            doc.spans = tuple([Span(*span) for span in spans])
            doc.unsure = tuple([Span(*span) for span in unsure])
        yield from chunk


def fit_to_beginning(
    docs: Iterator[Document], model: LabelModel
) -> tuple[list[Document], list[tuple[SourceOutput, ...]]]:
    """Fit a label model to the first documents; return them, without their annotation, and what the sources found."""
    sample = [doc for chunk in _split_chunks(_take_sample(docs), CHUNK) for doc in chunk]
    outputs = [own_outputs for chunk in _cut(sample, MAX_DOCUMENTS) for own_outputs in model.find_all(chunk)]
    model.fit(sample, outputs)
    return sample, outputs


def _take_sample(docs: Iterator[Document]) -> Iterator[Document]:
    """The first documents, to fit a label model to."""
    characters = 0
    for doc in islice(docs, SAMPLE):
        yield doc
        characters += len(doc.text)
        if characters >= SAMPLE_CHARACTERS:
            return


def _cut(docs: list[Document], size: int) -> Iterator[list[Document]]:
    return (docs[start : start + size] for start in range(0, len(docs), size))


def _label_chunk(
    model: LabelModel, docs: list[Document], neighbours: bool = False
) -> tuple[list[tuple[SpanTuples, SpanTuples]], LabellingStatistics]:
    """The task of a worker: label a chunk of documents; `neighbours`: whether to sample the words beside matches."""
    layers = model.label(docs)
    statistics = LabellingStatistics(neighbours=NeighbourSample() if neighbours else None)
    statistics.add(docs, layers, model.sources)
    return [(list(map(tuple, layer.spans)), list(map(tuple, layer.unsure))) for layer in layers], statistics


def _split_chunks(docs: Iterable[Document], characters: int) -> Iterator[list[Document]]:
    """Copies of the documents without their annotation, in chunks."""
    chunk: list[Document] = []
    size = 0
    for doc in docs:
        chunk.append(Document(doc.id, doc.text, doc.words, complete=False, meta=doc.meta, where=doc.where))
        size += len(doc.text)
        if size >= characters or len(chunk) >= MAX_DOCUMENTS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
