"""Significance against cases small enough to count through."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from lacuner.data import Document, Span
from lacuner.evaluate import score
from lacuner.evaluate.significance import compare, sentence_counts

A = np.array([[2, 2, 2], [1, 2, 1], [0, 1, 3], [1, 1, 1]])
B = np.array([[1, 2, 2], [1, 1, 1], [0, 0, 3], [0, 1, 1]])


def f1(counts: np.ndarray) -> float:
    correct, predicted, gold = counts.sum(0)
    return float(2 * correct / (predicted + gold)) if correct else 0.0


def test_randomisation_agrees_with_all_swaps() -> None:
    real = f1(A) - f1(B)
    all_swaps = []
    for swaps in product([False, True], repeat=len(A)):
        keep = ~np.array(swaps)[:, None]
        all_swaps.append(f1(np.where(keep, A, B)) - f1(np.where(keep, B, A)))
    exact = np.mean(np.abs(all_swaps) >= abs(real) - 1e-12)
    assert compare(A, B).randomisation == pytest.approx(exact, abs=0.02)


def test_bootstrap_agrees_with_all_draws() -> None:
    real = f1(A) - f1(B)
    draws = [f1(A[list(drawn)]) - f1(B[list(drawn)]) for drawn in product(range(len(A)), repeat=len(A))]
    found = compare(A, B)
    assert found.difference == pytest.approx(real)
    assert found.bootstrap == pytest.approx(np.mean(np.abs(np.array(draws) - real) >= abs(real) - 1e-12), abs=0.02)
    assert [found.low, found.high] == pytest.approx(np.quantile(draws, [0.025, 0.975]), abs=0.03)


def test_a_system_does_not_differ_from_itself() -> None:
    found = compare(A, A)
    assert (found.difference, found.bootstrap, found.randomisation) == (0.0, 1.0, 1.0)


def test_a_clear_difference_is_significant_and_signed() -> None:
    good, bad = np.tile([[3, 3, 3]], (200, 1)), np.tile([[1, 3, 3], [2, 3, 3]], (100, 1))
    found = compare(good, bad)
    assert found.difference == pytest.approx(0.5) == -compare(bad, good).difference
    assert found.low > 0.4 and found.bootstrap < 0.001 and found.randomisation < 0.001


def test_chance_alone_is_rarely_significant() -> None:
    """Of systems that differ by chance alone about one in twenty is below 0.05."""
    rng = np.random.default_rng(7)
    below = []
    for seed in range(200):
        gold = rng.integers(0, 4, 120)
        a, b = (np.stack([found := rng.binomial(gold, 0.6), found + rng.binomial(2, 0.2, 120), gold], 1) for _ in "ab")
        found_ = compare(a, b, samples=400, seed=seed)
        below.append((found_.bootstrap < 0.05, found_.randomisation < 0.05))
    assert all(0.01 <= share <= 0.10 for share in np.mean(below, axis=0))


def simulate(rng: np.random.Generator, seeds: int, sentences: int, spread: float) -> tuple[np.ndarray, np.ndarray]:
    """Counts of two systems, one better than the other; `spread` is the standard deviation of a seed's quality."""
    gold, difficulty = rng.integers(0, 4, sentences), rng.normal(0, 1, sentences)
    systems = []
    for quality in (0.9, 0.6):
        logits = quality + rng.normal(0, spread, (seeds, 1)) + difficulty + rng.normal(0, 0.5, (seeds, sentences))
        right = rng.binomial(gold, 1 / (1 + np.exp(-logits)))
        systems.append(np.stack([right, *np.broadcast_arrays(gold, gold, right)[:2]], axis=-1))
    return systems[0], systems[1]


@pytest.mark.parametrize("spread", [0.0, 0.2])
def test_intervals_over_seeds_and_sentences_have_the_stated_coverage(spread: float) -> None:
    """The true difference is in 95 % of the intervals; over sentences alone it is in far fewer if seeds differ."""
    rng, trials = np.random.default_rng(3), 150
    a, b = simulate(rng, 300, 1000, spread)
    true = float(np.mean([f1(a[i]) - f1(b[i]) for i in range(len(a))]))
    covered, covered_by_sentences = 0, 0
    for trial in range(trials):
        a, b = simulate(rng, 3, 200, spread)
        both, sentences = compare(a, b, samples=300, seed=trial), compare(a.sum(0), b.sum(0), samples=300)
        assert both.seeds == 3 and sentences.seeds == 1
        covered += both.low <= true <= both.high
        covered_by_sentences += sentences.low <= true <= sentences.high
    assert covered / trials >= 0.92, (covered, covered_by_sentences)
    assert (covered_by_sentences / trials < 0.8) == (spread > 0)


def test_seeds_that_agree_add_nothing_to_the_interval() -> None:
    rng = np.random.default_rng(5)
    a, b = simulate(rng, 1, 200, 0.0)
    one, three = (compare(np.repeat(a, n, 0), np.repeat(b, n, 0)) for n in (1, 3))
    assert (one.low, one.high, one.difference) == pytest.approx((three.low, three.high, three.difference))


def test_seeds_that_disagree_widen_the_interval() -> None:
    good, bad = np.tile([[3, 3, 3]], (100, 1)), np.tile([[2, 3, 3]], (100, 1))
    found = compare(np.stack([good, good, bad]), np.stack([bad, bad, good]))
    assert found.difference == pytest.approx(1 / 9) and found.low < 0 < found.high and found.bootstrap > 0.3


def test_it_is_seeded() -> None:
    rng = np.random.default_rng(1)
    gold = rng.integers(0, 5, 20_000)
    a, b = (np.stack([rng.binomial(gold, rate), gold, gold], 1) for rate in (0.7, 0.69))
    assert compare(a, b) == compare(a, b)
    assert compare(a, b) != compare(a, b, seed=2)


def test_counts_add_up_to_the_score() -> None:
    gold = [Document("1", "Ada met Bo", spans=(Span(0, 3, "P"), Span(8, 10, "P")), complete=True), Document("2", "x")]
    found = [Document("1", "Ada met Bo", spans=(Span(0, 3, "P", 0.9), Span(4, 7, "P"))), Document("2", "x")]
    counts = sentence_counts(gold, found)
    assert counts.tolist() == [[1, 2, 2], [0, 0, 0]]
    exact = score(gold, found).exact
    assert counts.sum(0).tolist() == [exact.correct, exact.predicted, exact.gold]


@pytest.mark.parametrize("bad", [A[:3], A[:, :2], A[:0]])
def test_counts_of_other_sentences_are_refused(bad: np.ndarray) -> None:
    with pytest.raises(ValueError, match="same sentences"):
        compare(bad, A if len(bad) else bad)
