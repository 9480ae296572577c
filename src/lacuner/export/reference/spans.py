"""Spans of a span classifier: the most probable first, none that overlaps one before it."""

from collections.abc import Iterator
from typing import Any

import numpy as np


def decode(scores: np.ndarray, head: dict[str, Any]) -> Iterator[tuple[int, int, int, float]]:
    """First word, end, label and probability of each span, from probabilities `[words, widths, classes]`."""
    words, widths, _ = scores.shape
    best = scores[..., 1:].max(axis=-1)
    enough = best > scores[..., 0] if head["threshold"] is None else best >= head["threshold"]
    starts, lengths = np.nonzero(enough & (np.arange(words)[:, None] + np.arange(widths) < words))
    values = best[starts, lengths]
    taken = np.zeros(words, dtype=bool)
    for i in np.lexsort((starts, -lengths, -values)):  # ties: the wider span, then the leftmost
        start, end = int(starts[i]), int(starts[i] + lengths[i]) + 1
        if not taken[start:end].any():
            taken[start:end] = True
            yield start, end, int(scores[start, lengths[i], 1:].argmax()), float(values[i])
