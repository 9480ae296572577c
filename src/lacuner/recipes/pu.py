"""Learn from positive and unlabelled words, knowing how many positives there should be.

What it does: for each tag a risk that labelled words have and unlabelled ones do not, corrected by the share of words
    that have the tag in truth, and never below zero. The share is given, or estimated: a model that is trained for a
    few epochs as if the labels were complete is as sure of labelled words as labels are complete.
Assumes: that labels are right, and that which of them are missing is a matter of chance.
Needs: weak.
Costs: one training and a fifth of another for the estimate.
Departs from the authors: they train a model a type and take the shares from gold; ours is one softmax, and the shares
    never come from gold. Boundaries are learned by the scheme's tags, where theirs are runs of words.
Reference: Peng et al. (2019), "Distantly supervised named entity recognition using positive-unlabeled learning"; Kiryo
    et al. (2017), "Positive-unlabeled learning with non-negative risk estimator".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from lacuner.config import Config as BaseConfig
from lacuner.data import Lost, Splits
from lacuner.errors import ConfigError
from lacuner.losses.pu import pu_risk
from lacuner.models.config import EncoderConfig, TokenHeadConfig
from lacuner.models.tag_sets import tag_set_of
from lacuner.models.tagger import Tagger
from lacuner.techniques.early_learning import Explored, explore, labelled_share
from lacuner.training.config import TrainConfig, resolved
from lacuner.training.dataset import TrainingSet, believed_set, dev_scorer
from lacuner.training.loop import Step, StepLoss, fit
from lacuner.training.run_folder import Run
from lacuner.training.stage import new_model

NEEDS = ("weak",)


class Config(BaseConfig):
    """Settings of `pu`."""

    encoder: EncoderConfig = EncoderConfig()
    head: TokenHeadConfig = TokenHeadConfig()
    train: TrainConfig = TrainConfig()
    prior: dict[str, float] = Field({})
    """By label: the share of all words that belong to an entity of it. What is not given is estimated."""
    explore: int = Field(3, ge=1)
    """Epochs of training for the estimate."""
    positive: float = Field(10.0, gt=0)
    """How much labelled words weigh (the paper's m)."""
    beta: float = 0.0
    """Below this the risk of unlabelled words does not fall."""


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Learn from `splits.weak` with the share of entities that it should have."""
    docs = splits.weak or ()
    explored = explore(docs, config, config.explore, run)
    model = new_model(config.encoder, config.head, docs, run)
    data = believed_set(model, docs, Lost()).data
    ratio = ratios(explored, config.prior)
    run.say("pu: for each labelled word there are " + ", ".join(f"{n:.2f} {label}" for label, n in ratio.items()))
    by_tag = np.repeat(list(ratio.values()), len(tag_set_of(model.head).letters))
    with run.stage("train") as stage:
        step = _risk(data, torch.tensor(by_tag, dtype=torch.float32), config)
        settings = resolved(config.train, model, data.features)
        fit(model, data.features, lambda _: step, settings, stage, dev_scorer(model, splits.dev))
    return Tagger(model)


def ratios(explored: Explored, prior: Mapping[str, float]) -> dict[str, float]:
    """For each label: how many words belong to its entities for each that is labelled so; never below one."""
    weak = explored.weak
    tags = tag_set_of(weak.data.model.head)
    unknown = sorted(set(prior) - set(tags.labels))
    if unknown:
        raise ConfigError(f"there is no label {unknown[0]!r} to have a prior; there are {', '.join(tags.labels)}")
    (opinion,) = explored.opinions.values()
    none = opinion["none"].numpy()
    types = tags.types[weak.data.targets.labels.numpy()]
    found = {}
    for number, label in enumerate(tags.labels):
        mine = weak.labelled & (types == number)
        share = mine.sum() / max(int(weak.data.targets.known.sum()), 1)
        wanted = prior[label] / max(share, 1e-9) if label in prior else 1 / labelled_share(none, mine)
        found[label] = max(float(wanted), 1.0)
    return found


def _risk(data: TrainingSet, ratio: Tensor, config: Config) -> Step:
    def step(indices: Any) -> StepLoss:
        batch, targets = data.batch(indices)
        scores = data.model(batch)
        known, words = float((targets.known & scores.mask).sum()), float(batch.mask.sum())
        risk = pu_risk(scores, targets, ratio.to(scores.logits.device), config.positive, config.beta)
        return StepLoss(risk.sum() * words, words, known, words)

    return step
