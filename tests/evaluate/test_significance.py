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
