"""Documents as an encoder reads them: sentences of words, long ones through windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lacuner.corpus.tags import Chunk
from lacuner.corpus.windows import Window, cut_windows
from lacuner.corpus.words import to_words, words_of
from lacuner.data import Document, Lost
from lacuner.errors import ConfigError
from lacuner.models.types import Annotation, Encoder, WordSpan

WINDOW = 256
OVERLAP = 64
"""What a window costs at most, and what neighbours share, where the encoder sets no lower limit."""


@dataclass(frozen=True)
class Sentences:
    """What was cut from documents: the words to read, and where each piece belongs."""

    words: list[list[str]]
    document: np.ndarray
    """The number of the document of each sentence."""
    windows: list[Window]
    annotations: list[Annotation]
    """What is known, if it was asked for; what begins with a word is known in the window that owns the word, once."""

    @property
    def words_read(self) -> int:
        return sum(window.own_end - window.own_start for window in self.windows)


def cut_sentences(
    docs: Sequence[Document],
    encoder: Encoder,
    lost: Lost | None = None,
    window: int | None = None,
    on_long: str = "window",
) -> Sentences:
    """Cut documents for an encoder. With `lost`, for training: annotations too, and `lost` has what does not fit."""
    size = min([each for each in (window, encoder.limit) if each is not None], default=WINDOW)
    tokens = [[doc.text[start:end] for start, end in words_of(doc)] for doc in docs]
    costs = encoder.count([word for words in tokens for word in words]).tolist()
    words: list[list[str]] = []
    document: list[int] = []
    windows: list[Window] = []
    annotations: list[Annotation] = []
    position = 0
    for number, (doc, mine) in enumerate(zip(docs, tokens, strict=True)):
        prices = costs[position : position + len(mine)]
        position += len(mine)
        known = None if lost is None else annotation_of(doc, lost)
        spans = [] if known is None else [Chunk(*span) for span in known.spans]
        cut, too_long = cut_windows(prices, size, min(OVERLAP, size // 4), spans)
        if len(cut) > 1 and on_long == "error":
            raise ConfigError(f"document {doc.id!r} has {len(mine):,} words, which do not fit one window")
        if lost is not None:
            lost.count("span longer than a window", len(too_long))
        for piece in cut:
            words.append(mine[piece.start : piece.end])
            document.append(number)
            windows.append(piece)
            if known is not None:
                annotations.append(known if len(cut) == 1 else restrict_to_window(known, piece))
    return Sentences(words, np.array(document, dtype=np.int64), windows, annotations)


def annotation_of(doc: Document, lost: Lost) -> Annotation:
    """What a document says, in words; `lost` has what does not fit them."""
    spans = to_words(doc, doc.spans, lost) if doc.spans else []
    rejected = to_words(doc, doc.rejected, lost) if doc.rejected else []
    # a label that fits no words says nothing exact, but it is evidence: what it touches is unsure, never O
    vague = list(doc.unsure)
    if len(spans) < len(doc.spans):
        fitting = {span for _, _, span in spans}
        vague += [span for span in doc.spans if span not in fitting]
    unsure = to_words(doc, vague, Lost(), "expand") if vague else []
    return Annotation(
        length=len(words_of(doc)),
        spans=[(first, last, span.label) for first, last, span in spans],
        rejected=[(first, last, span.label) for first, last, span in rejected],
        unsure=[(first, last, span.label) for first, last, span in unsure],
        complete=bool(doc.complete),
    )


def restrict_to_window(known: Annotation, window: Window) -> Annotation:
    """The annotation of one window: what begins with a word that it owns and ends with a word that it sees.

    So each word, and each span that is no wider than what neighbours share to one side, is known in one window and in
    no other. A wider span across a seam that nobody labelled may be known in none: its owner does not see its end.
    """
    start, end, own_start, own_end = window

    def move(spans: Sequence[WordSpan]) -> list[WordSpan]:
        cut = [(max(a, start) - start, min(b, end) - start, label) for a, b, label in spans]
        return [span for span in cut if span[0] < span[1]]

    near = [span for span in known.spans if span[0] < end and start < span[1]]
    mine = [span for span in near if own_start <= span[0] < own_end and span[1] <= end]
    return Annotation(
        length=end - start,
        spans=move(mine),
        rejected=move([span for span in known.rejected if span[0] < own_end and own_start < span[1]]),
        unsure=move(known.unsure),
        complete=known.complete,
        own=(own_start - start, own_end - start),
        elsewhere=move([span for span in near if span not in mine]),
    )
