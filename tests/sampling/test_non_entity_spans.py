"""Drawing non-entities: what may be drawn, how many, and how likely each is."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch

from lacuner.sampling.non_entity_spans import sample_non_entity_spans


def corpus(seed, sentences=40):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 15, sentences)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return rng.random(offsets[-1]) < 0.7, offsets, lengths


def candidates(free, offsets, widest):
    """All spans of free words, the slow way."""
    return [
        (i, j)
        for a, b in pairwise(offsets)
        for i in range(a, b)
        for j in range(i + 1, min(b, i + widest) + 1)
        if free[i:j].all()
    ]


@pytest.mark.parametrize("widest", [1, 3, 20])
@pytest.mark.parametrize("wanted", [0, 1, 2, 50])
def test_what_is_drawn(widest, wanted):
    torch.manual_seed(0)
    for seed in range(5):
        free, offsets, lengths = corpus(seed)
        before = free.copy()
        start, end = sample_non_entity_spans(free, offsets, np.full(len(lengths), wanted), widest)
        assert (free == before).all()
        spans = set(zip(start.tolist(), end.tolist(), strict=True))
        assert len(spans) == len(start) and spans <= set(candidates(free, offsets, widest))
        taken = Counter(word for a, b in spans for word in range(a, b))
        assert max(taken.values(), default=0) <= 1, "no two overlap"
        left = free.copy()
        left[list(taken)] = False
        for sentence in range(len(lengths)):
            a, b = offsets[sentence : sentence + 2]
            count = sum(a <= i < b for i, _ in spans)
            assert count <= wanted
            assert count == wanted or not left[a:b].any(), "as many as wanted, or no room"


def test_candidates_are_equally_likely():
    free, offsets = np.array([True, True, True, False, True, True, True]), np.array([0, 5, 7])
    every = candidates(free, offsets, 2)
    seen: Counter[tuple[int, int]] = Counter()
    torch.manual_seed(0)
    for _ in range(6000):
        start, end = sample_non_entity_spans(free, offsets, np.array([1, 1]), 2)
        seen.update(zip(start.tolist(), end.tolist(), strict=True))
    assert set(seen) == set(every)
    for (a, b), n in [((0, 5), 6), ((5, 7), 3)]:
        mine = [seen[span] for span in every if a <= span[0] < b]
        assert len(mine) == n
        assert all(abs(count / 6000 - 1 / n) < 0.02 for count in mine)


def naive(free, offsets, wanted, widest, rng):
    """One span after another, skipping those that overlap."""
    spans = candidates(free, offsets, widest)
    accepted: list[tuple[int, int]] = []
    for k in rng.permutation(len(spans)):
        a, b = spans[k]
        if len(accepted) < wanted and all(b <= c or d <= a for c, d in accepted):
            accepted.append((a, b))
    return frozenset(accepted)


def test_pairs_are_as_likely_as_drawn_one_after_another():
    free, offsets, rng = np.array([True, True, True, True]), np.array([0, 4]), np.random.default_rng(0)
    torch.manual_seed(0)
    ours: Counter[frozenset[tuple[int, int]]] = Counter()
    slow: Counter[frozenset[tuple[int, int]]] = Counter()
    for _ in range(6000):
        start, end = sample_non_entity_spans(free, offsets, np.array([2]), 3)
        ours[frozenset(zip(start.tolist(), end.tolist(), strict=True))] += 1
        slow[naive(free, offsets, 2, 3, rng)] += 1
    assert set(ours) == set(slow) and len(ours) > 5
    assert all(abs(ours[each] - slow[each]) / 6000 < 0.025 for each in ours)


def test_the_same_seed_draws_the_same():
    free, offsets, lengths = corpus(1)
    drawn = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        drawn.append(sample_non_entity_spans(free, offsets, lengths // 4, 5)[0].tolist())
    assert drawn[0] == drawn[1] != drawn[2]


def test_nothing_to_draw_from():
    none = np.zeros(0, dtype=bool)
    start, end = sample_non_entity_spans(none, np.array([0]), np.zeros(0, dtype=np.int64), 3)
    assert len(start) == len(end) == 0
    assert len(sample_non_entity_spans(np.array([False]), np.array([0, 1]), np.array([3]), 3)[0]) == 0
