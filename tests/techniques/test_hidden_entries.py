"""Hidden names: what is hidden, what is counted, and the threshold that follows from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lacuner.data import Document, Span
from lacuner.evaluate.threshold import THRESHOLDS
from lacuner.techniques.hidden_entries import (
    FOLDS,
    HiddenCounts,
    choose_operating_point,
    count_hidden,
    entry_fold,
    hide_entries,
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


def simulated(missing: int, noise: float, recall_at_half: float = 0.5) -> HiddenCounts:
    """A model whose recall falls with the threshold, and that makes `noise` false positives where it is unsure."""
    recall = np.clip(1.2 - THRESHOLDS / recall_at_half * 0.6, 0.05, 0.95)
    wrong = noise * (1 - THRESHOLDS) ** 4
    hidden = 200
    correct = np.round(hidden * recall).astype(int)
    return HiddenCounts(hidden, 1000, correct, np.zeros_like(correct), np.round(missing * recall + wrong).astype(int))


@pytest.mark.parametrize("missing", [200, 1000])
def test_the_number_of_missing_entities_is_estimated(missing: int) -> None:
    point = choose_operating_point(simulated(missing, noise=missing / 2))
    assert point is not None
    assert missing * 0.9 < point.missing < missing * 1.1
    assert point.f1 > point.labels_f1
    quiet, noisy = (choose_operating_point(simulated(missing, noise)) for noise in (0, 5000))
    assert quiet is not None and noisy is not None
    assert quiet.threshold < noisy.threshold, "the more mistakes at low probabilities, the higher the threshold"


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
        assert hide_entries(docs, fold) == docs
        assert count_hidden(docs, docs, fold).hidden == 0
