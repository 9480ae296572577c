"""Sampling of non-overlapping spans that are trained as non-entities, for a whole corpus at once.

What it does: all spans of free words up to a width are candidates; they are drawn one after another, and a span that
    overlaps an accepted one is skipped, until there are enough or no candidate is left. Drawing from the number of
    candidates that start at each word avoids a list of all of them.
Assumes: few of the free words belong to entities.
Departs from the authors: spans are at most as wide as the widest entity; the paper's formula is damaged.
Reference: Zhang et al. (2024), "A web semantic-based text analysis approach for enhancing named entity recognition
    using PU-learning and negative sampling".
"""

import numpy as np
import torch

from lacuner.models.ragged import run_positions
from lacuner.models.tag_sets import keep_disjoint


def sample_non_entity_spans(
    free: np.ndarray, offsets: np.ndarray, counts: np.ndarray, widest: int
) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends, in the row of all words, of up to `counts` random spans of free words per sentence.

    `free` is a mask of the row's words, sentences start at `offsets`. Draws from torch's generator.

    >>> free = np.array([True, True, False, True])  # one sentence of four words
    >>> starts, ends = sample_non_entity_spans(free, np.array([0, 4]), np.array([5]), widest=1)
    >>> sorted(zip(starts.tolist(), ends.tolist()))
    [(0, 1), (1, 2), (3, 4)]
    """
    free, counts = free.copy(), counts.copy()
    starts, ends = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    while True:
        # drawing goes on from the candidates that are left: those that overlap accepted spans would be skipped anyway
        before = np.concatenate([[0], np.cumsum(_candidates_from(free, offsets, widest))])
        left = before[offsets[1:]] - before[offsets[:-1]]
        sentence = np.repeat(np.arange(len(counts)), np.where(left > 0, counts, 0))
        if not len(sentence):
            break
        uniform = torch.rand(len(sentence), dtype=torch.float64).numpy()
        candidate = before[offsets[sentence]] + (uniform * left[sentence]).astype(np.int64)
        start = np.searchsorted(before, candidate, side="right") - 1
        end = start + 1 + candidate - before[start]
        kept = keep_disjoint(start, end, (-np.arange(len(start)),), len(free))
        starts.append(start[kept])
        ends.append(end[kept])
        free[run_positions(start[kept], (end - start)[kept])] = False
        counts -= np.bincount(sentence[kept], minlength=len(counts))
    return np.concatenate(starts), np.concatenate(ends)


def _candidates_from(free: np.ndarray, offsets: np.ndarray, widest: int) -> np.ndarray:
    """Number of spans of free words that start at each word."""
    stops = np.union1d(np.flatnonzero(~free), offsets[1:])
    words = np.flatnonzero(free)
    room = np.zeros(len(free), dtype=np.int64)
    room[words] = np.minimum(stops[np.searchsorted(stops, words, side="right")] - words, widest)
    return room
