"""Bound, exact probability, simulation, and the odds in a real corpus."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import comb, isqrt

import numpy as np
import pytest
import torch

from lacuner.audit.probes import entity_targets, gold_in_training_order
from lacuner.audit.sparsity import (
    clean_bound,
    clean_probability,
    min_words,
    sampling_odds,
    simulate_worst_case,
    sparsity,
    worst_case,
)
from lacuner.data import Document, Lost, Span
from lacuner.errors import ConfigError
from lacuner.sampling.span_negatives import negatives_per_sentence, sample_negatives
from lacuner.training.dataset import weak_training_set
from lacuner.training.identity import sort_documents
from tests.audit.conftest import Corpus, span_model


def test_clean_probability_equals_enumeration() -> None:
    for candidates, missing, drawn in ((5, 2, 2), (6, 1, 3), (4, 3, 2), (4, 0, 4), (3, 3, 1)):
        draws = list(combinations(range(candidates), drawn))
        clean = sum(not any(each < missing for each in drawing) for drawing in draws) / len(draws)
        [found] = clean_probability(np.array([candidates]), np.array([missing]), np.array([drawn]))
        assert found == pytest.approx(clean)
    assert clean_probability(np.array([0, 9]), np.array([0, 2]), np.array([0, 0])).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("rate", [0.1, 0.35, 0.7])
def test_the_bound_is_below_the_exact_probability(rate: float) -> None:
    for words in range(min_words(rate), 120):
        spans, missing = words * (words + 1) // 2, isqrt(words)
        drawn = int(negatives_per_sentence(torch.tensor([words]), rate))
        exact = comb(spans - missing, drawn) / comb(spans, drawn)
        assert worst_case(words, rate) == pytest.approx(exact)
        assert clean_bound(words, rate) <= exact
    assert clean_bound(50, 0.35) == pytest.approx(1 - 4 * 0.35 * 50**0.5 / 49)


@pytest.mark.parametrize("words", [4, 12, 40])
def test_simulation_agrees(words: int) -> None:
    before = torch.get_rng_state()
    exact = worst_case(words, 0.35)
    error = (exact * (1 - exact) / 3000) ** 0.5
    assert abs(simulate_worst_case(words, 0.35, times=3000) - exact) < 4 * error
    assert torch.equal(before, torch.get_rng_state()), "the global random state is unchanged"


def test_the_bound_is_refused_where_it_does_not_hold() -> None:
    for words, rate in ((1, 0.5), (2, 0.35), (30, 1.2), (9, 0.1)):
        with pytest.raises(ConfigError, match="the bound holds for rates from 1/n to 1"):
            clean_bound(words, rate)
    assert worst_case(30, 3.0) > 0, "what is counted holds for all rates"
    assert min_words(0.35) == 3 and min_words(0.1) == 10


def test_sparsity() -> None:
    spans = (Span(0, 1, "X"), Span(2, 3, "X"), Span(4, 5, "Y"), Span(4, 5, "X"))
    found = sparsity([Document("1", "a b c d", spans=spans), Document("2", "a b c d", spans=spans[:2])])
    assert found.words.tolist() == [4, 4] and found.entities.tolist() == [3, 2]
    assert found.dense == 1 and found.as_json() == {"sentences": 2, "dense": 1, "words": 4.0, "entities": 2.5}
    assert sparsity([]).as_json()["sentences"] == 0


def test_sampling_odds_of_a_sentence() -> None:
    gold = Document("1", "a b c d e", spans=(Span(0, 1, "X"), Span(2, 5, "Y"), Span(6, 7, "X")), complete=True)
    weak = replace(gold, spans=gold.spans[:1], complete=False)
    found = sampling_odds([weak], [gold], 0.5, max_width=2)
    assert found.candidates.tolist() == [5 + 4 - 1] and found.missing.tolist() == [2] and found.sampled.tolist() == [3]
    assert found.clean[0] == pytest.approx(comb(6, 3) / comb(8, 3)) and found.missampling == pytest.approx(2 / 8)
    narrow = sampling_odds([weak], [gold], 0.5, max_width=1)
    assert (narrow.candidates[0], narrow.missing[0]) == (4, 1), "too wide for the model: cannot be drawn"
    unsure = sampling_odds([replace(weak, unsure=(Span(6, 7, ""),))], [gold], 0.5, max_width=1)
    assert (unsure.candidates[0], unsure.missing[0]) == (3, 0), "what is unsure is never drawn"
    done = sampling_odds([replace(weak, complete=True)], [gold], 0.5)
    assert done.sampled.tolist() == [0] and done.clean.tolist() == [1.0] and done.missampling == 0
    assert sampling_odds([], [], 0.5).as_json()["clean"] == 1.0


def test_sampling_odds_agree_with_training(corpus: Corpus) -> None:
    """The same candidates as the recipe has, and the share that its sampler finds in many draws."""
    weak, gold = corpus
    found = sampling_odds(weak, gold, 0.35)
    data = weak_training_set(span_model(weak), sort_documents(weak), Lost())
    everything = np.arange(len(weak))
    candidates = data.unlabeled_in(everything)
    real = entity_targets(data.as_annotated, gold_in_training_order(weak, gold)).collate(everything).known
    assert found.candidates.tolist() == candidates.sum(dim=(1, 2)).tolist()
    assert found.missing.tolist() == (candidates & real).sum(dim=(1, 2)).tolist() and found.missing.sum() > 20
    torch.manual_seed(1)
    counts = negatives_per_sentence(torch.from_numpy(found.words), 0.35)
    wrong = clean = 0.0
    for _ in range(200):
        taken = sample_negatives(candidates, counts) & real
        wrong += float((taken.sum(dim=(1, 2)) / torch.from_numpy(found.sampled)).nanmean()) / 200
        clean += float((~taken.flatten(1).any(dim=1)).float().mean()) / 200
    assert wrong == pytest.approx(found.missampling, rel=0.1)
    assert clean == pytest.approx(float(found.clean.mean()), abs=0.01)
