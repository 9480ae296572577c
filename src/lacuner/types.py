"""The seams: what one stage of lacuner hands to the next.

Everything between stages is a character offset into a document's own text, half-open.
Not annotated is not negative: a span is an entity (`spans`), ruled out (`rejected`), or unknown, and of the
unknown some are `unsure`: there is evidence for an entity, so nothing may ever take them for a negative.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:  # corpus tools use these types too, and must start without torch
    import numpy as np
    import torch
    from torch import Tensor

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


# What models are made of. Here, and only here, spans are counted in words of one sentence (or window).

WordSpan = tuple[int, int, str]
"""First word, word after the last, label; an empty label as in `Span`."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """What is known about one sentence, in words: the training side of a `Document`.

    A rejected span with an empty label rules out every entity inside it. Nothing that touches an unsure span is
    ever known to be no entity.
    """

    length: int
    spans: Sequence[WordSpan] = ()
    rejected: Sequence[WordSpan] = ()
    unsure: Sequence[WordSpan] = ()
    complete: bool = False
    own: tuple[int, int] | None = None
    """Of a window: the words that it owns. What begins elsewhere is not known here, because another window knows it."""
    elsewhere: Sequence[WordSpan] = ()
    """Of a window: labelled spans that reach into it and are known in another one, or fit none."""


@dataclass(frozen=True, slots=True)
class Targets:
    """What a batch should be labelled as. `known = False` says nothing at all; it is never the same as O.

    Shapes follow the scores: `[batch, words]` for words, `[batch, words, widths]` for spans; `probs`, where a recipe
    has soft labels, has one more dimension and takes the place of `labels`.
    """

    labels: Tensor
    known: Tensor
    weight: Tensor
    probs: Tensor | None = None


@dataclass(frozen=True, slots=True)
class TokenScores:
    """Logits `[batch, words, tags]` and which words are real."""

    logits: Tensor
    mask: Tensor


@dataclass(frozen=True, slots=True)
class EntityTypeScores:
    """`entity` `[batch, words]` and `types` `[batch, words, types]` as logits; `logits` are the joint log
    probabilities of O and the types."""

    entity: Tensor
    types: Tensor
    logits: Tensor
    mask: Tensor


@dataclass(frozen=True, slots=True)
class CRFScores:
    """Emissions `[batch, words, tags]`, transitions `[from, to]` with the impossible ones very low, start and end."""

    logits: Tensor
    transitions: Tensor
    start: Tensor
    end: Tensor
    mask: Tensor


@dataclass(frozen=True, slots=True)
class SpanScores:
    """Logits `[batch, words, widths, classes]`: the span of `w + 1` words that begins at word `i` is `[:, i, w]`."""

    logits: Tensor
    mask: Tensor


class Found(NamedTuple):
    """Spans found in a batch, in reading order: arrays of equal length. `label` is an index into the head's labels."""

    sentence: np.ndarray
    start: np.ndarray
    end: np.ndarray
    label: np.ndarray
    score: np.ndarray


@dataclass(frozen=True, slots=True)
class Features:
    """A prepared corpus: packed arrays that only the encoder understands.

    `lengths` are words a sentence, `costs` what each sentence costs the encoder (sub-words where it has them);
    `cut` counts the words that were too long to be read to their end.
    """

    lengths: np.ndarray
    costs: np.ndarray
    arrays: Mapping[str, np.ndarray]
    cut: int = 0

    def __len__(self) -> int:
        return len(self.lengths)


@dataclass(frozen=True, slots=True)
class Batch:
    """Some sentences as tensors; `mask` `[batch, words]` says which words are real."""

    mask: Tensor
    tensors: Mapping[str, Tensor]

    def to(self, device: torch.device | str) -> Batch:
        return Batch(self.mask.to(device), {name: tensor.to(device) for name, tensor in self.tensors.items()})


class Encoder(Protocol):
    """Words to vectors. An `nn.Module` besides; `limit` is the highest cost a sentence may have, None for any."""

    @property
    def width(self) -> int: ...

    @property
    def limit(self) -> int | None: ...

    def count(self, words: Sequence[str]) -> np.ndarray:
        """What each word costs, for cutting windows."""

    def prepare(self, sentences: Sequence[Sequence[str]]) -> Features:
        """Once a corpus; every distinct word is looked at once."""

    def collate(self, features: Features, indices: Sequence[int] | np.ndarray) -> Batch:
        """Some of the prepared sentences, padded to the longest."""

    def forward(self, batch: Batch) -> Tensor:
        """Vectors `[batch, words, width]`; those of padding mean nothing."""

    def config(self) -> dict[str, Any]:
        """What `build_encoder` needs, besides the weights and `files`, to make it again: plain JSON."""

    def files(self) -> dict[str, bytes]:
        """Files by name that belong to the encoder (a tokenizer); most have none."""


class PackedTargets(Protocol):
    """Targets of a whole corpus, its words in one row. A recipe may overwrite the tensors between epochs."""

    labels: Tensor
    known: Tensor
    weight: Tensor | None
    probs: Tensor | None

    def collate(self, indices: Sequence[int] | np.ndarray) -> Targets:
        """Targets of some sentences, padded to the longest; padding is not known."""


S = TypeVar("S")


class Head(Protocol[S]):
    """Vectors to scores to spans. An `nn.Module` besides."""

    @property
    def labels(self) -> tuple[str, ...]: ...

    def forward(self, vectors: Tensor, mask: Tensor) -> S:
        """Scores of a batch."""

    def decode(self, scores: S) -> Found:
        """Spans, no two of a sentence overlapping, each with a probability."""

    def targets(self, annotations: Sequence[Annotation], lost: Lost) -> PackedTargets:
        """Once a corpus; `lost` has what this head cannot express."""

    def config(self) -> dict[str, Any]:
        """What `build_head` needs, besides the weights and the encoder's width, to make it again."""
