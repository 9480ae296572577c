"""The seams: what one stage of lacuner hands to the next.

Everything between stages is a character offset into a document's own text, half-open.
Not annotated is not negative: a span is an entity (`spans`), ruled out (`rejected`), or unknown, and of the
unknown some are `unsure`: there is evidence for an entity, so nothing may ever take them for a negative.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Words = tuple[tuple[int, int], ...]
"""The words of a document as character ranges, in order, never overlapping."""


class Span(NamedTuple):
    """One mention: characters `start` to `end` of the text, half-open.

    In `Document.rejected` and `Document.unsure` an empty label speaks of every type: no entity of any type
    is here; or something is here, but nobody knows of which type.
    """

    start: int
    end: int
    label: str
    score: float | None = None
    source: str | None = None

    @property
    def key(self) -> tuple[int, int, str]:
        """Start, end and label: what makes two spans the same annotation, whatever their scores and sources."""
        return self[:3]

    def overlaps(self, other: Span) -> bool:
        """Whether the two spans share a character."""
        return self.start < other.end and other.start < self.end


class Where(NamedTuple):
    """Where a document was read from: a file and, if the format has lines, the line on which it begins."""

    file: str
    line: int | None = None
    line_a_word: bool = False
    """Each word has a line of its own, as in column files."""


@dataclass(slots=True)
class Document:
    """A text and what is known about it.

    `words` are given by the file, or split once, on first use, by `lacuner.corpus.words_of`, and then kept.
    `complete` says that whatever is not a span is no entity; None means that the file does not say, and is
    treated as False until a role (`--gold`, `--weak`) says otherwise.
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
    """One span that a step could not keep as it was."""

    document: str
    start: int
    end: int
    label: str
    text: str
    reason: str


class Lost:
    """What a lossy step lost: a count a reason, and each lost span as a row, up to `MOST_ROWS` of them.

    Steps add to it as they go, so that a stream can be followed by its account. Empty means: nothing was lost.
    """

    MOST_ROWS = 100_000
    """Of more only the number is known, so that memory stays flat."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.spans: list[LostSpan] = []
        self.first: dict[str, Where] = {}

    def count(self, reason: str, times: int = 1, where: Where | None = None) -> None:
        """Something of a document other than a span was lost (its id, its meta, a score)."""
        if times:
            self.counts[reason] += times
            if where is not None:
                self.first.setdefault(reason, where)

    def span(self, doc: Document, span: Span, reason: str) -> None:
        """A span was lost."""
        self.counts[reason] += 1
        if len(self.spans) >= self.MOST_ROWS:
            return
        self.spans.append(LostSpan(doc.id, span.start, span.end, span.label, doc.text[span.start : span.end], reason))

    def __len__(self) -> int:
        return self.counts.total()

    def __iter__(self) -> Iterator[tuple[str, int]]:
        """Reasons with their counts, most frequent first, then by name."""
        return iter(sorted(self.counts.items(), key=lambda item: (-item[1], item[0])))

    def __str__(self) -> str:
        if not self.counts:
            return "0 lost"
        return "lost: " + "; ".join(f"{reason}: {times:,}" for reason, times in self)


def by_position(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Spans in reading order: by start, the longer first, then by label."""
    return tuple(sorted(spans, key=lambda span: (span.start, -span.end, span.label)))


def labels_of(docs: Iterable[Document]) -> list[str]:
    """The labels of all spans, sorted."""
    return sorted({span.label for doc in docs for span in doc.spans})


@dataclass(frozen=True)
class Splits:
    """The data of a training run. None: not given. Weak documents are incomplete, gold and dev complete."""

    weak: Sequence[Document] | None = None
    gold: Sequence[Document] | None = None
    dev: Sequence[Document] | None = None
