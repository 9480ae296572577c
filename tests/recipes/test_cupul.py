"""CuPUL: hardness, stages of the curriculum, and class priors."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import torch

from lacuner.config import load_config
from lacuner.data import Lost, Splits
from lacuner.models.targets import CorpusTargets
from lacuner.noise import Noise, corrupt
from lacuner.recipes import cupul
from lacuner.techniques.entity_ratio import configured_entity_ratio
from lacuner.training.dataset import WeakTrainingSet, weak_training_set
from lacuner.training.run_folder import Run
from lacuner.training.stage import new_model
from tests.demo_corpus import demo_corpus

QUICK = ["encoder.name=tiny", "train.budget=256", "explore=1"]


def test_disagreement_is_the_mean_symmetric_divergence_of_all_pairs() -> None:
    torch.manual_seed(0)
    probs = [torch.randn(5, 3).softmax(dim=-1) for _ in range(3)]
    pairs = [(probs[i].numpy(), probs[j].numpy()) for i, j in ((0, 1), (0, 2), (1, 2))]
    want = np.mean([(p * np.log(p / q) + q * np.log(q / p)).mean(axis=1) for p, q in pairs], axis=0)
    np.testing.assert_allclose(cupul.disagreement(probs).numpy(), want, rtol=1e-4, atol=1e-6)


def test_each_stage_adds_half_as_many_words_as_the_one_before() -> None:
    difficulty = np.random.default_rng(0).random(3100)
    shares = [float((difficulty <= limit).mean()) for limit in cupul.stage_limits(difficulty, 5)]
    np.testing.assert_allclose(shares, [16 / 31, 24 / 31, 28 / 31, 30 / 31, 1.0], atol=1e-3)


def test_words_that_are_known_to_be_o_have_no_confidence_of_an_entity() -> None:
    # an entity, an unlabeled word, and one that a reviewer has ruled out
    targets = CorpusTargets(torch.tensor([1, 0, 0]), torch.ones(3, dtype=torch.bool), np.array([0, 3]))
    complete = SimpleNamespace(targets=targets)
    weak = cast("WeakTrainingSet", SimpleNamespace(as_complete=complete, unlabeled=torch.tensor([False, True, False])))
    votes = [torch.tensor([[0.2, 0.8]] * 3), torch.tensor([[0.4, 0.6]] * 3)]
    mean = cupul.mean_vote(weak, votes)
    assert torch.allclose(mean, torch.tensor([[0.3, 0.7], [0.3, 0.7], [1.0, 0.0]]))


def test_the_preset_of_the_paper_gives_way_to_explicit_settings() -> None:
    config = load_config(cupul.Config, settings=["preset=paper", "train.epochs=10", "head.dropout=0.1"])
    assert (config.base, config.positive, config.voter_epochs) == ("mae", 20.0, 1)
    assert (config.train.batch_size, config.train.epochs, config.head.scheme) == (32, 10, "IO")
    assert "preset" not in cupul.Config().model_dump(), "runs of earlier versions stay the same runs"


@pytest.mark.integration
def test_all_words_take_part_in_the_end_even_with_fewer_epochs_than_stages(tmp_path: Path) -> None:
    weak = list(corrupt(demo_corpus().train[:40], Noise(drop=0.5)))
    settings = [*QUICK, "voters=2", "train.epochs=2", "drop_labeled=0.1", "entity_ratio=0.2"]
    lines: list[str] = []
    cupul.train(
        Splits(weak=weak), load_config(cupul.Config, settings=settings), Run(tmp_path, {"seed": 1}, lines.append)
    )
    last = [line for line in lines if line.startswith("train: epoch")][-1]
    assert "trained on 100" in last, last


@pytest.mark.integration
def test_priors_are_above_the_labeled_shares_and_below_one(tmp_path: Path) -> None:
    docs = list(corrupt(demo_corpus().train[:60], Noise(drop=0.5)))
    config, run = load_config(cupul.Config, settings=QUICK), Run(tmp_path, {"seed": 1})
    weak = weak_training_set(new_model(config, docs, run), docs, Lost())
    prior = cupul.class_priors(weak, docs, configured_entity_ratio(Splits(weak=docs), config, run))
    targets = weak.as_complete.targets
    labeled = np.bincount(targets.labels[targets.known].long().numpy(), minlength=len(prior) + 1)[1:]
    shares = labeled / int(targets.known.sum())
    assert len(prior) == len(weak.as_complete.model.head.labels), "IO tags: one per type"
    assert (prior.numpy() >= 0.99 * shares).all() and float(prior.sum()) <= 0.9 + 1e-6


@pytest.mark.integration
def test_both_risks_train(tmp_path: Path) -> None:
    weak = list(corrupt(demo_corpus().train[:40], Noise(drop=0.5)))
    for risk in ("conf_mpu", "mpn"):
        settings = [*QUICK, f"risk={risk}", "voters=2", "train.epochs=2", "voter_epochs=1"]
        lines: list[str] = []
        run = Run(tmp_path / risk, {"seed": 1}, lines.append)
        cupul.train(Splits(weak=weak), load_config(cupul.Config, settings=settings), run)
        shares = [line.split("trained on ")[1].split(" %")[0] for line in lines if line.startswith("train: epoch")]
        assert len(shares) == 2 and float(shares[0]) < float(shares[1]), "the curriculum lets more words in"
