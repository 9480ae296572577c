"""Documents as an encoder reads them: sentences of words, and overlapping windows of long documents.

A window is a run of words that fits into the encoder. Windows overlap, so that each word has context on both sides.
Each word is *owned* by exactly one window, whose predictions count for it. No labeled entity is cut in two.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from lacuner.corpus.intervals import SpanIndex
from lacuner.corpus.tags import Chunk
from lacuner.corpus.words import to_words, word_texts, words_of
from lacuner.data import Document, Lost
from lacuner.errors import ConfigError
from lacuner.models.types import Annotation, Encoder, WordSpan

WINDOW = 256
"""Highest cost of a window, where the encoder sets no limit."""
OVERLAP = 64
"""Highest cost of the words that neighbouring windows share."""


class Window(NamedTuple):
    """Words `start` to `end` are encoded; `own_start` to `own_end` are owned, with the entities that begin there."""

    start: int
    end: int
    own_start: int
    own_end: int


@dataclass(frozen=True)
class Sentences:
    """Sentences and windows cut from documents."""

    words: list[list[str]]
    document: np.ndarray
    """Index of each sentence's document."""
    windows: list[Window]
    annotations: list[Annotation]
    """Empty unless cut for training. A word or span is known in the window that owns its first word, and only there."""

    @property
    def words_read(self) -> int:
        """Number of words that some window owns."""
        return sum(window.own_end - window.own_start for window in self.windows)


