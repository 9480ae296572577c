"""Partial CRF that keeps the expected share of entity words near a given ratio (EER).

What it does: maximises the likelihood of all tag sequences that agree with the labels, as `partial` does. Alone, that
    would label everything. So the loss also keeps the share of entity words that the model expects in a batch near the
    true share. That share is `entity_ratio` if it is set, otherwise that of dev, otherwise an estimate: a model is
    trained for a few epochs on weak labels treated as complete, and its mean confidence at labeled words estimates
    which share of the entity words has a label.
Assumes: that the labels and the ratio are right. Labels need not be missing at random: some types or kinds of names may
    be missing more often than others.
Needs: weak; dev tells the ratio, and which epoch to keep.
Costs: one training run with a CRF whose steps take about twice as long, and a fifth of another for the estimate.
Departs from the authors: they set the ratio to 0.15 and the margin to 0.05 everywhere; our margin is a third of the
    ratio unless it is set, which is the same at 0.15. Ruled-out words and complete documents are known O, if there are
    any. The tags are BIO, theirs BILOU. `preset=paper` has their ratio, margin, tags, rates and epochs; a batch has 15
    sentences then, where theirs has 15 documents.
Reference: Effland and Collins (2021), "Partially supervised named entity recognition via the expected entity ratio
    loss".
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from lacuner.data import Lost, Splits
from lacuner.losses.crf import crf_loss
from lacuner.losses.entity_ratio import entity_ratio_loss
from lacuner.models.config import CRFHeadConfig
from lacuner.models.tagger import Tagger
from lacuner.models.types import Targets
from lacuner.techniques.entity_ratio import (
    EntityRatioConfig,
    RatioSetting,
    configured_entity_ratio,
    exploration_epochs,
)
from lacuner.training.config import PresetConfig
from lacuner.training.dataset import training_set
from lacuner.training.run_folder import Run
from lacuner.training.stage import Selection, new_model, train_stage
from lacuner.training.steps import loss_step

NEEDS = ("weak",)
GROUP = "other methods"
PAPER = "Effland and Collins, 2021"


class Config(EntityRatioConfig, PresetConfig):
    """Settings of `eer`."""

    RENAMED: ClassVar[Mapping[str, str]] = {"ratio": "entity_ratio"}
    PAPER_SETTINGS: ClassVar[Mapping[str, Any]] = {
        "head": {"scheme": "BIOES", "dropout": 0.2},
        "train": {
            "epochs": 20,
            "patience": 10,
            "learning_rate": 2e-5,
            "head_learning_rate": 2e-5,
            "weight_decay": 0.0,
            "batch_size": 15,
            "clip": 5.0,
        },
        "entity_ratio": 0.15,
        "margin": 0.05,
    }
    PRESET_FIELDS: ClassVar[frozenset[str]] = frozenset({"preset", *PAPER_SETTINGS})

    head: CRFHeadConfig = CRFHeadConfig()
    entity_ratio: RatioSetting = "auto"
    """Share of all words that belong to entities: a number, one per label (`entity_ratio.PER=0.05`), or how to estimate
    it: from `dev`, `hidden` names, label `counts` or `odds`, or `auto` (dev if possible, else counts)."""
    margin: float | None = Field(None, ge=0, lt=1)
    """Distance from the ratio that costs nothing; by default a third of the ratio."""
    weight: float = Field(10.0, ge=0)
    """Weight of the distance, relative to the likelihood of a sentence."""


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Train on `splits.weak` with unlabeled words unknown and their entity ratio constrained."""
    docs, lost = splits.weak or (), Lost()
    run.plan({**exploration_epochs(splits, config), "train": config.train.epochs})
    estimate = configured_entity_ratio(splits, config, run)
    ratio = estimate.value
    margin = ratio / 3 if config.margin is None else config.margin
    run.log(f"eer: {estimate.describe()}; margin {100 * margin:.1f} points")
    data = training_set(new_model(config, docs, run), docs, lost)
    run.log(f"training on {len(docs):,} documents: {lost}")

    def loss(scores: Any, targets: Targets) -> Tensor:
        # both terms are means over sentences in the paper; the step divides their sum by words
        penalty = config.weight * entity_ratio_loss(scores, ratio, margin)
        return crf_loss(scores, targets) + penalty

    # a batch without a single known word still has a ratio
    step = loss_step(data, loss, known=lambda targets: torch.ones_like(targets.known))
    return Tagger(train_stage(data, lambda _: step, config.train, run, Selection(splits.dev)).model)
