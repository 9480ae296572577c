"""Is one system better than another, or was it luck? Two tests over the same sentences.

Both ask what another test set of the same kind would have said. The paired bootstrap draws sentences anew, with
replacement; approximate randomisation swaps what the two systems found, sentence by sentence. Sentences with the same
counts are exchangeable, so they are drawn together: the result is distributed as if one by one, and comes in
milliseconds.

Reference: Koehn (2004), "Statistical significance tests for machine translation evaluation"; Berg-Kirkpatrick et al.
(2012), "An empirical investigation of statistical significance in NLP"; Noreen (1989).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lacuner.data import Document
from lacuner.evaluate.align import align

SAMPLES = 10_000
_AT_ONCE = 2_000
_CLOSE = 1e-12


@dataclass(frozen=True)
class Comparison:
    """System a against system b."""

    difference: float
    """F1 of a less F1 of b."""
    low: float
    high: float
    """Where 95 % of the bootstrap's differences lie."""
    bootstrap: float
    """How often (two-sided) the bootstrap strays from the difference by as much as the difference itself."""
    randomisation: float
    """How often (two-sided) systems that differ by chance alone would differ as much."""
    sentences: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def sentence_counts(gold: Iterable[Document], predicted: Iterable[Document]) -> np.ndarray:
    """For each gold document: how many spans are correct, predicted and there; `[documents, 3]`."""
    rows = []
    for mine, yours in align(gold, predicted):
        real, found = ({span[:3] for span in doc.spans} for doc in (mine, yours))
        rows.append((len(real & found), len(found), len(real)))
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def compare(a: np.ndarray, b: np.ndarray, *, samples: int = SAMPLES, seed: int = 1) -> Comparison:
    """Compare two systems by their `sentence_counts` on the same sentences."""
    if a.shape != b.shape or a.ndim != 2 or a.shape[1] != 3 or not len(a):
        raise ValueError("both systems need counts of the same sentences, three a sentence")
    kinds, times = np.unique(np.hstack([a, b]), axis=0, return_counts=True)
    real = float(_differences(kinds, times[None])[0])
    rng = np.random.default_rng(seed)
    drawn, swapped = [], []
    for first in range(0, samples, _AT_ONCE):
        size = min(_AT_ONCE, samples - first)
        drawn.append(_differences(kinds, rng.multinomial(len(a), times / len(a), size)))
        swaps = rng.binomial(times, 0.5, (size, len(times)))
        swapped.append(_differences(kinds, times - swaps, swaps))
    bootstrap, chance = np.concatenate(drawn), np.concatenate(swapped)
    low, high = np.quantile(bootstrap, [0.025, 0.975]).tolist()
    return Comparison(real, low, high, _share(bootstrap - real, abs(real)), _share(chance, abs(real)), sentences=len(a))


def _differences(kinds: np.ndarray, times: np.ndarray, swapped: np.ndarray | None = None) -> np.ndarray:
    """F1 of a less F1 of b for each row of `times`: how often each kind of sentence is there (and there swapped)."""
    sums = times @ kinds
    if swapped is not None:
        sums = sums + swapped @ np.hstack([kinds[:, 3:], kinds[:, :3]])
    return np.asarray(_f1(sums[:, :3]) - _f1(sums[:, 3:]))


def _f1(sums: np.ndarray) -> np.ndarray:
    return np.asarray(2 * sums[:, 0] / np.maximum(sums[:, 1] + sums[:, 2], 1))


def _share(values: np.ndarray, limit: float) -> float:
    """How many are as large as the limit; one more than were seen, so that luck is never said to be impossible."""
    return float((np.count_nonzero(np.abs(values) >= limit - _CLOSE) + 1) / (len(values) + 1))
