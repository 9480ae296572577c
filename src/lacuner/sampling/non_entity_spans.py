"""Spans of words that are taught as `no entity`: drawn for a whole corpus at once, no two of them overlapping.

What it does: each sentence wants some spans. All runs of free words up to a width are candidates; they are drawn one
    after another, a span that overlaps an accepted one is skipped, until there are enough or there is no room. Drawing
    from a row of counts, one a word, spares the list of candidates, which has as many rows as words times widths.
Assumes: few of the free words belong to entities.
Departs from the authors: spans have at most the width of the widest entity; the paper's formula is lost.
Reference: Zhang et al. (2024), "A web semantic-based text analysis approach for enhancing named entity recognition
    using PU-learning and negative sampling".
"""

from __future__ import annotations

import numpy as np
import torch

from lacuner.models.ragged import run_positions
from lacuner.models.tag_sets import keep_disjoint


def sample_non_entity_spans(
    free: np.ndarray, offsets: np.ndarray, wanted: np.ndarray, widest: int
) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends, in the row of all words, of so many random spans of free words a sentence as there is room for.

    `free` says which words of the row may be part of one; sentences begin at `offsets`. Draws from torch's generator.
    """
    free, wanted = free.copy(), wanted.copy()
    starts, ends = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    while True:
        # what is left after a round is as good as drawn on: overlapping spans would have been skipped
        before = np.concatenate([[0], np.cumsum(_spans_from(free, offsets, widest))])
        left = before[offsets[1:]] - before[offsets[:-1]]
        sentence = np.repeat(np.arange(len(wanted)), np.where(left > 0, wanted, 0))
        if not len(sentence):
            break
        luck = torch.rand(len(sentence), dtype=torch.float64).numpy()
        ticket = before[offsets[sentence]] + (luck * left[sentence]).astype(np.int64)
        start = np.searchsorted(before, ticket, side="right") - 1
        end = start + 1 + ticket - before[start]
        kept = keep_disjoint(start, end, (-np.arange(len(start)),), len(free))
        starts.append(start[kept])
        ends.append(end[kept])
        free[run_positions(start[kept], (end - start)[kept])] = False
        wanted -= np.bincount(sentence[kept], minlength=len(wanted))
    return np.concatenate(starts), np.concatenate(ends)


def _spans_from(free: np.ndarray, offsets: np.ndarray, widest: int) -> np.ndarray:
    """How many spans of free words begin at each word."""
    stops = np.union1d(np.flatnonzero(~free), offsets[1:])
    words = np.flatnonzero(free)
    room = np.zeros(len(free), dtype=np.int64)
    room[words] = np.minimum(stops[np.searchsorted(stops, words, side="right")] - words, widest)
    return room
