"""Spans of a CRF: the best tag sequence (Viterbi), and the exact probability of each span."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from lacuner.export.reference.tags import join_tags


def decode(scores: np.ndarray, head: dict[str, Any]) -> Iterator[tuple[int, int, int, float]]:
    """First word, end, label and probability of each span, from the emissions of a sentence `[words, tags]`."""
    emissions = scores.astype(np.float64)
    step, apart, begin, stop = (np.array(head[name]) for name in ("transitions", "apart", "start", "end"))
    size = len(emissions)
    best, pointers = begin + emissions[0], []
    alpha = np.tile(begin + emissions[0], (size, 1))
    entering = alpha.copy()  # sequences in which an entity begins here
    beta = np.tile(stop, (size, 1))
    leaving = beta.copy()  # sequences in which an entity ends here
    for t in range(1, size):
        paths = best[:, None] + step
        pointers.append(paths.argmax(axis=0))
        best = paths.max(axis=0) + emissions[t]
        entering[t] = log_sum(alpha[t - 1][:, None] + apart, 0) + emissions[t]
        alpha[t] = log_sum(alpha[t - 1][:, None] + step, 0) + emissions[t]
    for t in range(size - 2, -1, -1):
        after = emissions[t + 1] + beta[t + 1]
        leaving[t], beta[t] = log_sum(apart + after, 1), log_sum(step + after, 1)
    path = [int((best + stop).argmax())]
    for pointer in reversed(pointers):
        path.append(int(pointer[path[-1]]))
    path.reverse()
    total = log_sum(alpha[-1] + stop, 0)
    for first, end, label, _ in join_tags(path, np.ones(size), head["tags"]):
        inner = sum(emissions[t, path[t]] + step[path[t - 1], path[t]] for t in range(first + 1, end))
        log = entering[first, path[first]] + inner + leaving[end - 1, path[end - 1]] - total
        yield first, end, label, float(min(np.exp(log), 1.0))


def log_sum(values: np.ndarray, axis: int) -> np.ndarray:
    """Logarithm of the sum of exponentials."""
    highest: np.ndarray = values.max(axis=axis)
    result: np.ndarray = highest + np.log(np.exp(values - np.expand_dims(highest, axis)).sum(axis=axis))
    return result
