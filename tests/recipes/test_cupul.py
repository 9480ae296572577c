"""CuPUL: hardness, stages of the curriculum, and class priors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from lacuner.config import load_config
from lacuner.data import Lost, Splits
from lacuner.noise import Noise, corrupt
from lacuner.recipes import cupul
from lacuner.training.dataset import weak_training_set
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


@pytest.mark.integration
def test_priors_are_above_the_labeled_shares_and_below_one(tmp_path: Path) -> None:
    docs = list(corrupt(demo_corpus().train[:60], Noise(drop=0.5)))
    config, run = load_config(cupul.Config, settings=QUICK), Run(tmp_path, {"seed": 1})
    weak = weak_training_set(new_model(config, docs, run), docs, Lost())
    prior = cupul.find_prior(weak, Splits(weak=docs), config, run)
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
