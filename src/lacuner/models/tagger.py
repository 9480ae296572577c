"""The tagger: documents in, documents with predicted spans out, each span with a score."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np

from lacuner.corpus.words import words_of
from lacuner.data import Document, Span, document_of
from lacuner.evaluate.threshold import check_threshold
from lacuner.models.gazetteer import TaggerGazetteer
from lacuner.models.inference import predict_batches
from lacuner.models.model import Model
from lacuner.models.types import DecodedSpans, Features, HasThreshold
from lacuner.models.windows import Sentences, cut_sentences

LOWEST_THRESHOLD = 0.0009
"""Spans with a lower probability are not considered when a threshold is tuned."""
DOCS_PER_GROUP = 2048
"""Documents that are read, sorted by length and scored together."""


class Tagger:
    """Predicts the entities of documents with a trained model.

    >>> from lacuner.models.encoders.tiny import TinyEncoder
    >>> from lacuner.models.heads import build_head
    >>> encoder = TinyEncoder()
    >>> tagger = Tagger(Model(encoder, build_head({"kind": "span", "labels": ["LOC"]}, encoder.width)))
    >>> tagger.labels
    ('LOC',)
    >>> doc = tagger("Mara left Halden.")  # an untrained model: any spans
    >>> all(span.label == "LOC" and span.score <= 1 for span in doc.spans)
    True
    """

    def __init__(self, model: Model, gazetteer: TaggerGazetteer | None = None) -> None:
        self.model = model
        self.gazetteer = gazetteer
        """The gazetteer whose matches are added to the predictions; None for the model alone."""
        self.words_truncated = 0
        """Words so far that the encoder truncated; a word that occurs several times in a group counts once."""
        self.words_unread = 0
        """Words so far that were truncated or that no window covered."""

    def __repr__(self) -> str:
        kinds = f"encoder={self.model.encoder.config().get('kind')!r}, head={self.model.head.config().get('kind')!r}"
        entries = 0 if self.gazetteer is None else len(self.gazetteer)
        return f"Tagger(labels={self.labels}, {kinds}, gazetteer={entries:,} entries)"

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the model; a gazetteer may have others."""
        return self.model.head.labels

    def predict(
        self, docs: Iterable[Document], *, on_long: str = "window", threshold: float | None = None
    ) -> Iterator[Document]:
        """The documents, in order, with predicted spans in place of their own.

        Long documents are read in windows, so that every word is read; `on_long="error"` refuses them. `threshold` is
        the minimum probability of a predicted span, instead of the model's own decision threshold. A value below that
        gives more spans if the model classifies spans; a model that classifies words only ever drops spans. Matches
        of the gazetteer are not affected.
        """
        check_threshold(threshold)
        stream = iter(docs)
        while group := list(islice(stream, DOCS_PER_GROUP)):
            sentences = cut_sentences(group, self.model.encoder, on_long=on_long)
            features = self.model.encoder.prepare(sentences.words)
            total = sum(len(doc.words or ()) for doc in group)
            self.words_truncated += features.truncated
            self.words_unread += total - sentences.words_read + features.truncated
            for doc in assemble(group, sentences, self.decode(features, threshold), self.labels):
                yield doc if self.gazetteer is None else self.gazetteer.merge(doc)

    def decode(self, features: Features, threshold: float | None = None) -> DecodedSpans:
        """Predicted spans, in words, of prepared sentences, in order; for `threshold` see `predict`."""
        head = self.model.head
        own = head.threshold if isinstance(head, HasThreshold) else None
        try:
            if threshold is not None and isinstance(head, HasThreshold):
                head.threshold = threshold
            batches = list(predict_batches(self.model, features, head.decode))
        finally:
            if isinstance(head, HasThreshold):
                head.threshold = own
        parts = [spans._replace(sentence=indices[spans.sentence]) for indices, spans in batches]
        if threshold is not None:
            parts = [DecodedSpans._make(column[spans.score >= threshold] for column in spans) for spans in parts]
        if not parts:
            none = np.zeros(0, dtype=np.int64)
            return DecodedSpans(none, none, none, none, np.zeros(0, dtype=np.float32))
        merged = DecodedSpans._make(np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.lexsort((merged.start, merged.sentence))
        return DecodedSpans._make(column[order] for column in merged)

    def __call__(self, text: str) -> Document:
        """Predict the entities of a string."""
        [doc] = self.predict([document_of(text)])
        return doc


def predict_all(model: Model, docs: Sequence[Document]) -> list[Document]:
    """Predictions of a span model down to the lowest threshold that is ever considered.

    Decoding is greedy by probability, so the spans above a threshold do not depend on those below it.
    """
    assert isinstance(model.head, HasThreshold)
    return list(Tagger(model).predict(docs, threshold=LOWEST_THRESHOLD))


def assemble(
    docs: Sequence[Document], sentences: Sentences, spans: DecodedSpans, labels: Sequence[str]
) -> Iterator[Document]:
    """Convert spans in words of windows to spans in characters of documents; a window keeps the spans that it owns."""
    windows = np.array(sentences.windows, dtype=np.int64).reshape(-1, 4)[spans.sentence]
    start, end = spans.start + windows[:, 0], spans.end + windows[:, 0]
    owned = (start >= windows[:, 2]) & (start < windows[:, 3])
    document = sentences.document[spans.sentence][owned]
    words = [words_of(docs[number]) for number in document.tolist()]
    first = [row[at][0] for row, at in zip(words, start[owned].tolist(), strict=True)]
    last = [row[at - 1][1] for row, at in zip(words, end[owned].tolist(), strict=True)]
    names = [labels[i] for i in spans.label[owned]]
    in_characters = list(map(Span, first, last, names, spans.score[owned].round(6).tolist()))
    bounds = np.searchsorted(document, np.arange(len(docs) + 1))
    for number, doc in enumerate(docs):
        own = in_characters[bounds[number] : bounds[number + 1]]
        yield Document(doc.id, doc.text, doc.words, _drop_overlaps(own), meta=doc.meta, where=doc.where)


def _drop_overlaps(spans: list[Span]) -> tuple[Span, ...]:
    """Keep the more probable of two spans that neighbouring windows predict where they meet."""
    kept: list[Span] = []
    for span in spans:
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
        elif (span.score or 0.0) > (kept[-1].score or 0.0):
            kept[-1] = span
    return tuple(kept)
