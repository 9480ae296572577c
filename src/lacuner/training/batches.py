"""Batches of sentences of similar length, shuffled anew in each epoch."""

import numpy as np

from lacuner.models.inference import budget_batches

_SPREAD = 0.15


def epoch_batches(costs: np.ndarray, budget: int, seed: int) -> list[np.ndarray]:
    """Batches of all sentences with a positive cost, padded size within the budget, in an order given by the seed.

    Sentences are sorted by length with a little noise: little padding, and different batches in each epoch.
    """
    rng = np.random.default_rng(seed)
    noisy = costs * rng.uniform(1 - _SPREAD, 1 + _SPREAD, len(costs)) + rng.uniform(0, 1, len(costs))
    order = np.argsort(noisy, kind="stable")
    batches = budget_batches(costs, order[costs[order] > 0], budget)
    return [batches[i] for i in rng.permutation(len(batches))]
