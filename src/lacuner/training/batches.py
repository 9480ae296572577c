"""Batches of sentences of similar length, reshuffled in each epoch."""

import numpy as np

from lacuner.models.inference import BLOCK, budget_batches

SHARD = 512
"""Neighbouring sentences that stay together when a large corpus is shuffled."""
_SPREAD = 0.15


def epoch_batches(costs: np.ndarray, budget: int, seed: int, size: int | None = None) -> list[np.ndarray]:
    """Batches of all sentences with a positive cost, padded size within the budget, in an order given by the seed.

    With `size`, a batch has that many sentences instead, whatever their length.

    Sentences are sorted by length with a little noise: little padding, and different batches in each epoch. A corpus
    of more than `BLOCK` sentences is divided into blocks of random shards, and batches are made and shuffled within a
    block: so a step reads only the part of the corpus that its block covers.
    """
    rng = np.random.default_rng(seed)
    batches: list[np.ndarray] = []
    for block in _draw_blocks(len(costs), rng):
        own = costs if block is None else costs[block]
        noisy = own * rng.uniform(1 - _SPREAD, 1 + _SPREAD, len(own)) + rng.uniform(0, 1, len(own))
        order = np.argsort(noisy, kind="stable")
        order = order[own[order] > 0]
        order = order if block is None else block[order]
        in_block = np.split(order, range(size, len(order), size)) if size else budget_batches(costs, order, budget)
        batches += [in_block[i] for i in rng.permutation(len(in_block))]
    return batches


def _draw_blocks(sentences: int, rng: np.random.Generator) -> list[np.ndarray] | list[None]:
    """The sentences of each block; None for all sentences in order."""
    if sentences <= BLOCK:
        return [None]
    shards = rng.permutation(-(-sentences // SHARD))
    blocks = []
    for start in range(0, len(shards), BLOCK // SHARD):
        first = np.sort(shards[start : start + BLOCK // SHARD]) * SHARD
        block = (first[:, None] + np.arange(SHARD)).ravel()
        blocks.append(block[block < sentences])
    return blocks