def cut_sentences(
    docs: Sequence[Document], encoder: Encoder, lost: Lost | None = None, on_long: str = "window"
) -> Sentences:
    """Cut documents into windows that the encoder can read: at most its limit, or 256.

    With `lost` the annotations are cut too, for training, and `lost` counts what does not fit. With `on_long="error"`
    a document that needs several windows is refused.

    >>> from lacuner.models.encoders.tiny import TinyEncoder
    >>> cut_sentences([Document("1", "Mara left.")], TinyEncoder()).words
    [['Mara', 'left', '.']]
    """
    size = WINDOW if encoder.limit is None else encoder.limit
    texts = [word_texts(doc) for doc in docs]
    costs = encoder.count([word for words in texts for word in words]).tolist()
    sentences: list[list[str]] = []
    document: list[int] = []
    all_windows: list[Window] = []
    annotations: list[Annotation] = []
    position = 0
    for number, (doc, words) in enumerate(zip(docs, texts, strict=True)):
        word_costs = costs[position : position + len(words)]
        position += len(words)
        annotation = None if lost is None else annotation_of(doc, lost)
        spans = [] if annotation is None else [Chunk(*span) for span in annotation.spans]
        windows, too_long = cut_windows(word_costs, size, min(OVERLAP, size // 4), spans)
        if len(windows) > 1 and on_long == "error":
            raise ConfigError(f"document {doc.id!r} has {len(words):,} words, which do not fit into one window")
        if lost is not None:
            lost.count("span longer than a window", len(too_long))
        for piece in windows:
            sentences.append(words[piece.start : piece.end])
            document.append(number)
            all_windows.append(piece)
        if annotation is not None:
            annotations += [annotation] if len(windows) == 1 else _restrict_to_windows(annotation, windows)
    return Sentences(sentences, np.array(document, dtype=np.int64), all_windows, annotations)


def _restrict_to_windows(annotation: Annotation, windows: Sequence[Window]) -> Iterator[Annotation]:
    """The annotation of each window of a long document; each window looks at few spans, not at all of them."""
    indices = {name: SpanIndex(getattr(annotation, name)) for name in ("spans", "rejected", "unsure")}
    for window in windows:
        near: dict[str, Any] = {name: index.overlapping(window.start, window.end) for name, index in indices.items()}
        yield restrict_to_window(replace(annotation, **near), window)


def annotation_of(doc: Document, lost: Lost) -> Annotation:
    """A document's annotation in words; `lost` counts the spans that do not fit word boundaries.

    >>> from lacuner.data import Span
    >>> annotation_of(Document("1", "Mara left.", spans=(Span(0, 4, "PER"),)), Lost()).spans
    [(0, 1, 'PER')]
    """
    spans = to_words(doc, doc.spans, lost) if doc.spans else []
    rejected = to_words(doc, doc.rejected, lost) if doc.rejected else []
    # a label that fits no words has no exact place, but it is evidence: what it overlaps is unsure, never O
    vague = list(doc.unsure)
    if len(spans) < len(doc.spans):
        fitting = {span for _, _, span in spans}
        vague += [span for span in doc.spans if span not in fitting]
    unsure = to_words(doc, vague, Lost(), "expand") if vague else []
    columns = [[(first, last, span.label) for first, last, span in part] for part in (spans, rejected, unsure)]
    return Annotation(len(words_of(doc)), columns[0], columns[1], columns[2], bool(doc.complete))


def restrict_to_window(annotation: Annotation, window: Window) -> Annotation:
    """The annotation of one window: spans that start at a word it owns and end at a word it contains.

    So each word, and each span that is no wider than the overlap on one side, is known in exactly one window. A wider
    unlabeled span across a window's end may be known in none: the window that owns its start does not contain its end.
    """
    start, end, own_start, own_end = window

    def shift(spans: Sequence[WordSpan]) -> list[WordSpan]:
        clipped = [(max(first, start) - start, min(last, end) - start, label) for first, last, label in spans]
        return [span for span in clipped if span[0] < span[1]]

    near = [span for span in annotation.spans if span[0] < end and start < span[1]]
    owned = [span for span in near if own_start <= span[0] < own_end and span[1] <= end]
    return Annotation(
        length=end - start,
        spans=shift(owned),
        rejected=shift([span for span in annotation.rejected if span[0] < own_end and own_start < span[1]]),
        unsure=shift(annotation.unsure),
        complete=annotation.complete,
        own=(own_start - start, own_end - start),
        elsewhere=shift([span for span in near if span not in owned]),
    )


def cut_windows(
    costs: Sequence[int], size: int, overlap: int, chunks: Iterable[Chunk] = ()
) -> tuple[list[Window], list[Chunk]]:
    """Windows of at most `size` units, and the chunks that are too long for any window.

    `costs` is the length of each word in units: 1, or its number of sub-words. Neighbouring windows share about
    `overlap` units. A chunk that would cross the end of the window that owns its first word is owned by the next
    window instead, which contains it whole. A word longer than `size` gets a window of its own.

    >>> windows, too_long = cut_windows([1] * 10, size=6, overlap=2)
    >>> [(window.start, window.end) for window in windows]
    [(0, 6), (4, 10)]
    """
    if size < 1 or not 0 <= overlap < size:
        raise ConfigError(f"the overlap of windows must be smaller than their size, {size}: it is {overlap}")
    length = len(costs)
    if sum(costs) <= size:
        return [Window(0, length, 0, length)], []
    before = [0, *accumulate(costs)]  # units before each word

    def reach(start: int, room: int) -> int:
        """The end of the longest run of words from `start` that fits into `room`."""
        return bisect_right(before, before[start] + room) - 1

    chunks = sorted(chunks)
    too_long = [chunk for chunk in chunks if before[chunk.end] - before[chunk.start] > size]
    fitting = [chunk for chunk in chunks if before[chunk.end] - before[chunk.start] <= size]
    windows: list[Window] = []
    firsts = [chunk.start for chunk in fitting]  # ascending: of a long document, a window looks at its own chunks only
    start = own_start = 0
    while True:
        end = max(reach(start, size), start + 1)
        if end <= own_start:  # the overlap leaves no room for the next word
            start = own_start
            continue
        if end == length:
            windows.append(Window(start, end, own_start, end))
            return windows, too_long
        own_end = max(bisect_left(before, before[end] - overlap // 2), own_start + 1)
        own_chunks = fitting[bisect_left(firsts, own_start) : bisect_left(firsts, own_end)]
        cut = [chunk.start for chunk in own_chunks if chunk.end > end]
        if cut and min(cut) == own_start:  # the chunk begins with the first owned word: so must the window
            start = own_start
            continue
        own_end = min([own_end, *cut])
        windows.append(Window(start, end, own_start, own_end))
        back = bisect_left(before, before[own_end] - (overlap - overlap // 2))
        start, own_start = min(max(back, start + 1), own_end), own_end
