"""Significance of an F1 difference between two systems on the same sentences.

The paired bootstrap resamples sentences with replacement; approximate randomisation swaps the outputs of the two
systems at random, sentence by sentence. Sentences with equal counts are exchangeable and are drawn together: the
distribution is the same as one by one, and the result comes in milliseconds.

If both systems were trained with several seeds, the bootstrap is hierarchical: it draws seeds, then sentences, so that
its interval is about training again as well. Three seeds say little about their spread. Drawn as they are, they give
intervals that miss the true difference in up to a fifth of all cases, and intervals over sentences alone miss it in up
to two thirds (simulated data). So deviations of seeds are scaled to their unbiased variance, and the interval is
widened as Student's t is wider than the normal distribution, with the degrees of freedom of Satterthwaite (1946).
tests/evaluate/test_significance.py checks the coverage.

Reference: Koehn (2004), "Statistical significance tests for machine translation evaluation"; Berg-Kirkpatrick et al.
(2012), "An empirical investigation of statistical significance in NLP"; Noreen (1989).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

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
    """F1 of a minus F1 of b; of several seeds the mean."""
    low: float
    high: float
    """95 % confidence interval of the difference, from the bootstrap."""
    bootstrap: float
    """Two-sided p-value of the paired bootstrap."""
    randomisation: float
    """Two-sided p-value of approximate randomisation. It is about these trained models, not about training again."""
    seeds: int = 1
    """Number of seeds that the interval is over; 1: over sentences only."""


def sentence_counts(gold: Iterable[Document], predicted: Iterable[Document]) -> np.ndarray:
    """Correct, predicted and gold spans of each gold document, `[documents, 3]`."""
    return np.array(list(exact_counts(gold, predicted)), dtype=np.int64).reshape(-1, 3)


def compare(a: np.ndarray, b: np.ndarray, *, samples: int = SAMPLES, seed: int = 1) -> Comparison:
    """Compare two systems by their `sentence_counts` on the same sentences.

    Args:
        a: counts `[sentences, 3]`, or those of several seeds, `[seeds, sentences, 3]`.
        b: counts of the other system, with the same seeds in the same order.
        samples: number of bootstrap samples.
        seed: of the bootstrap.

    >>> a, b = np.array([[2, 2, 2]] * 50), np.array([[1, 2, 2]] * 50)
    >>> comparison = compare(a, b, samples=100)
    >>> comparison.difference, comparison.randomisation < 0.05
    (0.5, True)
    >>> compare(np.stack([a, a]), np.stack([b, a]), samples=100).low < 0
    True
    """
    if a.shape != b.shape or a.ndim not in (2, 3) or a.shape[-1] != 3 or not a.size:
        raise ValueError("both systems need counts of the same sentences, as arrays [sentences, 3]")
    a, b = a.reshape(-1, *a.shape[-2:]), b.reshape(-1, *b.shape[-2:])
    seeds, sentences, _ = a.shape
    pairs = np.concatenate([a, b], axis=-1).swapaxes(0, 1).reshape(sentences, -1)
    kinds, times = np.unique(pairs, axis=0, return_counts=True)
    by_seed = _differences(kinds, times[None])[0]
    rng = np.random.default_rng(seed)
    resampled, swapped = [], []
    for first in range(0, samples, _SAMPLES_AT_ONCE):
        size = min(_SAMPLES_AT_ONCE, samples - first)
        resampled.append(_differences(kinds, rng.multinomial(sentences, times / sentences, size)).mean(axis=1))
        swaps = rng.binomial(times, 0.5, (size, len(times)))
        swapped.append(_differences(kinds, times - swaps, swaps).mean(axis=1))
    observed, randomised = float(by_seed.mean()), np.concatenate(swapped)
    bootstrap = _with_seeds(np.concatenate(resampled), by_seed, rng)
    low, high = np.quantile(bootstrap, [0.025, 0.975]).tolist()
    limit = abs(observed)
    p_values = _p_value(bootstrap - observed, limit), _p_value(randomised, limit)
    return Comparison(observed, low, high, *p_values, seeds)


def _with_seeds(by_sentences: np.ndarray, by_seed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Add drawn seeds to differences `[samples]` of drawn sentences; `by_seed` are those of all sentences."""
    seeds = len(by_seed)
    if seeds == 1:
        return by_sentences
    drawn = by_seed[rng.integers(0, seeds, (len(by_sentences), seeds))].mean(axis=1) - by_seed.mean()
    samples = by_sentences + drawn * np.sqrt(seeds / (seeds - 1))
    of_seeds, of_sentences = by_seed.var(ddof=1) / seeds, by_sentences.var()
    if not of_seeds:
        return by_sentences
    freedom = (seeds - 1) * ((of_seeds + of_sentences) / of_seeds) ** 2
    wider = _t_quantile(freedom) / NormalDist().inv_cdf(0.975)
    return np.asarray(by_seed.mean() + (samples - by_seed.mean()) * wider)


