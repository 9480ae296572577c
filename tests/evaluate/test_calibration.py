"""Calibration by histogram binning, and sentence confidence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lacuner.data import Document, Span
from lacuner.evaluate.calibration import calibrate, calibrate_spans, exact_match, label_confidence


def test_accuracy_of_each_bin() -> None:
    rng = np.random.default_rng(1)
    scores = rng.random(1000)
    correct = rng.random(1000) < scores
    calibration = calibrate(scores, correct, 20)
    assert len(calibration.accuracy) == 20 and calibration.sizes.tolist() == [50] * 20
    order = np.argsort(scores)
    for number in range(20):
        members = order[50 * number : 50 * (number + 1)]
        assert calibration.accuracy[number] == pytest.approx(correct[members].mean())
        assert (calibration(scores[members]) == calibration.accuracy[number]).all()
    assert np.abs(calibration(scores) - scores).mean() < 0.1
    assert calibration(np.array([-5.0, 5.0])).tolist() == [calibration.accuracy[0], calibration.accuracy[-1]]


@pytest.mark.parametrize(("sentences", "bins"), [(1, 1), (9, 1), (40, 4), (500, 50), (5000, 50)])
def test_few_sentences_have_few_bins(sentences: int, bins: int) -> None:
    calibration = calibrate(np.linspace(0, 1, sentences), np.ones(sentences, dtype=bool))
    assert (
        len(calibration.accuracy) == bins and calibration.sizes.sum() == sentences and (calibration.accuracy == 1).all()
    )


def test_equal_scores_share_a_bin() -> None:
    scores = np.array([0.5] * 30 + [1.0] * 70)
    calibration = calibrate(scores, np.arange(100) < 15, 10)
    assert calibration.sizes.tolist() == [30, 70] and calibration.accuracy.tolist() == [0.5, 0.0]
    same = calibrate(np.ones(100), np.arange(100) < 25, 10)
    assert same.accuracy.tolist() == [0.25]


def test_without_held_out_gold_scores_stay_as_they_are() -> None:
    empty = calibrate(np.zeros(0), np.zeros(0, dtype=bool))
    assert empty(np.array([0.2, 0.9])).tolist() == [0.2, 0.9]


def test_confidence_equals_the_formula() -> None:
    m, p = np.array([0.0, 0.5, 1.0, 0.9]), np.array([0.3, 0.4, 0.0, 0.9])
    expected = [min(0.95, a + (1 - a) * b) for a, b in zip(m, p, strict=True)]
    assert label_confidence(m, p).tolist() == pytest.approx(expected) and max(expected) == 0.95


def test_exact_match_means_every_span_and_nothing_else() -> None:
    doc = Document("1", "a b c", spans=(Span(0, 1, "X", 0.5), Span(2, 3, "Y")))
    others = [replace(doc, spans=spans) for spans in (doc.spans[::-1], doc.spans[:1], (*doc.spans, Span(4, 5, "X")))]
    assert exact_match([doc] * 3, others).tolist() == [True, False, False]


def calibration_error(probs: np.ndarray, correct: np.ndarray, bins: int = 15) -> float:
    """Expected calibration error: mean distance of probability and accuracy over bins of equal width."""
    own = np.minimum((probs * bins).astype(int), bins - 1)
    gaps = [(own == i).mean() * abs(probs[own == i].mean() - correct[own == i].mean()) for i in np.unique(own)]
    return float(sum(gaps))


@pytest.mark.parametrize("seed", range(5))
def test_calibration_keeps_a_perfectly_calibrated_generator_calibrated(seed: int) -> None:
    """T8: on other data of a generator whose scores are its probabilities, the expected calibration error is < 0.01."""
    rng = np.random.default_rng(seed)
    fitted, held_out = rng.random(100_000), rng.random(100_000)
    assert calibration_error(held_out, rng.random(100_000) < held_out) < 0.01, "the generator itself"
    correct = rng.random(100_000) < fitted
    for calibration in (calibrate(fitted, correct), calibrate_spans(fitted, correct)):
        assert calibration is not None
        assert calibration_error(calibration(held_out), rng.random(100_000) < held_out) < 0.01
    distorted = held_out**3  # not calibrated: what is measured is not always small
    assert calibration_error(distorted, rng.random(100_000) < held_out) > 0.1
    repaired = calibrate_spans(fitted**3, correct)
    assert repaired is not None
    assert calibration_error(repaired(distorted), rng.random(100_000) < held_out) < 0.02
