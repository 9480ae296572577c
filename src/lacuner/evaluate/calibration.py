"""Calibration: from a model's score to the share of held-out sentences, or spans, that it gets right.

Sentences use histogram binning, spans a monotone curve through the bins (isotonic regression, by pooling adjacent
violators; written by hand because scikit-learn is not among our dependencies).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lacuner.data import Document

MAX_BINS = 50
MIN_BIN_SIZE = 10
"""Sentences per bin, at least, if there are that many."""
MAX_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Calibration:
    """Bins of held-out sentences, by score; an array with one number per bin unless stated otherwise."""

    edges: np.ndarray
    """Scores that separate the bins, `[bins - 1]`."""
    accuracy: np.ndarray
    """Share of a bin's sentences that are an exact match."""
    sizes: np.ndarray
    """Number of sentences in a bin."""
    means: np.ndarray
    """Mean score in a bin."""

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Calibrated scores: the accuracy of each score's bin. Without any bin, scores stay as they are."""
        if not len(self.accuracy):
            return scores
        return np.asarray(self.accuracy[np.searchsorted(self.edges, scores, side="right")])

    def as_json(self) -> dict[str, Any]:
        rows = zip(self.means.tolist(), self.accuracy.tolist(), self.sizes.tolist(), strict=True)
        bins = [{"score": round(mean, 6), "right": round(share, 6), "sentences": size} for mean, share, size in rows]
        return {"sentences": int(self.sizes.sum()), "bins": bins, "edges": [round(e, 9) for e in self.edges.tolist()]}


def calibrate(scores: np.ndarray, correct: np.ndarray, max_bins: int = MAX_BINS) -> Calibration:
    """Fit a calibration to scores and to whether the prediction was an exact match, both `[sentences]`.

    Bins have about the same number of sentences. There are fewer bins if there are few sentences or equal scores.

    >>> calibration = calibrate(np.arange(20) / 20, np.arange(20) >= 15)
    >>> calibration(np.array([0.1, 0.9])).tolist()
    [0.0, 0.5]
    """
    empty = np.zeros(0)
    if not len(scores):
        return Calibration(empty, empty, empty.astype(np.int64), empty)
    count = max(min(max_bins, len(scores) // MIN_BIN_SIZE), 1)
    ranked = np.sort(scores)
    edges = np.unique(ranked[[len(ranked) * i // count for i in range(1, count)]])
    edges = edges[edges > ranked[0]]  # otherwise the lowest bin would be empty
    bin_of = np.searchsorted(edges, scores, side="right")
    sizes = np.bincount(bin_of, minlength=len(edges) + 1)
    accuracy, means = (np.bincount(bin_of, values, minlength=len(edges) + 1) / sizes for values in (correct, scores))
    return Calibration(edges, accuracy, sizes, means)


def label_confidence(labeled_share: np.ndarray, accuracy: np.ndarray) -> np.ndarray:
    """Confidence in completed sentences, `min(0.95, m + (1 - m) p)`.

    Weak labels, a share m of the words, are taken to be right; the other words are right with the calibrated accuracy
    p of the prediction.
    """
    return np.asarray(np.minimum(MAX_CONFIDENCE, labeled_share + (1 - labeled_share) * accuracy))


def select_complete(docs: Sequence[Document]) -> list[Document]:
    """Documents that can tell whether a prediction is an exact match: complete, with nothing unsure."""
    return [doc for doc in docs if doc.complete and not doc.unsure]


def exact_match(gold: Sequence[Document], predicted: Sequence[Document]) -> np.ndarray:
    """Whether the predicted spans of a document are exactly those of gold, `[documents]`."""
    pairs = zip(gold, predicted, strict=True)
    return np.array([{s.key for s in a.spans} == {s.key for s in b.spans} for a, b in pairs], dtype=bool)


@dataclass(frozen=True)
class SpanCalibration:
    """A monotone curve from scores to probabilities, linear between its points."""

    scores: tuple[float, ...]
    probs: tuple[float, ...]
    base_rate: float
    """Share of right spans among those that the curve was fitted to."""

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Calibrated scores, of the same shape."""
        return np.asarray(np.interp(scores, self.scores, self.probs))

    def as_json(self) -> dict[str, Any]:
        points = [[round(x, 6), round(y, 6)] for x, y in zip(self.scores, self.probs, strict=True)]
        return {"points": points, "base_rate": round(self.base_rate, 6)}


def fit_monotone(scores: np.ndarray, right: np.ndarray, sizes: np.ndarray) -> SpanCalibration:
    """Fit a monotone curve to bins of spans: mean score, share of right spans and number of spans, each `[bins]`.

    >>> curve = fit_monotone(np.array([0.1, 0.5, 0.9]), np.array([0.3, 0.1, 0.8]), np.array([10, 10, 20]))
    >>> curve(np.array([0.1, 0.5, 0.9])).tolist(), curve.base_rate
    ([0.2, 0.2, 0.8], 0.5)
    """
    order = np.argsort(scores, kind="stable")
    pools: list[list[float]] = []  # sum of right spans, number of spans, number of bins
    for at in order.tolist():
        pools.append([float(right[at] * sizes[at]), float(sizes[at]), 1])
        while len(pools) > 1 and pools[-2][0] * pools[-1][1] >= pools[-1][0] * pools[-2][1]:
            last = pools.pop()
            pools[-1] = [a + b for a, b in zip(pools[-1], last, strict=True)]
    probs = [total / max(size, 1e-12) for total, size, bins in pools for _ in range(int(bins))]
    base_rate = float((right * sizes).sum() / max(sizes.sum(), 1e-12))
    return SpanCalibration(tuple(scores[order].tolist()), tuple(probs), base_rate)


def calibrate_spans(scores: np.ndarray, correct: np.ndarray) -> SpanCalibration | None:
    """Fit a curve to predicted spans and to whether they are right, both `[spans]`; None for fewer than 20 spans."""
    if len(scores) < 2 * MIN_BIN_SIZE:
        return None
    bins = calibrate(scores, correct)
    return fit_monotone(bins.means, bins.accuracy, bins.sizes.astype(float))
