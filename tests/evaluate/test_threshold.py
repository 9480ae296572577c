"""The best threshold against trying them all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lacuner.data import Document, Span
from lacuner.evaluate import score
from lacuner.evaluate.scores import count_exact
from lacuner.evaluate.threshold import THRESHOLDS, tune_threshold

TEXT = " ".join("abcdefghijklmnop")


def documents(seed: int) -> tuple[list[Document], list[Document]]:
    rng = np.random.default_rng(seed)
    gold, found = [], []
    for number in range(6):
        places = rng.permutation(16)[:6]
        gold.append(Document(str(number), TEXT, spans=tuple(Span(int(2 * p), int(2 * p + 1), "X") for p in places)))
        guesses = rng.permutation(16)[:7]
        scores = rng.integers(1, 6, 7) / 5  # many are equal
        spans = tuple(Span(int(2 * p), int(2 * p + 1), "X", float(s)) for p, s in zip(guesses, scores, strict=True))
        found.append(Document(str(number), TEXT, spans=spans))
    return gold, found


def kept(docs: list[Document], threshold: float) -> list[Document]:
    return [replace(doc, spans=tuple(span for span in doc.spans if (span.score or 0) >= threshold)) for doc in docs]


@pytest.mark.parametrize("seed", range(8))
def test_no_threshold_is_better(seed: int) -> None:
    gold, found = documents(seed)
    chosen, count = tune_threshold(gold, found)
    tried = [score(gold, kept(found, limit)).exact.f1 for limit in THRESHOLDS]
    assert chosen in THRESHOLDS
    assert score(gold, kept(found, chosen)).exact == count
    assert count.f1 == pytest.approx(max(tried))


def test_ties_go_to_the_threshold_nearest_to_one_half() -> None:
    gold, _ = documents(0)
    sure = [replace(doc, spans=tuple(span._replace(score=0.99) for span in doc.spans)) for doc in gold]
    assert tune_threshold(gold, sure)[0] == 0.5
    assert tune_threshold(gold, [replace(doc, spans=()) for doc in gold])[0] == 0.5
    assert tune_threshold([], [])[0] == 0.5


@pytest.mark.parametrize("seed", range(4))
def test_count_exact_agrees_with_score(seed: int) -> None:
    gold, found = documents(seed)
    assert count_exact(gold, found) == score(gold, found).exact
    assert count_exact([], []) == score([], []).exact
