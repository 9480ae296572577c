"""A tagger without a model: it matches a gazetteer, or the names that it has memorised from labels."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from lacuner.advice.mentions import count_labels
from lacuner.annotate.gazetteer.entries import Entry
from lacuner.annotate.matching.matcher import Matcher
from lacuner.data import Document, Span, document_of
from lacuner.models.gazetteer import TaggerGazetteer


class LookupTagger:
    """Labels the matches of its gazetteer or, without one, every exact occurrence of a known name.

    >>> LookupTagger({"Halden": "LOC"})("She left Halden.").spans
    (Span(start=9, end=15, label='LOC', score=1.0, source=None),)
    """

    words_truncated = words_unread = 0  # as in `Tagger`: lookup reads every word in full

    def __init__(self, names: dict[str, str], gazetteer: TaggerGazetteer | None = None) -> None:
        self.names, self.gazetteer = names, gazetteer
        self._matcher = Matcher([Entry(surface, label) for surface, label in sorted(names.items())], case="exact")

    def __repr__(self) -> str:
        entries = 0 if self.gazetteer is None else len(self.gazetteer)
        return f"LookupTagger(labels={self.labels}, names={len(self.names):,}, gazetteer={entries:,} entries)"

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(sorted(set(self.names.values()))) if self.gazetteer is None else self.gazetteer.labels

    def predict(
        self, docs: Iterable[Document], *, on_long: str = "window", threshold: float | None = None
    ) -> Iterator[Document]:
        """The documents with the names found in them, the longest where names overlap.

        `on_long` and `threshold` are accepted, as in `Tagger`, and have no effect: there are no windows, and all scores
        are 1.
        """
        for doc in docs:
            if self.gazetteer is not None:
                spans = [span._replace(score=1.0) for span in self.gazetteer.find(doc)]
            else:
                matches = self._matcher.find(doc.text, doc.words)
                spans = [Span(a, b, self._matcher.entries[first].label, 1.0) for a, b, (first, *_) in matches]
            yield replace(doc, spans=tuple(spans), rejected=(), unsure=(), complete=None)

    def __call__(self, text: str) -> Document:
        [doc] = self.predict([document_of(text)])
        return doc


def build_lookup_tagger(docs: Iterable[Document]) -> LookupTagger:
    """A lookup tagger of all labeled names; a name gets its most frequent label."""
    return LookupTagger(
        {name: min(counts, key=lambda label: (-counts[label], label)) for name, counts in count_labels(docs).items()}
    )
