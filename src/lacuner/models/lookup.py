"""A tagger that learns names by heart: what weak labels are worth without any model."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from os import PathLike
from pathlib import Path

from lacuner.annotate.entries import Entry
from lacuner.annotate.matcher import Matcher
from lacuner.errors import ModelFileError
from lacuner.files import atomic_write
from lacuner.types import Document, Span

FILE = "names.json"


class LookupTagger:
    """Finds again, word for word, the names that were labelled; a name has the label it had most often."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names
        self._matcher = Matcher([Entry(surface, label) for surface, label in sorted(names.items())], case="exact")

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(sorted(set(self.names.values())))

    def predict(self, docs: Iterable[Document]) -> Iterator[Document]:
        """The documents with the names found in them, the longest where they overlap."""
        for doc in docs:
            hits = self._matcher.hits_in_words(doc.text, doc.words)[0] if doc.words else self._matcher.hits(doc.text)
            found = [self._matcher.match(doc.text, hit) for hit in hits]
            spans = [Span(start, end, self._matcher.entries[first].label, 1.0) for start, end, (first, *_) in found]
            yield replace(doc, spans=tuple(spans), rejected=(), unsure=(), complete=None)

    def __call__(self, text: str) -> Document:
        [doc] = self.predict([Document("1", text)])
        return doc

    def save(self, folder: str | PathLike[str]) -> None:
        with atomic_write(Path(folder) / FILE) as stream:
            stream.write(json.dumps(self.names, ensure_ascii=False, sort_keys=True, indent=0).encode())


def learn_names(docs: Iterable[Document]) -> LookupTagger:
    """The labelled names of some documents."""
    seen: dict[str, Counter[str]] = {}
    for doc in docs:
        for span in doc.spans:
            seen.setdefault(doc.text[span.start : span.end], Counter())[span.label] += 1
    return LookupTagger({name: min(votes, key=lambda label: (-votes[label], label)) for name, votes in seen.items()})


def load_lookup(folder: str | PathLike[str]) -> LookupTagger:
    """Read back what `save` wrote."""
    path = Path(folder) / FILE
    try:
        names = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelFileError("this is not a list of names", file=path) from error
    if not isinstance(names, dict) or not all(isinstance(label, str) and name for name, label in names.items()):
        raise ModelFileError("this is not a list of names", file=path)
    return LookupTagger(names)
