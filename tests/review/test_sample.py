"""Scores from a reviewed random sample: the intervals cover the truth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lacuner.corpus.stored import StoredDocuments, store_documents, store_like
from lacuner.data import Document, Span
from lacuner.errors import ConfigError
from lacuner.review.decisions import Decision, replay
from lacuner.review.queue import ReviewQueue
from lacuner.review.sample import draw_sample, estimate_scores, score_sample

WORDS = 12
TEXT = " ".join(["word"] * WORDS)


def population(size: int, quality: float, seed: int) -> tuple[list[Document], list[Document]]:
    """Gold documents and predictions: scores say roughly how probable a predicted span is, and some are missed."""
    rng = np.random.default_rng(seed)
    gold, predicted = [], []
    for number in range(size):
        entities, guesses = [], []
        difficulty = rng.beta(1, 2)  # mistakes come in clusters: some documents are hard
        for word in range(0, WORDS, 2):
            span = Span(5 * word, 5 * word + 4, "PER")
            is_entity, is_found = rng.random() < 0.25, rng.random() < quality * (1.1 - difficulty)
            if is_entity:
                entities.append(span)
            if (is_entity and is_found) or (not is_entity and rng.random() < 0.15 * difficulty):
                score = np.clip(rng.normal(1 - difficulty / 2 if is_entity else 0.6, 0.15), 0.5, 0.999)
                guesses.append(span._replace(score=float(score)))
        gold.append(Document(str(number), TEXT, spans=tuple(entities), complete=True))
        predicted.append(Document(str(number), TEXT, spans=tuple(guesses)))
    return gold, predicted


def truth(gold: list[Document], predicted: list[Document]) -> tuple[float, float, float]:
    keys = [({s.key for s in a.spans}, {s.key for s in b.spans}) for a, b in zip(gold, predicted, strict=True)]
    correct = sum(len(a & b) for a, b in keys)
    entities, guesses = sum(len(a) for a, _ in keys), sum(len(b) for _, b in keys)
    return correct / guesses, correct / entities, 2 * correct / (guesses + entities)


def review(queue: ReviewQueue, gold: dict[str, Document], count: int) -> list[Decision]:
    ids = [sentence.doc_id for sentence in queue.sentences[:count]]
    return [replace(queue.label_sentence(id_, gold[id_].spans), number=n) for n, id_ in enumerate(ids, 1)]


@pytest.mark.parametrize(("quality", "reviewed"), [(0.8, 60), (0.95, 100), (0.5, 40)])
def test_intervals_cover_the_truth_in_nine_of_ten_draws(quality: float, reviewed: int) -> None:
    gold, predicted = population(1200, quality, seed=1)
    by_id, right = {doc.id: doc for doc in gold}, truth(gold, predicted)
    spans = {doc.id: doc.spans for doc in predicted}
    covered, means = np.zeros(3), np.zeros(3)
    for seed in range(50):
        queue = draw_sample(gold, predicted, 120, seed=seed)
        scores = score_sample(queue, replay(review(queue, by_id, reviewed)), spans)
        estimates = scores.precision, scores.recall, scores.f1
        covered += [estimate.low <= value <= estimate.high for estimate, value in zip(estimates, right, strict=True)]
        means += [estimate.value / 50 for estimate in estimates]
        assert all(estimate.high - estimate.low < 0.4 for estimate in estimates)
    assert (covered >= 45).all(), covered
    assert np.abs(means - right).max() < 0.02


def test_the_promised_number_of_decisions_halves_the_interval() -> None:
    gold, predicted = population(3000, 0.8, seed=2)
    by_id, spans = {doc.id: doc for doc in gold}, {doc.id: doc.spans for doc in predicted}
    ratios = []
    for seed in range(10):
        queue = draw_sample(gold, predicted, 600, seed=seed)
        first = score_sample(queue, replay(review(queue, by_id, 80)), spans).recall
        assert first.halving is not None and 200 < first.halving < 260
        second = score_sample(queue, replay(review(queue, by_id, 80 + first.halving)), spans).recall
        ratios.append((second.high - second.low) / (first.high - first.low))
    assert 0.4 < np.mean(ratios) < 0.6


def test_any_number_of_first_sentences_covers_all_strata() -> None:
    gold, predicted = population(400, 0.8, seed=3)
    queue = draw_sample(gold, predicted, 80)
    assert len(queue.facts["sample"]["strata"]) == 4 and sum(queue.facts["sample"]["strata"]) == 400
    assert {sentence.stratum for sentence in queue.sentences[:20]} == {0, 1, 2, 3}
    assert len(queue.sentences) == 80
    assert len({sentence.doc_id for sentence in queue.sentences}) == len(queue.sentences)
    assert queue.documents.keys() == {sentence.doc_id for sentence in queue.sentences}
    assert draw_sample(gold, predicted, 80) == queue != draw_sample(gold, predicted, 80, seed=2)


def test_the_same_sample_of_documents_on_disk(tmp_path: Path) -> None:
    gold, predicted = population(400, 0.8, seed=3)
    on_disk = store_documents(gold, tmp_path / "docs", "v1", ordered=True)
    predictions = store_like(on_disk, predicted, tmp_path / "predicted", ordered=True)
    assert isinstance(predictions, StoredDocuments)
    assert draw_sample(on_disk, predictions, 80, labels=["ORG"]) == draw_sample(gold, predicted, 80, labels=["ORG"])


def test_everything_reviewed_is_no_estimate() -> None:
    gold, predicted = population(30, 0.8, seed=4)
    queue = draw_sample(gold, predicted, 30)
    scores = score_sample(
        queue, replay(review(queue, {doc.id: doc for doc in gold}, 30)), {d.id: d.spans for d in predicted}
    )
    assert (scores.precision.value, scores.recall.value, scores.f1.value) == pytest.approx(truth(gold, predicted))
    assert (scores.reviewed, scores.left, scores.recall.halving) == (30, 0, None)


def test_without_mistakes_the_interval_has_a_width() -> None:
    counts = np.array([[2, 2, 2]] * 20)
    precision, _, _ = estimate_scores(counts, np.zeros(20, dtype=int), np.array([500]))
    assert precision.value == precision.high == 1.0 and 0.8 < precision.low < 0.95


def test_too_few_skipped_and_unsampled_sentences() -> None:
    gold, predicted = population(100, 0.8, seed=5)
    by_id, spans = {doc.id: doc for doc in gold}, {doc.id: doc.spans for doc in predicted}
    queue = draw_sample(gold, predicted, 20)
    with pytest.raises(ConfigError, match="label at least 7 more"):
        score_sample(queue, replay(review(queue, by_id, 3)), spans)
    decisions = review(queue, by_id, 12)
    skip = replace(queue.skip_sentence(queue.sentences[0].doc_id), number=20)
    scores = score_sample(queue, replay([*decisions, skip]), spans)
    assert (scores.reviewed, scores.skipped, scores.left) == (11, 1, len(queue.sentences) - 12)
    with pytest.raises(ConfigError, match="not a random sample"):
        score_sample(replace(queue, facts={}), replay([]), spans)
    with pytest.raises(ConfigError, match="no documents"):
        draw_sample([], [], 5)
