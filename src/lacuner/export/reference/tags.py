"""Spans of a token classifier: the best tag of each word, joined by conlleval's rule, which accepts any sequence."""

from collections.abc import Iterator
from typing import Any

import numpy as np


def decode(scores: np.ndarray, head: dict[str, Any]) -> Iterator[tuple[int, int, int, float]]:
    """First word, end, label and score of each span, from the tag probabilities of a sentence `[words, tags]`."""
    return join_tags(scores.argmax(axis=1).tolist(), scores.max(axis=1), head["tags"])


def join_tags(path: list[int], probs: np.ndarray, tags: list[Any]) -> Iterator[tuple[int, int, int, float]]:
    """Spans of tags; a span's score is the probability of its least probable word."""
    chosen, start = [*(tags[tag] for tag in path), ("O", -1)], 0
    for end in range(1, len(chosen)):
        (before, label), (letter, next_label) = chosen[end - 1 : end + 1]
        if before in "OES" or letter in "OBS" or next_label != label:
            if label >= 0:
                yield start, end, label, float(probs[start:end].min())
            start = end
