"""Missing-label masking: which labels leave the loss, and where the threshold comes from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch

from lacuner.config import load_config
from lacuner.data import Splits
from lacuner.errors import ConfigError
from lacuner.losses.cross_entropy import cross_entropy
from lacuner.models.types import SpanScores, Targets, TokenScores
from lacuner.noise import Noise, corrupt
from lacuner.recipes import RECIPES, trust
from lacuner.techniques.label_masking import (
    Disputed,
    MaskingConfig,
    fit_beta_mixture,
    fit_threshold,
    log_beta_density,
    masked_positions,
)
from lacuner.trainer.train import train
from tests.demo_corpus import demo_corpus

SIDES: tuple[Literal["above", "below"], ...] = ("above", "below")


def batch() -> tuple[TokenScores, Targets]:
    generator = torch.Generator().manual_seed(3)
    mask = torch.arange(7) < torch.tensor([7, 5])[:, None]
    logits = 2 * torch.randn(2, 7, 3, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 3, (2, 7), generator=generator)
    known = torch.rand(2, 7, generator=generator) < 0.8
    return TokenScores(logits.requires_grad_(), mask), Targets(labels, known & mask, torch.ones(2, 7).double())


def reference(scores: TokenScores, targets: Targets, kind: str, threshold: float, side: str) -> np.ndarray:
    """Word by word, as in the text of the paper."""
    logits, masked = scores.logits.detach().numpy(), np.zeros(targets.labels.shape, dtype=bool)
    for at in np.ndindex(*masked.shape):
        probs = np.exp(logits[at]) / np.exp(logits[at]).sum()
        label, best = int(targets.labels[at]), int(probs.argmax())
        disputed = label != 0 if kind == "entity" else label == 0
        wrong_side = probs.max() > threshold if side == "above" else probs.max() <= threshold
        masked[at] = bool(targets.known[at]) and disputed and best != label and wrong_side
    return masked


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kind", ["missing", "entity"])
def test_masked_positions_equal_a_reference_and_have_no_gradient(
    kind: Disputed, side: Literal["above", "below"]
) -> None:
    scores, targets = batch()
    masked = masked_positions(scores, targets, kind, 0.7, side)
    assert np.array_equal(masked.numpy(), reference(scores, targets, kind, 0.7, side)) and masked.any()
    cross_entropy(scores, replace(targets, known=targets.known & ~masked)).sum().backward()
    gradient = scores.logits.grad
    assert gradient is not None
    assert (gradient[masked | ~targets.known] == 0).all() and (gradient[targets.known & ~masked] != 0).any()


def test_every_disagreement_is_above_0_and_none_above_1() -> None:
    scores, targets = batch()
    every = masked_positions(scores, targets, "missing", 0.0, "above")
    best = scores.logits.argmax(dim=-1)
    assert torch.equal(every, targets.known & (targets.labels == 0) & (best != 0))
    assert not masked_positions(scores, targets, "missing", 1.0, "above").any()


def test_entity_labels_are_kept_while_the_model_predicts_none() -> None:
    logits = torch.tensor([[[5.0, 0.0, 0.0]] * 20])
    mask, labels = torch.ones(1, 20, dtype=torch.bool), torch.ones(1, 20).long()
    targets = Targets(labels, mask, torch.ones(1, 20))
    assert not masked_positions(TokenScores(logits, mask), targets, "entity", 0.5, "above").any()
    logits[0, :2] = torch.tensor([0.0, 5.0, 0.0])  # a tenth is predicted
    assert int(masked_positions(TokenScores(logits, mask), targets, "entity", 0.5, "above").sum()) == 18


def test_spans_can_be_masked_too() -> None:
    logits = torch.tensor([[[[0.0, 4.0], [4.0, 0.0]]]])
    scores = SpanScores(logits, torch.ones(1, 1, dtype=torch.bool))
    targets = Targets(torch.zeros(1, 1, 2).long(), torch.ones(1, 1, 2, dtype=torch.bool), torch.ones(1, 1, 2))
    assert masked_positions(scores, targets, "missing", 0.9, "above").tolist() == [[[True, False]]]


def test_the_beta_density_integrates_to_one() -> None:
    grid = (np.arange(20_000) + 0.5) / 20_000
    assert abs(np.exp(log_beta_density(grid, 2.5, 4.0)).mean() - 1) < 1e-3


def test_a_mixture_is_found_again() -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.beta(8, 12, 3000), rng.beta(30, 3, 1000)])
    (low, high), shares = fit_beta_mixture(values, steps=300)
    assert abs(low[0] / sum(low) - 0.4) < 0.02 and abs(high[0] / sum(high) - 30 / 33) < 0.02
    assert abs(shares[0] - 0.75) < 0.03 and sum(shares) == pytest.approx(1)


@pytest.mark.parametrize("side", SIDES)
def test_the_threshold_is_where_the_masked_part_reaches_the_cutoff(side: Literal["above", "below"]) -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.beta(8, 12, 2000), rng.beta(30, 3, 2000)])
    thresholds = [fit_threshold(values, 0.1, MaskingConfig(labels="missing", mask=side, cutoff=c)) for c in (0.3, 0.7)]
    assert all(0.45 < threshold < 0.85 for threshold in thresholds)
    # a higher cutoff masks fewer
    assert (thresholds[0] < thresholds[1]) == (side == "above")
    assert fit_threshold(values[:20], 0.1, MaskingConfig(labels="missing")) == 0.1, "too few to fit"
    assert fit_threshold(np.full(100, 0.6), 0.1, MaskingConfig(labels="missing")) <= 0.7, "one value is no error"


def test_settings_without_effect_are_refused_and_a_default_leaves_no_trace() -> None:
    assert "masking" not in trust.Config().model_dump(mode="json")
    assert trust.Config(masking=MaskingConfig(labels="missing")).model_dump()["masking"]["mask"] == "above"
    with pytest.raises(ConfigError, match="masking"):
        load_config(trust.Config, settings=["masking.cutoff=0.5"])


@pytest.mark.integration
@pytest.mark.parametrize(("recipe", "stage"), [("trust", "train"), ("supervised", "train"), ("bond", "early")])
def test_masking_trains_logs_its_threshold_and_refuses_a_crf(recipe: str, stage: str, tmp_path: Path) -> None:
    gold = demo_corpus().train[:60]
    weak = list(corrupt(gold, Noise(drop=0.5)))
    splits = Splits(gold=gold) if recipe == "supervised" else Splits(weak=weak)
    settings = ["encoder.name=tiny", "head.kind=token", "train.epochs=2", "train.budget=128"]
    settings += ["early=2"] if recipe == "bond" else []
    masking = ["masking.labels=missing", "masking.warmup=0", "masking.refit=[1]"]
    log: list[str] = []
    config = RECIPES[recipe].Config
    train(recipe, splits, tmp_path / "a", load_config(config, settings=settings + masking), 1, log.append)
    assert any(f"{stage}: masks missing labels above a confidence of" in line for line in log)
    if recipe != "bond":  # its head is a token classifier
        crf = load_config(config, settings=[*settings, *masking, "head.kind=crf"])
        with pytest.raises(ConfigError, match=r"set head\.kind"):
            train(recipe, splits, tmp_path / "b", crf, 1)
