"""A trained model at work: documents in, documents with spans out, each span with a score."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from lacuner.data import Document, Span
from lacuner.models.inference import BUDGET, score_batches
from lacuner.models.model import Model
from lacuner.models.types import DecodedSpans, Features
from lacuner.models.windows import Sentences, cut_sentences

DOCS_PER_GROUP = 2048
"""Documents that are held, sorted by length and scored before the next are read."""


class Tagger:
    """Finds entities. `labels` are the types it knows."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.words_truncated = 0
        """Words so far that the encoder truncated; a word that occurs several times in a group counts once."""
        self.words_unread = 0
        """Words so far that were truncated or that no window covered."""

    @property
    def labels(self) -> tuple[str, ...]:
        labels: tuple[str, ...] = self.model.head.labels
        return labels

    def predict(
        self, docs: Iterable[Document], *, budget: int = BUDGET, window: int | None = None, on_long: str = "window"
    ) -> Iterator[Document]:
        """The documents with the model's spans in place of their own, one after another, in order.

        Long documents are read through windows, so that no word is left unread; `on_long="error"` refuses them.
        """
        stream = iter(docs)
        while group := list(islice(stream, DOCS_PER_GROUP)):
            sentences = cut_sentences(group, self.model.encoder, window=window, on_long=on_long)
            features = self.model.encoder.prepare(sentences.words)
            total = sum(len(doc.words or ()) for doc in group)
            self.words_truncated += features.truncated
            self.words_unread += total - sentences.words_read + features.truncated
            found = self.decode(features, budget)
            yield from assemble(group, sentences, found, self.labels)

    def decode(self, features: Features, budget: int = BUDGET) -> DecodedSpans:
        """Spans in words of prepared sentences, in order."""
        batches = score_batches(self.model, features, self.model.head.decode, budget=budget)
        return _in_order([found._replace(sentence=indices[found.sentence]) for indices, found in batches])

    def __call__(self, text: str) -> Document:
        """Tag a string."""
        [doc] = self.predict([Document("1", text)])
        return doc


def _in_order(parts: Sequence[DecodedSpans]) -> DecodedSpans:
    if not parts:
        none = np.zeros(0, dtype=np.int64)
        return DecodedSpans(none, none, none, none, np.zeros(0, dtype=np.float32))
    merged = DecodedSpans._make(np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort((merged.start, merged.sentence))
    return DecodedSpans._make(column[order] for column in merged)


def assemble(
    docs: Sequence[Document], sentences: Sentences, found: DecodedSpans, labels: Sequence[str]
) -> Iterator[Document]:
    """Spans in characters of the documents, from spans in words of their windows; each from the window that owns it."""
    windows = np.array(sentences.windows, dtype=np.int64).reshape(-1, 4)[found.sentence]
    start, end = found.start + windows[:, 0], found.end + windows[:, 0]
    mine = (start >= windows[:, 2]) & (start < windows[:, 3])
    document = sentences.document[found.sentence][mine]
    sizes = np.fromiter((len(doc.words or ()) for doc in docs), dtype=np.int64, count=len(docs))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    edges = np.array([edge for doc in docs for edge in doc.words or ()], dtype=np.int64).reshape(-1, 2)
    first = edges[offsets[document] + start[mine], 0]
    last = edges[offsets[document] + end[mine] - 1, 1]
    names = [labels[i] for i in found.label[mine]]
    spans = list(map(Span, first.tolist(), last.tolist(), names, found.score[mine].round(6).tolist()))
    counts = np.searchsorted(document, np.arange(len(docs) + 1))
    for number, doc in enumerate(docs):
        mine_here = spans[counts[number] : counts[number + 1]]
        yield replace(doc, spans=_disjoint(mine_here), rejected=(), unsure=(), complete=None)


def _disjoint(spans: list[Span]) -> tuple[Span, ...]:
    """Two windows may both find an entity at their seam: the more probable one stays."""
    kept: list[Span] = []
    for span in spans:
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
        elif (span.score or 0.0) > (kept[-1].score or 0.0):
            kept[-1] = span
    return tuple(kept)
