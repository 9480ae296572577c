"""What one stage hands to the next: documents with spans, and an account of what was dropped on the way.

All positions are character offsets into the document's own text, half-open. Unlabeled does not mean negative. A span
of text is in one of three states:

- an *entity*: it is in `Document.spans`;
- *ruled out*: it is in `Document.rejected`, or the document is `complete` and the span is not among its entities;
- *unknown*: everything else. Some unknown spans are *unsure* (`Document.unsure`): there is evidence for an entity,
  for example an ambiguous gazetteer entry, so no recipe may use them as negatives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

Words = tuple[tuple[int, int], ...]
"""The words of a document as character ranges, in order and without overlap."""


class Span(NamedTuple):
    """A mention of an entity: characters `start` to `end` of the text, its type, and where it comes from.

    In `Document.rejected` and `Document.unsure` an empty label means any type.

    >>> span = Span(0, 9, "PERSON", score=0.8, source="gazetteer")
    >>> span.key
    (0, 9, 'PERSON')
    >>> span.overlaps(Span(5, 14, "PLACE")), span.contains(Span(5, 14, "PLACE"))
    (True, False)
    """

    start: int
    end: int
    label: str
    score: float | None = None
    source: str | None = None

    @property
    def key(self) -> tuple[int, int, str]:
        """Start, end and label: two spans with the same key are the same annotation."""
        return self[:3]

    def overlaps(self, other: Span) -> bool:
        """Whether the two spans share a character."""
        return self.start < other.end and other.start < self.end

    def contains(self, other: Span) -> bool:
        """Whether the other span is a part of this one, or has the same place."""
        return self.start <= other.start and other.end <= self.end


class Where(NamedTuple):
    """Where a document comes from: a file and, if the format has lines, the document's first line."""

    file: str
    line: int | None = None
    line_per_word: bool = False
    """Whether each word has a line of its own, as in column files."""

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(slots=True)
class Document:
    """A text with its annotation.

    `words` come from the file, or are split on first use by `lacuner.corpus.words_of` and then kept. `complete` means
    that every entity is annotated. None means that the file does not say; it counts as False unless a role (`--gold`,
    `--dev`) implies otherwise.

    >>> doc = Document("1", "Mara Teel left Halden.", spans=(Span(0, 9, "PERSON"),))
    >>> [doc.text[span.start : span.end] for span in doc.spans]
    ['Mara Teel']
    >>> doc.complete is None  # so "Halden" is unknown, not negative
    True
    """

    id: str
    text: str
    words: Words | None = None
    spans: tuple[Span, ...] = ()
    rejected: tuple[Span, ...] = ()
    unsure: tuple[Span, ...] = ()
    complete: bool | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    where: Where | None = field(default=None, compare=False, repr=False)


class LostSpan(NamedTuple):
    """A span that a step dropped or changed; of a long one, `text` is the beginning."""

    document: str
    start: int
    end: int
    label: str
    text: str
    reason: str


class Lost:
    """What a lossy step dropped: one count per reason, and one row per span (the first `MAX_ROWS`).

    Steps add to it while they stream.

    >>> lost = Lost()
    >>> lost.count("id not written", 2)
    >>> lost.span(Document("1", "Mara Teel"), Span(0, 3, "PERSON"), "span does not fit the words")
    >>> print(lost)
    lost: id not written: 2; span does not fit the words: 1
    >>> lost.spans[0].text
    'Mar'
    """

    MAX_ROWS = 100_000
    """Spans beyond this number are only counted, to bound memory."""
    MAX_TEXT = 1_000
    """Characters of a span's text that are kept."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.spans: list[LostSpan] = []
        self.first: dict[str, Where] = {}

    def count(self, reason: str, times: int = 1, where: Where | None = None) -> None:
        """Count a loss other than a span: an id, metadata, a score."""
        if times:
            self.counts[reason] += times
            if where is not None:
                self.first.setdefault(reason, where)

    def span(self, doc: Document, span: Span, reason: str) -> None:
        """Record a lost span."""
        self.counts[reason] += 1
        if len(self.spans) < self.MAX_ROWS:
            text = doc.text[span.start : min(span.end, span.start + self.MAX_TEXT)]
            self.spans.append(LostSpan(doc.id, span.start, span.end, span.label, text, reason))

    def __len__(self) -> int:
        return self.counts.total()

    def __iter__(self) -> Iterator[tuple[str, int]]:
        """Reasons with their counts, most frequent first, then by name."""
        return iter(sorted(self.counts.items(), key=lambda item: (-item[1], item[0])))

    def __str__(self) -> str:
        if not self.counts:
            return "0 lost"
        return "lost: " + "; ".join(f"{reason}: {times:,}" for reason, times in self)


def document_of(text: str) -> Document:
    """A text as a document of its own; a TypeError for anything else.

    >>> document_of("Mara left").id
    '1'
    """
    if not isinstance(text, str):
        raise TypeError(f"text: expected str, got {type(text).__name__}; predict(docs) is for several documents")
    return Document("1", text)


def sort_spans(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Spans in reading order: by start, longer ones first, then by label."""
    return tuple(sorted(spans, key=lambda span: (span.start, -span.end, span.label)))


def remove_labels(docs: Iterable[Document]) -> Iterator[Document]:
    """The documents as texts.

    >>> next(remove_labels([Document("1", "Mara left", complete=True)])).complete
    False
    """
    return (replace(doc, spans=(), rejected=(), unsure=(), complete=False) for doc in docs)


@runtime_checkable
class HasLabels(Protocol):
    """Documents whose entity types are known without reading all of them."""

    @property
    def labels(self) -> list[str]: ...


def labels_of(docs: Iterable[Document]) -> list[str]:
    """The entity types that occur in the documents, sorted."""
    if isinstance(docs, HasLabels):
        return docs.labels
    return sorted({span.label for doc in docs for span in doc.spans})


@dataclass(frozen=True)
class Splits:
    """The data of a training run; None where not given. Weak documents are incomplete, gold and dev complete.

    Recipes with `UNLABELED` read the texts of weak and unlabeled documents; either may be missing.
    """

    weak: Sequence[Document] | None = None
    gold: Sequence[Document] | None = None
    dev: Sequence[Document] | None = None
    unlabeled: Sequence[Document] | None = None

    @property
    def texts(self) -> list[Document]:
        """The weak and the unlabeled documents without their labels, for semi-supervised recipes.

        Unsure spans stay: they are never negatives.

        >>> weak = [Document("1", "Mara left", spans=(Span(0, 4, "PERSON"),))]
        >>> [(doc.id, doc.spans) for doc in Splits(weak=weak, unlabeled=[Document("2", "She left")]).texts]
        [('1', ()), ('2', ())]
        """
        docs = (*(self.weak or ()), *(self.unlabeled or ()))
        return [replace(doc, spans=(), rejected=(), complete=False) for doc in docs]
