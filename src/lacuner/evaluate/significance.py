"""Significance of an F1 difference between two systems on the same sentences.

The paired bootstrap resamples sentences with replacement; approximate randomisation swaps the outputs of the two
systems at random, sentence by sentence. Sentences with equal counts are exchangeable and are drawn together: the
distribution is the same as one by one, and the result comes in milliseconds.

Reference: Koehn (2004), "Statistical significance tests for machine translation evaluation"; Berg-Kirkpatrick et al.
(2012), "An empirical investigation of statistical significance in NLP"; Noreen (1989).
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from lacuner.data import Document
from lacuner.evaluate.scores import exact_counts

SAMPLES = 10_000
_SAMPLES_AT_ONCE = 2_000
_TOLERANCE = 1e-12


@dataclass(frozen=True)
class Comparison:
    """System a compared with system b."""

    difference: float
    """F1 of a minus F1 of b."""
    low: float
    high: float
    """95 % confidence interval of the difference, from the bootstrap."""
    bootstrap: float
    """Two-sided p-value of the paired bootstrap."""
    randomisation: float
    """Two-sided p-value of approximate randomisation."""


def sentence_counts(gold: Iterable[Document], predicted: Iterable[Document]) -> np.ndarray:
    """Correct, predicted and gold spans of each gold document, `[documents, 3]`."""
    return np.array(list(exact_counts(gold, predicted)), dtype=np.int64).reshape(-1, 3)


def compare(a: np.ndarray, b: np.ndarray, *, samples: int = SAMPLES, seed: int = 1) -> Comparison:
    """Compare two systems by their `sentence_counts` on the same sentences.

    >>> a, b = np.array([[2, 2, 2]] * 50), np.array([[1, 2, 2]] * 50)
    >>> comparison = compare(a, b, samples=100)
    >>> comparison.difference, comparison.randomisation < 0.05
    (0.5, True)
    """
    if a.shape != b.shape or a.ndim != 2 or a.shape[1] != 3 or not len(a):
        raise ValueError("both systems need counts of the same sentences, as arrays [sentences, 3]")
    kinds, times = np.unique(np.hstack([a, b]), axis=0, return_counts=True)
    observed = float(_differences(kinds, times[None])[0])
    rng = np.random.default_rng(seed)
    resampled, swapped = [], []
    for first in range(0, samples, _SAMPLES_AT_ONCE):
        size = min(_SAMPLES_AT_ONCE, samples - first)
        resampled.append(_differences(kinds, rng.multinomial(len(a), times / len(a), size)))
        swaps = rng.binomial(times, 0.5, (size, len(times)))
        swapped.append(_differences(kinds, times - swaps, swaps))
    bootstrap, randomised = np.concatenate(resampled), np.concatenate(swapped)
    low, high = np.quantile(bootstrap, [0.025, 0.975]).tolist()
    limit = abs(observed)
    return Comparison(observed, low, high, _p_value(bootstrap - observed, limit), _p_value(randomised, limit))


def better_share(a: np.ndarray, b: np.ndarray, *, samples: int = SAMPLES, seed: int = 1) -> float:
    """The share of bootstrap samples in which system a has a higher F1 than b, from their `sentence_counts`.

    >>> a, b = np.array([[2, 2, 2]] * 50), np.array([[1, 2, 2]] * 50)
    >>> better_share(a, b, samples=100), better_share(a, a, samples=100)
    (1.0, 0.0)
    """
    kinds, times = np.unique(np.hstack([a, b]), axis=0, return_counts=True)
    drawn = np.random.default_rng(seed).multinomial(len(a), times / len(a), samples)
    return float((_differences(kinds, drawn) > _TOLERANCE).mean())


def f1_interval(counts: np.ndarray, *, samples: int = SAMPLES, seed: int = 1) -> tuple[float, float]:
    """95 % confidence interval of one system's F1, from its `sentence_counts`, by the bootstrap.

    >>> low, high = f1_interval(np.array([[1, 1, 1], [0, 1, 1]] * 50), samples=500)
    >>> 0.35 < low < 0.5 < high < 0.65
    True
    """
    kinds, times = np.unique(counts, axis=0, return_counts=True)
    drawn = np.random.default_rng(seed).multinomial(len(counts), times / len(counts), samples)
    low, high = np.quantile(_f1(drawn @ kinds), [0.025, 0.975]).tolist()
    return low, high


def _differences(kinds: np.ndarray, times: np.ndarray, swapped: np.ndarray | None = None) -> np.ndarray:
    """F1 of a minus F1 of b, `[samples]`.

    `kinds`, `[kinds, 6]`, are the distinct pairs of counts; `times` and `swapped`, `[samples, kinds]`, say how often
    each occurs in a sample as it is, and with the two systems swapped.
    """
    sums = times @ kinds
    if swapped is not None:
        sums = sums + swapped @ np.hstack([kinds[:, 3:], kinds[:, :3]])
    return np.asarray(_f1(sums[:, :3]) - _f1(sums[:, 3:]))


def _f1(sums: np.ndarray) -> np.ndarray:
    return np.asarray(2 * sums[:, 0] / np.maximum(sums[:, 1] + sums[:, 2], 1))


def _p_value(differences: np.ndarray, limit: float) -> float:
    """Share of samples at least as extreme as the limit; add-one smoothing keeps it above 0."""
    extreme = np.count_nonzero(np.abs(differences) >= limit - _TOLERANCE)
    return float((extreme + 1) / (len(differences) + 1))
