"""In which order sentences are learned from: batches of like length, drawn anew each epoch."""

from __future__ import annotations

import numpy as np

from lacuner.models.inference import budget_batches

_SPREAD = 0.15


def epoch_batches(costs: np.ndarray, budget: int, seed: int) -> list[np.ndarray]:
    """All sentences that have words, in batches that fit the budget when padded, in an order decided by the seed.

    Sentences are sorted by length with a little noise, so that there is little padding and yet other company each time.
    """
    rng = np.random.default_rng(seed)
    noisy = costs * rng.uniform(1 - _SPREAD, 1 + _SPREAD, len(costs)) + rng.uniform(0, 1, len(costs))
    order = np.argsort(noisy, kind="stable")
    batches = budget_batches(costs, order[costs[order] > 0], budget)
    return [batches[i] for i in rng.permutation(len(batches))]
