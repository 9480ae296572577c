"""Samplers: how many, of what, how often, and against the formulas in NumPy."""

from itertools import permutations

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from lacuner.sampling.span_negatives import (
    negatives_per_sentence,
    sample_by_rank,
    sample_negatives,
    sampling_weights,
    span_entropy,
)


def random_candidates(seed=0):
    torch.manual_seed(seed)
    return torch.rand(5, 6, 3) < torch.tensor([0.0, 0.1, 0.5, 0.9, 1.0]).view(5, 1, 1)


def test_how_many_is_the_ceiling_also_where_the_product_is_whole_but_for_rounding():
    assert negatives_per_sentence(torch.tensor([0, 1, 2, 3, 20, 100]), 0.35).tolist() == [0, 1, 1, 2, 7, 35]
    assert negatives_per_sentence(torch.tensor([10, 30, 70]), 0.1).tolist() == [1, 3, 7]
    assert negatives_per_sentence(torch.arange(0, 100_000, 10), 0.3).tolist() == list(range(0, 30_000, 3))


@pytest.mark.parametrize("weighted", [False, True])
def test_as_many_as_wanted_or_as_there_are_and_only_candidates(weighted):
    for seed in range(20):
        candidates, counts = random_candidates(seed), torch.tensor([3, 3, 0, 4, 100])
        drawn = sample_negatives(candidates, counts, torch.randn(candidates.shape) * 50 if weighted else None)
        assert not (drawn & ~candidates).any()
        assert drawn.sum((1, 2)).tolist() == torch.minimum(candidates.sum((1, 2)), counts).tolist()


def test_the_same_seed_draws_the_same():
    candidates, counts = random_candidates(), torch.full((5,), 2)
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        found.append(sample_negatives(candidates, counts, torch.zeros(candidates.shape)))
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])


def test_each_set_is_as_frequent_as_drawing_one_after_another_would_make_it():
    """Two of four, without replacement, against the exact probabilities of all six pairs."""
    weight = np.array([1.0, 2.0, 3.0, 6.0])
    expected = dict.fromkeys([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], 0.0)
    for first, second in permutations(range(4), 2):
        chance = weight[first] / weight.sum() * weight[second] / (weight.sum() - weight[first])
        expected[min(first, second), max(first, second)] += chance
    times = 40_000
    torch.manual_seed(5)
    logs = torch.tensor(weight).log().float().expand(times, 4)
    drawn = sample_negatives(torch.ones(times, 4, dtype=torch.bool), torch.full((times,), 2), logs)
    pairs = drawn.nonzero()[:, 1].view(times, 2).numpy()
    seen = [int(((pairs[:, 0] == a) & (pairs[:, 1] == b)).sum()) for a, b in expected]
    assert chisquare(seen, np.array(list(expected.values())) * times).pvalue > 0.001
    wrong = np.full(6, times / 6)
    assert chisquare(seen, wrong).pvalue < 1e-6, "the test would see another distribution"


def test_uniform_is_uniform():
    torch.manual_seed(3)
    candidates = torch.tensor([True, False, True, True]).expand(30_000, 4)
    drawn = sample_negatives(candidates, torch.full((30_000,), 1))
    assert chisquare(drawn.sum(0)[[0, 2, 3]].numpy()).pvalue > 0.001


@pytest.mark.parametrize("weighting", ["printed", "product", "margin"])
@pytest.mark.parametrize("margin", ["types", "all"])
def test_weights_equal_the_formula(margin, weighting):
    torch.manual_seed(0)
    logits = torch.randn(2, 3, 2, 4, dtype=torch.float32) * 3
    found = sampling_weights(logits, 8.0, margin, weighting).double().numpy()
    for at in np.ndindex(2, 3, 2):
        z = np.exp(logits[at].numpy().astype(float))
        z /= z.sum()
        v = z[0] - (z.max() if margin == "all" else z[1:].max())
        u = -(z * np.log(z)).sum()
        weight = {"printed": np.exp(u * (1 + v) ** 8), "product": u * (1 + v) ** 8, "margin": (1 + v) ** 8}[weighting]
        np.testing.assert_allclose(found[at], np.log(weight), rtol=1e-3, atol=1e-3)


def test_a_likely_entity_is_drawn_less_often_by_its_margin():
    """The printed formula prefers the uncertain span, the default the one that is no entity."""
    logits = torch.tensor([[0.0, 3.0], [0.5, 0.0], [6.0, 0.0]])  # an entity, an uncertain span, and O
    margin, printed = (sampling_weights(logits, 2.0, weighting=form).tolist() for form in ("margin", "printed"))
    assert margin[0] < margin[1] < margin[2] and printed[1] == max(printed)


def test_certain_spans_have_finite_weights():
    sure = torch.tensor([[1e4, -1e4, 0.0], [-1e4, 1e4, 0.0]]).view(1, 2, 1, 3)
    for margin in ("types", "all"):
        for weighting in ("printed", "product", "margin"):
            assert torch.isfinite(sampling_weights(sure, 8.0, margin, weighting)).all()
    assert (span_entropy(sure) == 0).all()
    drawn = sample_negatives(
        torch.ones(1, 2, 1, dtype=torch.bool), torch.tensor([1]), sampling_weights(sure, 8.0, "types") * 1e3
    )
    assert drawn.sum() == 1


@pytest.mark.parametrize(
    ("rank", "count", "expected"),
    [
        ("top", 2, {5, 6}),
        ("bottom", 2, {0, 1}),
        ("middle", 3, {2, 3, 4}),
        ("middle", 2, {3, 4}),
        ("middle", 9, set(range(7))),
    ],
)
def test_by_rank(rank, count, expected):
    """Entropies lie far from each other at one end: the middle is the middle of the ranks, not of the values."""
    uncertainty = torch.tensor([[0.0, 0.01, 0.02, 0.03, 1.0, 1.1, 1.2, 9.0]])
    candidates = torch.tensor([[True] * 7 + [False]])
    drawn = sample_by_rank(candidates, torch.tensor([count]), uncertainty, rank)
    assert set(drawn.nonzero()[:, 1].tolist()) == expected
    assert not sample_by_rank(candidates & False, torch.tensor([count]), uncertainty, rank).any()


def test_equal_uncertainties_are_ordered_at_random():
    torch.manual_seed(0)
    same, every = torch.zeros(200, 10), torch.ones(200, 10, dtype=torch.bool)
    assert sample_by_rank(every, torch.full((200,), 3), same, "top").any(dim=0).all()
