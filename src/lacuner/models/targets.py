"""From annotations to targets, once a corpus: what is known, what is known to be O, and what nobody knows.

The rules, the same for every head: a labelled span is known. In a complete sentence everything else is known to be O;
in any other only what lies inside a span rejected for every type. Whatever touches an unsure span is unknown, unless it
is labelled. Of a window only what begins with a word of its own is known. What a head cannot express (a label it lacks,
an overlap, a span too wide) is counted in `lost`, and is unknown where the head has a place for it: never O.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import torch
from torch import Tensor

from lacuner.data import Lost
from lacuner.errors import CorpusError
from lacuner.models.ragged import offsets_of, pad_rows, run_positions
from lacuner.models.tag_sets import TagSet, keep_disjoint
from lacuner.models.types import Annotation, Targets, WordSpan

WIDTH_QUANTILE = 0.995
LEAST_WIDTH = 10


@dataclass
class CorpusTargets:
    """Targets of a corpus: a row of all its words (times the widths, for spans). See `types.PackedTargets`."""

    labels: Tensor
    known: Tensor
    offsets: np.ndarray
    weight: Tensor | None = None
    probs: Tensor | None = None

    def collate(self, indices: Sequence[int] | np.ndarray) -> Targets:
        positions, real = pad_rows(self.offsets, indices)
        at, mask = torch.from_numpy(positions), torch.from_numpy(real)
        labels = _take(self.labels, at).long()
        known = _take(self.known, at) & mask.view(*mask.shape, *[1] * (labels.dim() - 2))
        weight = torch.ones(labels.shape) if self.weight is None else _take(self.weight, at)
        return Targets(labels, known, weight, None if self.probs is None else _take(self.probs, at))


def _take(row: Tensor, at: Tensor) -> Tensor:
    return row[at] if len(row) else row.new_zeros(*at.shape, *row.shape[1:])  # empty sentences only: all is padding


@dataclass(frozen=True)
class _Flat:
    """Spans of a corpus as positions in its row of words; label -1 is one that the head does not have."""

    start: np.ndarray
    end: np.ndarray
    label: np.ndarray
    sentence: np.ndarray

    def where(self, chosen: np.ndarray) -> _Flat:
        return _Flat(self.start[chosen], self.end[chosen], self.label[chosen], self.sentence[chosen])

    @property
    def words(self) -> np.ndarray:
        return run_positions(self.start, self.end - self.start)


def _flat(groups: Sequence[Sequence[WordSpan]], offsets: np.ndarray, labels: Sequence[str]) -> _Flat:
    number = {label: i for i, label in enumerate(labels)}
    counts = np.fromiter(map(len, groups), dtype=np.int64, count=len(groups))
    rows = [(start, end, number.get(label, -1)) for spans in groups for start, end, label in spans]
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    sentence = np.repeat(np.arange(len(groups)), counts)
    start, end, label = table.T
    wrong = np.flatnonzero((start < 0) | (start >= end) | (end > np.diff(offsets)[sentence]))
    if len(wrong):
        i = wrong[0]
        raise CorpusError(f"sentence {sentence[i]} has no words {start[i]} to {end[i]}")
    return _Flat(start + offsets[sentence], end + offsets[sentence], label, sentence)


@dataclass(frozen=True)
class _Corpus:
    offsets: np.ndarray
    complete: np.ndarray
    spans: _Flat
    rejected: _Flat
    unsure: _Flat
    elsewhere: _Flat
    own: np.ndarray
    """Which words of the row are owned by the window that they stand in."""

    @property
    def length(self) -> int:
        return int(self.offsets[-1])


def _read(annotations: Sequence[Annotation], labels: Sequence[str], lost: Lost) -> _Corpus:
    offsets = offsets_of(np.array([annotation.length for annotation in annotations], dtype=np.int64))
    complete = np.array([annotation.complete for annotation in annotations], dtype=bool)
    spans = _flat([annotation.spans for annotation in annotations], offsets, labels)
    lost.count("span with a label that the model does not have", int((spans.label < 0).sum()))
    for_all = [[span for span in annotation.rejected if not span[2]] for annotation in annotations]
    of_one_type = np.array([len(a.rejected) - len(every) for a, every in zip(annotations, for_all, strict=True)])
    if len(of_one_type):
        # in a complete sentence it says nothing new; elsewhere it leaves several labels open, which is not a target
        lost.count("rejection of a single type", int(of_one_type[~complete].sum()))
    unsure = _flat([annotation.unsure for annotation in annotations], offsets, labels)
    elsewhere = _flat([annotation.elsewhere for annotation in annotations], offsets, labels)
    edges = np.array([each.own or (0, each.length) for each in annotations], dtype=np.int64).reshape(-1, 2)
    own = np.zeros(offsets[-1], dtype=bool)
    own[run_positions(offsets[:-1] + edges[:, 0], edges[:, 1] - edges[:, 0])] = True
    return _Corpus(offsets, complete, spans, _flat(for_all, offsets, labels), unsure, elsewhere, own)


def token_targets(annotations: Sequence[Annotation], tags: TagSet, lost: Lost) -> CorpusTargets:
    """Tags a word. Of labelled spans that overlap the longest is kept; words that only the others cover are unknown."""
    corpus = _read(annotations, tags.labels, lost)
    known = np.repeat(corpus.complete, np.diff(corpus.offsets))
    known[corpus.rejected.words] = True
    known &= corpus.own
    for unknown in (corpus.unsure, corpus.elsewhere, corpus.spans):
        known[unknown.words] = False
    spans = corpus.spans.where(corpus.spans.label >= 0)
    kept = keep_disjoint(spans.start, spans.end, (-spans.label, -spans.start, spans.end - spans.start), corpus.length)
    lost.count("span overlaps a longer one", int((~kept).sum()))
    spans = spans.where(kept)
    if tags.scheme == "IO":
        lost.count("span merges with its neighbour in the scheme IO", _touching(spans))
    labels = tags.encode(spans.start, spans.end, spans.label, corpus.length)
    known[spans.words] = True
    return CorpusTargets(torch.from_numpy(labels.astype(np.int16)), torch.from_numpy(known), corpus.offsets)


def _touching(spans: _Flat) -> int:
    order = np.argsort(spans.start)
    start, end, label, sentence = (array[order] for array in (spans.start, spans.end, spans.label, spans.sentence))
    return int(((end[:-1] == start[1:]) & (label[:-1] == label[1:]) & (sentence[:-1] == sentence[1:])).sum())


def span_targets(annotations: Sequence[Annotation], labels: Sequence[str], widths: int, lost: Lost) -> CorpusTargets:
    """Classes a span, 0 for O: the span of `w + 1` words from word `i` of the row is `[i, w]`."""
    corpus = _read(annotations, labels, lost)
    steps = np.arange(widths)
    lengths = np.diff(corpus.offsets)
    room = np.repeat(corpus.offsets[1:], lengths) - np.arange(corpus.length)  # words from here to the sentence's end
    inside = steps < room[:, None]
    known = inside & np.repeat(corpus.complete, lengths)[:, None]
    gone = corpus.rejected
    words = gone.words
    np.logical_or.at(known, words, steps < (np.repeat(gone.end, gone.end - gone.start) - words)[:, None])
    known &= corpus.own[:, None]
    _forget_touching(known, corpus, widths)
    spans = corpus.spans
    wide = spans.end - spans.start > widths
    lost.count("span wider than the model's limit", int((wide & (spans.label >= 0)).sum()))
    spans = spans.where(~wide)
    classes = np.zeros(known.shape, dtype=np.int16)
    last = spans.end - spans.start - 1
    classes[spans.start, last] = spans.label + 1
    known[spans.start, last] = spans.label >= 0
    twice = classes[spans.start, last] != spans.label + 1
    lost.count("span with two labels", int(twice.sum()))
    known[spans.start[twice], last[twice]] = False
    return CorpusTargets(torch.from_numpy(classes), torch.from_numpy(known), corpus.offsets)


def _forget_touching(known: np.ndarray, corpus: _Corpus, widths: int) -> None:
    """Make every span unknown that shares a word with an unsure one."""
    unsure = corpus.unsure
    first = np.maximum(unsure.start - widths + 1, corpus.offsets[:-1][unsure.sentence])
    starts = run_positions(first, unsure.end - first)
    ahead = np.repeat(unsure.start, unsure.end - first) - starts  # words before the unsure span begins
    np.logical_and.at(known, starts, np.arange(widths) < ahead[:, None])


def choose_span_width(annotations: Sequence[Annotation]) -> int:
    """The width limit for a corpus: the 99.5 % quantile of its labelled spans' widths, at least 10."""
    widths = sorted(end - start for annotation in annotations for start, end, _ in annotation.spans)
    if not widths:
        return LEAST_WIDTH
    return max(LEAST_WIDTH, widths[ceil(WIDTH_QUANTILE * len(widths)) - 1])
