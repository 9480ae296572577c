"""Spans of a token classifier: the best tag of each word, joined by conlleval's rule, which accepts any sequence."""

from collections.abc import Iterator
from typing import Any

import numpy as np


def decode(scores: np.ndarray, head: dict[str, Any]) -> Iterator[tuple[int, int, int, float]]:
    """First word, end, label and score of each span, from the tag probabilities of a sentence `[words, tags]`."""
    return join_tags(scores.argmax(axis=1).tolist(), scores.max(axis=1), head)


def join_tags(tags: list[int], probs: np.ndarray, head: dict[str, Any]) -> Iterator[tuple[int, int, int, float]]:
    """Spans of tags; a span's score is the probability of its least probable word."""
    letters, start, label, closed = head["letters"], 0, -1, False
    for i, tag in enumerate([*tags, 0]):
        kind, letter = divmod(tag - 1, len(letters)) if tag else (-1, 0)
        begins = tag > 0 and (letters[letter] in "BS" or closed or kind != label)
        if label >= 0 and (begins or not tag):
            if label < head["labels"]:
                yield start, i, label, float(probs[start:i].min())
            label = -1
        if begins:
            start, label = i, kind
        closed = tag > 0 and letters[letter] in "ES"