def _t_quantile(freedom: float) -> float:
    """The 0.975 quantile of Student's t distribution, from its density (SciPy is not among our dependencies).

    >>> round(_t_quantile(2), 3), round(_t_quantile(1e6), 3)
    (4.303, 1.96)
    """
    freedom = min(freedom, 10_000.0)
    steps, step = np.arange(1, 20_001), np.pi / 40_000  # of an angle up to 90 degrees; t = sqrt(freedom) * tan(angle)
    mass = np.cumsum(np.cos((steps - 0.5) * step) ** (freedom - 1))
    return float(np.sqrt(freedom) * np.tan(np.interp(0.95, mass / mass[-1], steps * step)))


def better_share(a: np.ndarray, b: np.ndarray) -> float:
    """The share of bootstrap samples in which system a has a higher F1 than b, from their `sentence_counts`.

    >>> a, b = np.array([[2, 2, 2]] * 50), np.array([[1, 2, 2]] * 50)
    >>> better_share(a, b), better_share(a, a)
    (1.0, 0.0)
    """
    kinds, times = np.unique(np.hstack([a, b]), axis=0, return_counts=True)
    drawn = np.random.default_rng(1).multinomial(len(a), times / len(a), SAMPLES)
    return float((_differences(kinds, drawn) > _TOLERANCE).mean())


def f1_interval(counts: np.ndarray) -> tuple[float, float]:
    """95 % confidence interval of one system's F1, from its `sentence_counts`, by the bootstrap.

    >>> low, high = f1_interval(np.array([[1, 1, 1], [0, 1, 1]] * 50))
    >>> 0.35 < low < 0.5 < high < 0.65
    True
    """
    kinds, times = np.unique(counts, axis=0, return_counts=True)
    drawn = np.random.default_rng(1).multinomial(len(counts), times / len(counts), SAMPLES)
    low, high = np.quantile(_f1(drawn @ kinds), [0.025, 0.975]).tolist()
    return low, high


def _differences(kinds: np.ndarray, times: np.ndarray, swapped: np.ndarray | None = None) -> np.ndarray:
    """F1 of a minus F1 of b, `[samples, seeds]`.

    `kinds`, `[kinds, 6 * seeds]`, are the distinct rows of counts, those of a and b for each seed; `times` and
    `swapped`, `[samples, kinds]`, say how often each occurs in a sample as it is, and with the two systems swapped.
    """
    sums = (times @ kinds).reshape(len(times), -1, 2, 3)
    if swapped is not None:
        sums = sums + (swapped @ kinds).reshape(sums.shape)[:, :, ::-1]
    f1 = _f1(sums)
    return np.asarray(f1[..., 0] - f1[..., 1])


def _f1(sums: np.ndarray) -> np.ndarray:
    return np.asarray(2 * sums[..., 0] / np.maximum(sums[..., 1] + sums[..., 2], 1))


def _p_value(differences: np.ndarray, limit: float) -> float:
    """Share of samples at least as extreme as the limit; add-one smoothing keeps it above 0."""
    extreme = np.count_nonzero(np.abs(differences) >= limit - _TOLERANCE)
    return float((extreme + 1) / (len(differences) + 1))
