"""Batches of a large corpus are drawn block by block; those of a small one from all sentences."""

from __future__ import annotations

import numpy as np
import pytest

from lacuner.training import batches
from lacuner.training.batches import epoch_batches

COSTS = np.random.default_rng(0).integers(0, 30, 1000)


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BLOCK", 64)
    monkeypatch.setattr(batches, "SHARD", 8)


@pytest.mark.usefixtures("blocks")
def test_every_sentence_is_in_one_batch() -> None:
    drawn = epoch_batches(COSTS, 100, seed=1)
    assert sorted(np.concatenate(drawn)) == np.flatnonzero(COSTS).tolist()
    assert all(len(batch) * COSTS[batch].max() <= 100 or len(batch) == 1 for batch in drawn)


@pytest.mark.usefixtures("blocks")
def test_neighbouring_batches_come_from_few_shards() -> None:
    drawn = epoch_batches(COSTS, 100, seed=1)
    shards_of_block: list[set[int]] = [set()]
    for batch in drawn:
        shards = {int(sentence) // 8 for sentence in batch}
        if len(shards_of_block[-1] | shards) > 8:
            shards_of_block.append(set())
        shards_of_block[-1] |= shards
    assert len(shards_of_block) == 16, "1000 sentences are 125 shards, 8 in a block"
    assert sum(map(len, shards_of_block)) == 125, "no shard is in two blocks"
    first = sorted(shards_of_block[0])
    assert first != list(range(first[0], first[0] + 8)), "a block has shards from everywhere"


@pytest.mark.usefixtures("blocks")
def test_the_order_follows_from_the_seed() -> None:
    one, again, other = (np.concatenate(epoch_batches(COSTS, 100, seed)) for seed in (1, 1, 2))
    assert np.array_equal(one, again) and not np.array_equal(one, other)


def test_a_corpus_of_one_block_is_drawn_from_all_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = epoch_batches(COSTS, 100, seed=1)
    monkeypatch.setattr(batches, "BLOCK", 1000)
    assert all(map(np.array_equal, epoch_batches(COSTS, 100, seed=1), expected))
    assert len({int(sentence) // 8 for sentence in np.concatenate(expected[:10])}) > 30


def test_batches_of_a_fixed_number_of_sentences() -> None:
    drawn = epoch_batches(COSTS, 100, seed=1, size=32)
    sizes = sorted(map(len, drawn))
    assert sizes[0] == np.count_nonzero(COSTS) % 32 and set(sizes[1:]) == {32}
    assert sorted(np.concatenate(drawn)) == np.flatnonzero(COSTS).tolist()
    assert not all(map(np.array_equal, drawn, epoch_batches(COSTS, 100, seed=2, size=32)))
