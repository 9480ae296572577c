"""Hidden names: what is hidden, what is counted, and the threshold that follows from it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lacuner.data import Document, Span
from lacuner.errors import LacunerError
from lacuner.evaluate.threshold import THRESHOLDS
from lacuner.techniques.hidden_entries import (
    FOLDS,
    MAX_LENGTH,
    HiddenCounts,
    choose_operating_point,
    count_hidden,
    entry_fold,
    estimate_length_odds,
    hide_entries,
    read_operating_point,
    write_operating_point,
)
from tests.demo_corpus import demo_corpus

DOCS = [replace(doc, complete=False) for doc in demo_corpus().train[:200]]


def test_each_name_is_hidden_in_one_fold_with_all_its_mentions() -> None:
    names = {doc.text[s.start : s.end] for doc in DOCS for s in doc.spans}
    hidden = []
    for fold in range(FOLDS):
        left = {doc.text[s.start : s.end] for doc in hide_entries(DOCS, fold) for s in doc.spans}
        hidden.append(names - left)
        assert 0.1 < len(hidden[-1]) / len(names) < 0.3
    assert set().union(*hidden) == names and sum(map(len, hidden)) == len(names)


def test_predictions_are_counted_by_what_they_overlap() -> None:
    text = "Mary Teel saw Halden and Vorn and Moss"
    fold = entry_fold("Halden")
    weak = Document("1", text, spans=(Span(0, 9, "PER"), Span(14, 20, "LOC")))
    assert entry_fold("Mary Teel") != fold
    predicted = [
        Span(0, 4, "PER", 0.9),  # overlaps a label that was not hidden: it says nothing
        Span(14, 20, "LOC", 0.5),  # the hidden name
        Span(25, 29, "LOC", 0.5),  # new
        Span(34, 38, "LOC", 0.01),  # new, but improbable
    ]
    counts = count_hidden([weak], [replace(weak, spans=tuple(predicted))], fold)
    assert (counts.hidden, counts.labeled) == (1, 2)
    at = {name: int(np.searchsorted(THRESHOLDS, value)) for name, value in (("low", 0.005), ("high", 0.4))}
    assert counts.correct[at["high"]] == 1 and not counts.inexact.any()
    assert (counts.new[at["low"]], counts.new[at["high"]]) == (2, 1)
    inexact = count_hidden([weak], [replace(weak, spans=(Span(14, 29, "LOC", 0.9),))], fold)
    assert inexact.inexact[at["high"]] == 1 and not inexact.correct.any() and not inexact.new.any()
    assert (counts + inexact).hidden == 2


def test_lengths_are_counted_among_the_probable_predictions() -> None:
    text = "Old Halden saw Vorn and New Moss and Teel"
    weak = Document("1", text, spans=(Span(0, 10, "LOC"),))
    predicted = [Span(0, 10, "LOC", 0.9), Span(15, 19, "LOC", 0.5), Span(24, 32, "LOC", 0.6), Span(37, 41, "LOC", 0.4)]
    fold = entry_fold("Old Halden")
    counts = count_hidden([weak], [replace(weak, spans=tuple(predicted))], fold)
    assert counts.correct_by_length[:3].tolist() == [0, 1, 0] and counts.new_by_length[:3].tolist() == [1, 1, 0]
    both = counts + count_hidden([weak], [replace(weak, spans=(Span(0, 3, "LOC", 0.9),))], fold)
    assert both.correct_by_length.tolist() == counts.correct_by_length.tolist(), "of the wrong length"


def test_a_length_that_hidden_names_rarely_have_is_rarely_right() -> None:
    """On ec, predictions of two characters, and of five and more, were right half as often as those of three."""
    lengths = np.zeros((2, MAX_LENGTH), dtype=int)
    lengths[0, 1:5], lengths[1, 1:5] = [40, 30, 3, 0], [500, 230, 80, 60]
    counts = replace(simulated(1000, 0.4), correct_by_length=lengths[0], new_by_length=lengths[1])
    odds = estimate_length_odds(counts)
    assert odds[2] > 1.2 and odds[1] < 1 and odds[3] < 0.85 and odds[4] < 0.75
    assert odds[0] == 1 and set(odds[5:]) == {1}, "nothing is known about them"
    point = choose_operating_point(counts)
    assert point is not None and point.length_odds == tuple(odds)
    assert estimate_length_odds(simulated(1000, 0.4)).tolist() == [1] * MAX_LENGTH


def test_few_mentions_say_little_about_lengths() -> None:
    lengths = np.zeros((2, MAX_LENGTH), dtype=int)
    lengths[:, :2] = [[2, 0], [5, 5]]
    odds = estimate_length_odds(replace(simulated(9, 0.4), correct_by_length=lengths[0], new_by_length=lengths[1]))
    assert 1 < odds[0] < 1.1 and 0.9 < odds[1] < 1


def simulated(missing: int, found: float) -> HiddenCounts:
    """A model that finds this share of the entities at 0.5, and there has as many mistakes as misses."""
    recall = np.where(THRESHOLDS <= 0.5, found, found / 2)
    wrong = np.where(THRESHOLDS <= 0.5, missing * (1 - found), 0)
    correct = np.round(200 * recall).astype(int)
    return HiddenCounts(200, 1000, correct, np.zeros_like(correct), np.round(missing * recall + wrong).astype(int))


@pytest.mark.parametrize("missing", [200, 1000])
def test_the_number_of_missing_entities_is_estimated(missing: int) -> None:
    point = choose_operating_point(simulated(missing, found=0.4))
    assert point is not None
    assert point.threshold == pytest.approx(0.5) and point.missing == missing and point.recall == pytest.approx(0.4)
    assert point.labels_f1 == pytest.approx(2 * 1000 / (2 * 1000 + missing))
    assert point.f1 == pytest.approx((1000 + 0.4 * missing) / (1000 + missing))
    three = choose_operating_point(simulated(missing, 0.4) + simulated(missing, 0.4) + simulated(missing, 0.4), 3)
    assert three == point


def test_the_threshold_is_lowered_if_few_hidden_names_are_found_at_a_half() -> None:
    counts = simulated(1000, found=0.5)
    few = replace(counts, correct=np.where(THRESHOLDS < 0.1, counts.correct, counts.correct // 5))
    point = choose_operating_point(few)
    assert point is not None and 0.05 < point.threshold < 0.1 and point.recall == pytest.approx(0.5)


def test_the_threshold_is_not_lowered_if_most_predictions_have_wrong_boundaries() -> None:
    """Otherwise a model from few sentences, which found a quarter of the hidden names, made the gazetteer worse."""
    counts = simulated(1000, found=0.5)
    few = replace(counts, correct=np.where(THRESHOLDS < 0.1, counts.correct, counts.correct // 5))
    some, many = (replace(few, inexact=factor * few.correct) for factor in (1, 3))
    assert choose_operating_point(some) == choose_operating_point(few)
    point = choose_operating_point(many)
    assert point is not None and point.threshold == pytest.approx(0.5) and point.recall == pytest.approx(0.1)
    at = int(np.flatnonzero(THRESHOLDS < 0.1)[-1])
    assert point.missing == few.new[at], "the estimate of what is missing stays"
    assert point.new == few.new[np.flatnonzero(THRESHOLDS <= 0.5)[-1]]
    assert point.f1 == pytest.approx(2 * (1000 + 0.1 * point.missing) / (2000 + point.new + point.missing))


def test_an_operating_point_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    point = choose_operating_point(simulated(200, 0.4))
    assert point is not None
    write_operating_point(point, tmp_path)
    stored = json.loads((tmp_path / "operating_point.json").read_text())
    (tmp_path / "operating_point.json").write_text(json.dumps(stored | {"precision": 0.5}))
    assert read_operating_point(tmp_path) == point
    del stored["new"], stored["length_odds"]
    (tmp_path / "operating_point.json").write_text(json.dumps(stored))
    assert read_operating_point(tmp_path) == replace(point, length_odds=()), "it predicted as many as were missing"


@pytest.mark.parametrize("odds", [3, ["1"], [0], [float("nan")], [1e400], {"a": 1}])
def test_a_damaged_operating_point(tmp_path: Path, odds: object) -> None:
    point = choose_operating_point(simulated(200, 0.4))
    assert point is not None
    write_operating_point(point, tmp_path)
    stored = json.loads((tmp_path / "operating_point.json").read_text())
    (tmp_path / "operating_point.json").write_text(json.dumps(stored | {"length_odds": odds}))
    with pytest.raises(LacunerError, match="not the operating point"):
        read_operating_point(tmp_path)


def test_too_few_hidden_names_tell_nothing() -> None:
    none = np.zeros(len(THRESHOLDS), dtype=int)
    assert choose_operating_point(HiddenCounts(5, 100, none + 5, none, none + 5)) is None
    assert choose_operating_point(HiddenCounts(500, 100, none, none, none + 5)) is None, (
        "and a model that found nothing"
    )


def test_nothing_is_hidden_in_complete_documents() -> None:
    names = ["Ada", "Bo", "Cork", "Dora", "Eda", "Fay", "Gus", "Hal"]
    docs = [Document(name, name, spans=(Span(0, len(name), "X"),), complete=True) for name in names]
    for fold in range(FOLDS):
        assert list(hide_entries(docs, fold)) == docs
        assert count_hidden(docs, docs, fold).hidden == 0
