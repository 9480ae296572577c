"""Annotations to training targets, for a whole corpus at once: what is an entity, what is O, and what is unknown.

The rules are the same for every head. A labeled span is known. In a complete sentence everything else is O; in any
other sentence only words and spans inside a span that was ruled out for every type are O. Whatever overlaps an unsure
span is unknown, unless it is labeled. In a window only words that it owns, and spans that start there, are known.
What a head cannot express (a label it lacks, an overlap, a span that is too wide) is counted in `lost` and is unknown,
never O.

Five words: "Mara Teel" is labeled, "left" is ruled out, "Halden" has no label, and "Works" is unsure.

>>> from dataclasses import replace
>>> annotation = Annotation(5, spans=[(0, 2, "PER")], rejected=[(2, 3, "")], unsure=[(4, 5, "")])
>>> targets = token_targets([annotation], TagSet(("PER",), "BIO"), Lost())
>>> targets.labels.tolist(), targets.known.tolist()  # tags: 0 is O, 1 is B-PER, 2 is I-PER
([1, 2, 0, 0, 0], [True, True, True, False, False])
>>> complete = replace(annotation, complete=True)  # now "Halden" is O; "Works" stays unknown
>>> token_targets([complete], TagSet(("PER",), "BIO"), Lost()).known.tolist()
[True, True, True, True, False]

The same for spans: row `i` has the spans that start at word `i`, of one word and of two.

>>> targets = span_targets([complete], ["PER"], 2, Lost())
>>> targets.labels.tolist()  # classes: 0 is O, 1 is PER
[[0, 1], [0, 0], [0, 0], [0, 0], [0, 0]]
>>> targets.known.tolist()  # unknown: "Halden Works", "Works", and what would end after the last word
[[True, True], [True, True], [True, True], [True, False], [False, False]]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lacuner.data import Lost
from lacuner.errors import CorpusError
from lacuner.models.ragged import offsets_of, pad_rows, run_positions
from lacuner.models.tag_sets import TagSet, keep_disjoint
from lacuner.models.types import Annotation, Targets, WordSpan

WIDTH_QUANTILE = 0.995
MIN_SPAN_WIDTH = 10


@dataclass
class CorpusTargets:
    """Targets of a corpus, all its words in one row: `[words]`, or `[words, widths]` for spans.

    A recipe may overwrite the tensors between epochs. `offsets` are the starts of the sentences in the row.
    """

    labels: Tensor
    known: Tensor
    offsets: np.ndarray
    weight: Tensor | None = None
    probs: Tensor | None = None
    weight_by_entity: bool = False
    """Whether the weight of a position is its entity probability in `probs`."""

    def collate(self, indices: Sequence[int] | np.ndarray) -> Targets:
        """Targets of some sentences, padded to the longest; padding is not known."""
        positions, real = pad_rows(self.offsets, indices)
        at, mask = torch.from_numpy(positions), torch.from_numpy(real)
        labels = _take(self.labels, at).long()
        known = _take(self.known, at) & mask.view(*mask.shape, *[1] * (labels.dim() - 2))
        probs = None if self.probs is None else _take(self.probs, at)
        if self.weight_by_entity and probs is not None:
            weight = 1 - probs[..., 0]
        else:
            weight = torch.ones(labels.shape) if self.weight is None else _take(self.weight, at).float()
        return Targets(labels, known, weight, probs)


def _take(row: Tensor, at: Tensor) -> Tensor:
    return row[at] if len(row) else row.new_zeros(*at.shape, *row.shape[1:])  # empty sentences only: all padding


class _SpanTable(NamedTuple):
    """Spans of a corpus as positions in its row of words; label -1: the head does not have this label."""

    start: np.ndarray
    end: np.ndarray
    label: np.ndarray
    sentence: np.ndarray

    def select(self, chosen: np.ndarray) -> _SpanTable:
        return _SpanTable._make(column[chosen] for column in self)

    @property
    def words(self) -> np.ndarray:
        return run_positions(self.start, self.end - self.start)


def _span_table(span_lists: Sequence[Sequence[WordSpan]], offsets: np.ndarray, labels: Sequence[str]) -> _SpanTable:
    number = {label: i for i, label in enumerate(labels)}
    counts = np.fromiter(map(len, span_lists), dtype=np.int64, count=len(span_lists))
    rows = [(start, end, number.get(label, -1)) for spans in span_lists for start, end, label in spans]
    start, end, label = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    sentence = np.repeat(np.arange(len(span_lists)), counts)
    wrong = np.flatnonzero((start < 0) | (start >= end) | (end > np.diff(offsets)[sentence]))
    if len(wrong):
        i = wrong[0]
        raise CorpusError(f"sentence {sentence[i]} has no words {start[i]} to {end[i]}")
    return _SpanTable(start + offsets[sentence], end + offsets[sentence], label, sentence)


@dataclass(frozen=True)
class _Corpus:
    """The annotations of a corpus as arrays."""

    offsets: np.ndarray
    complete: np.ndarray
    own: np.ndarray
    """Which words of the row are owned by their window."""
    spans: _SpanTable
    rejected: _SpanTable
    unsure: _SpanTable
    elsewhere: _SpanTable


def _flatten(annotations: Sequence[Annotation], labels: Sequence[str], lost: Lost) -> _Corpus:
    offsets = offsets_of(np.array([annotation.length for annotation in annotations], dtype=np.int64))
    complete = np.array([annotation.complete for annotation in annotations], dtype=bool)
    # ruling out a single type adds nothing in a complete sentence; elsewhere it leaves other labels open: no target
    rejected = [[span for span in annotation.rejected if not span[2]] for annotation in annotations]
    of_one_type = [len(a.rejected) - len(spans) for a, spans in zip(annotations, rejected, strict=True)]
    lost.count("rejection of a single type", int(np.array(of_one_type, dtype=np.int64)[~complete].sum()))
    bounds = np.array([a.own or (0, a.length) for a in annotations], dtype=np.int64).reshape(-1, 2)
    own = np.zeros(offsets[-1], dtype=bool)
    own[run_positions(offsets[:-1] + bounds[:, 0], bounds[:, 1] - bounds[:, 0])] = True
    columns: list[Sequence[Sequence[WordSpan]]] = [[a.spans for a in annotations], rejected]
    columns += [[a.unsure for a in annotations], [a.elsewhere for a in annotations]]
    spans, *others = (_span_table(span_lists, offsets, labels) for span_lists in columns)
    lost.count("span with a label that the model does not have", int((spans.label < 0).sum()))
    return _Corpus(offsets, complete, own, spans, *others)


def token_targets(annotations: Sequence[Annotation], tags: TagSet, lost: Lost) -> CorpusTargets:
    """One tag per word. Of overlapping labeled spans the longest is kept; words of the others only are unknown."""
    corpus = _flatten(annotations, tags.labels, lost)
    known = np.repeat(corpus.complete, np.diff(corpus.offsets))
    known[corpus.rejected.words] = True
    known &= corpus.own
    for spans in (corpus.unsure, corpus.elsewhere, corpus.spans):
        known[spans.words] = False
    spans = corpus.spans.select(corpus.spans.label >= 0)
    kept = keep_disjoint(spans.start, spans.end, (-spans.label, -spans.start, spans.end - spans.start), len(known))
    lost.count("span overlaps a longer one", int((~kept).sum()))
    spans = spans.select(kept)
    if tags.scheme == "IO":
        lost.count("span merges with its neighbour in the scheme IO", _count_adjacent(spans))
    labels = tags.encode(spans.start, spans.end, spans.label, len(known))
    known[spans.words] = True
    return CorpusTargets(torch.from_numpy(labels.astype(np.int16)), torch.from_numpy(known), corpus.offsets)


def _count_adjacent(spans: _SpanTable) -> int:
    """Number of spans that directly follow another of the same label."""
    spans = spans.select(np.argsort(spans.start))
    same = (spans.label[:-1] == spans.label[1:]) & (spans.sentence[:-1] == spans.sentence[1:])
    return int(((spans.end[:-1] == spans.start[1:]) & same).sum())


def span_targets(annotations: Sequence[Annotation], labels: Sequence[str], widths: int, lost: Lost) -> CorpusTargets:
    """One class per span, 0 for O: `[i, w]` is the span of `w + 1` words that starts at word `i` of the row."""
    corpus = _flatten(annotations, labels, lost)
    steps, lengths = np.arange(widths), np.diff(corpus.offsets)
    room = np.repeat(corpus.offsets[1:], lengths) - np.arange(len(corpus.own))  # words from here to the sentence's end
    known = (steps < room[:, None]) & np.repeat(corpus.complete, lengths)[:, None]
    rejected = corpus.rejected
    words = rejected.words
    np.logical_or.at(known, words, steps < (np.repeat(rejected.end, rejected.end - rejected.start) - words)[:, None])
    known &= corpus.own[:, None]
    _mark_unknown_near_unsure(known, corpus, widths)
    wide = corpus.spans.end - corpus.spans.start > widths
    lost.count("span wider than the model's limit", int((wide & (corpus.spans.label >= 0)).sum()))
    spans = corpus.spans.select(~wide)
    at = spans.start, spans.end - spans.start - 1
    classes = np.zeros(known.shape, dtype=np.int16)
    classes[at] = spans.label + 1
    known[at] = spans.label >= 0
    twice = classes[at] != spans.label + 1
    lost.count("span with two labels", int(twice.sum()))
    known[at[0][twice], at[1][twice]] = False
    return CorpusTargets(torch.from_numpy(classes), torch.from_numpy(known), corpus.offsets)


def _mark_unknown_near_unsure(known: np.ndarray, corpus: _Corpus, widths: int) -> None:
    """Make every span unknown that shares a word with an unsure span."""
    unsure = corpus.unsure
    first = np.maximum(unsure.start - widths + 1, corpus.offsets[:-1][unsure.sentence])
    starts = run_positions(first, unsure.end - first)
    before = np.repeat(unsure.start, unsure.end - first) - starts  # words from here to the unsure span, 0 inside it
    np.logical_and.at(known, starts, np.arange(widths) < before[:, None])


def choose_span_width(annotations: Iterable[Annotation]) -> int:
    """Widest span to score in a corpus: the 99.5 % quantile of the labeled spans' widths, at least 10.

    >>> choose_span_width([Annotation(20, spans=[(0, 12, "ORG")])])
    12
    """
    widths = sorted(end - start for annotation in annotations for start, end, _ in annotation.spans)
    return max(MIN_SPAN_WIDTH, widths[ceil(WIDTH_QUANTILE * len(widths)) - 1]) if widths else MIN_SPAN_WIDTH
