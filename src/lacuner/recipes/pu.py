"""Positive-unlabeled learning with class priors.

What it does: minimises, for each tag, a non-negative PU risk: labeled tokens are positive, the rest is unlabeled, and
    the share of tokens that truly have the tag corrects for it. The share is given, or that of dev, or estimated from a
    model trained for a few epochs on weak labels treated as complete: its confidence at labeled tokens is the labeled
    share.
Assumes: that labels are right, and missing at random.
Needs: weak.
Costs: one training run, and a fifth of another for the estimate.
Departs from the authors: they train one binary model per type and take the shares from gold; ours is one softmax, and
    the shares never come from gold. Boundaries are learned through the tag scheme, where theirs are runs of tokens.
    Their loss of a token is its absolute error (`base=mae`), whose gradient nearly vanishes where the model is
    confident. With it, a small encoder may end up predicting no entity, or learn more slowly, so the default for small
    encoders is cross-entropy.
Reference: Peng et al. (2019), "Distantly supervised named entity recognition using positive-unlabeled learning"; Kiryo
    et al. (2017), "Positive-unlabeled learning with non-negative risk estimator".
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from lacuner.data import Lost, Splits
from lacuner.losses.conf_mpu import Base
from lacuner.losses.pu import pu_risk
from lacuner.models.config import TokenHeadConfig
from lacuner.models.encoders import names_transformer
from lacuner.models.tag_sets import tag_set_of
from lacuner.models.tagger import Tagger
from lacuner.models.types import Targets
from lacuner.techniques.entity_ratio import (
    EntityRatioConfig,
    configured_entity_ratio,
    exploration_epochs,
    ratios_to_labeled,
)
from lacuner.training.dataset import weak_training_set
from lacuner.training.run_folder import Run
from lacuner.training.stage import Selection, new_model, train_stage
from lacuner.training.steps import loss_step

NEEDS = ("weak",)
GROUP = "other methods"
PAPER = "Peng et al., 2019"


class Config(EntityRatioConfig):
    """Settings of `pu`."""

    head: TokenHeadConfig = TokenHeadConfig()
    RENAMED: ClassVar[Mapping[str, str]] = {"prior": "entity_ratio"}
    positive: float = Field(10.0, gt=0)
    """Weight of labeled tokens (the paper's m)."""
    beta: float = 0.0
    """Lower bound of the risk of unlabeled tokens."""
    base: Base | None = None
    """Loss of a token: mean absolute error, or cross-entropy; by default `mae` for Hugging Face encoders, else `ce`."""


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Train on `splits.weak` with the estimated or given class priors."""
    docs = splits.weak or ()
    run.plan({**exploration_epochs(splits, config), "train": config.train.epochs})
    ratio = configured_entity_ratio(splits, config, run)
    model = new_model(config, docs, run)
    data = weak_training_set(model, docs, Lost()).as_complete
    ratios = ratios_to_labeled(ratio, docs, model.head.labels)
    per_labeled = ", ".join(f"{label} {factor:.2f}" for label, factor in ratios.items())
    run.log(f"pu: {ratio.describe()}; entity tokens per labeled token: {per_labeled}")
    by_tag = np.repeat(list(ratios.values()), len(tag_set_of(model.head).letters))
    factors = torch.tensor(by_tag, dtype=torch.float32)
    base = config.base or default_base(config.encoder.name)

    def loss(scores: Any, targets: Targets) -> Tensor:
        risk = pu_risk(scores, targets, factors.to(scores.logits.device), config.positive, config.beta, base)
        return risk.sum() * float(scores.mask.sum())

    step = loss_step(data, loss)
    return Tagger(train_stage(data, lambda _: step, config.train, run, Selection(splits.dev)).model)


def default_base(encoder: str) -> Base:
    """The loss of a token for an encoder of this name: absolute error needs one that learns fast."""
    return "mae" if names_transformer(encoder) else "ce"
