"""TODO docstring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lacuner.data import Document

MOST_BINS = 50


LEAST = 10
"""Sentences that a bin has at least, where there are so many."""


MOST_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Calibration:
    """Histogram binning: from scores to the share of held-out sentences with such scores that were wholly right."""

    edges: np.ndarray
    """Between bins: one less than there are bins."""
    right: np.ndarray
    """The share of each bin's sentences that were right."""
    sizes: np.ndarray
    means: np.ndarray
    """Each bin's mean score."""

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        if not len(self.right):
            return scores  # nobody knows better
        found: np.ndarray = self.right[np.searchsorted(self.edges, scores, side="right")]
        return found

    def as_json(self) -> dict[str, Any]:
        rows = zip(self.means.tolist(), self.right.tolist(), self.sizes.tolist(), strict=True)
        bins = [{"score": round(mean, 6), "right": round(share, 6), "sentences": size} for mean, share, size in rows]
        return {"sentences": int(self.sizes.sum()), "bins": bins, "edges": [round(e, 9) for e in self.edges.tolist()]}


def calibrate(scores: np.ndarray, right: np.ndarray, most: int = MOST_BINS) -> Calibration:
    """Bins of about as many sentences each; fewer where there are few sentences, or where scores are the same."""
    nothing = np.zeros(0)
    if not len(scores):
        return Calibration(nothing, nothing, nothing.astype(np.int64), nothing)
    count = max(min(most, len(scores) // LEAST), 1)
    ranked = np.sort(scores)
    edges = np.unique(ranked[[len(ranked) * i // count for i in range(1, count)]])
    edges = edges[edges > ranked[0]]  # else the lowest bin would be empty
    place = np.searchsorted(edges, scores, side="right")
    sizes = np.bincount(place, minlength=len(edges) + 1)
    shares, means = (np.bincount(place, each, minlength=len(edges) + 1) / sizes for each in (right, scores))
    return Calibration(edges, shares, sizes, means)


def confidence(trusted: np.ndarray, accuracy: np.ndarray) -> np.ndarray:
    """`min(0.95, m + (1 - m) p)`: weak labels are trusted, the rest is as good as the prediction."""
    found: np.ndarray = np.minimum(MOST_CONFIDENCE, trusted + (1 - trusted) * accuracy)
    return found


def judgeable(docs: Sequence[Document]) -> list[Document]:
    """Those that can tell whether a sentence is wholly right."""
    return [doc for doc in docs if doc.complete and not doc.unsure]


def rightness(gold: Sequence[Document], predicted: Sequence[Document]) -> np.ndarray:
    """Of which documents every span is right and there."""
    both = zip(gold, predicted, strict=True)
    return np.array([{s[:3] for s in a.spans} == {s[:3] for s in b.spans} for a, b in both], dtype=bool)
