"""A CRF in which the unlabelled words have a distribution over tags, which models of the other half guess.

What it does: cuts the documents into folds. A CRF that has not seen a fold says how likely each tag is at the fold's
    unlabelled words, given its labels; then all folds' models are trained again with the likelihood weighted by that,
    a few times over. At last one model learns from all documents. The first models take unlabelled words for O.
Assumes: that labels are right, and that entities without a label look like those that have one elsewhere.
Needs: weak.
Costs: a training more for each iteration, at half the epochs, with a CRF.
Departs from the authors: two iterations where they have ten; half the epochs for the folds' models.
Reference: Jie et al. (2019), "Better modeling of incomplete annotations for named entity recognition".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from lacuner.config import Config as BaseConfig
from lacuner.data import Document, Lost, Splits
from lacuner.losses.weighted_crf import weighted_crf_loss
from lacuner.models.config import CRFHeadConfig, EncoderConfig
from lacuner.models.heads.crf import IMPOSSIBLE, allowed_tags, tag_marginals, viterbi
from lacuner.models.inference import infer_batches, join_batches
from lacuner.models.model import Model
from lacuner.models.tag_sets import tag_set_of
from lacuner.models.tagger import Tagger
from lacuner.training.config import TrainConfig, resolved
from lacuner.training.dataset import TrainingSet, believed_set, dev_scorer
from lacuner.training.loop import Step, StepLoss, fit
from lacuner.training.run_folder import Run
from lacuner.training.stage import new_model

NEEDS = ("weak",)


class Config(BaseConfig):
    """Settings of `weighted_partial`."""

    encoder: EncoderConfig = EncoderConfig()
    head: CRFHeadConfig = CRFHeadConfig()
    train: TrainConfig = TrainConfig()
    folds: int = Field(2, ge=2)
    """Into how many parts the documents are cut."""
    iterations: int = Field(2, ge=1)
    """How often the distributions are renewed."""
    weights: Literal["soft", "hard"] = "soft"
    """A distribution over tags, or all on the best sequence."""


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Learn from `splits.weak`, its gaps filled with distributions."""
    docs = splits.weak or ()
    model = new_model(config.encoder, config.head, docs, run)
    lost = Lost()
    believed = believed_set(model, docs, lost)
    data, plain = believed.data, torch.from_numpy(believed.plain)
    run.say(f"learning from {len(docs):,} documents in {config.folds} folds: {lost}")
    nothing = functional.one_hot(torch.zeros(len(plain), dtype=torch.long), len(tag_set_of(model.head))).float()
    data.targets.probs = nothing * plain.unsqueeze(-1)  # O to begin with; of what is unsure nothing is ever said
    data.targets.known &= ~plain
    for iteration in range(1, config.iterations + 1):
        guessed = [_fold(docs, data, config, run, (iteration, fold)) for fold in range(config.folds)]
        data.targets.probs = torch.stack(guessed).sum(dim=0) * plain.unsqueeze(-1)
    _fit(model, data, config.train, run, "train", splits.dev)
    return Tagger(model)


def _fold(docs: Sequence[Document], data: TrainingSet, config: Config, run: Run, number: tuple[int, int]) -> Tensor:
    """What a model of the other folds thinks of the words of this one; zeros for all other words."""
    iteration, fold = number
    name = f"fold/{iteration}/{fold + 1}"
    model = new_model(config.encoder, config.head, docs, run, name)
    mine = data.sentences.document % config.folds == fold
    features = replace(data.features, costs=np.where(mine, 0, data.features.costs))  # what costs nothing is not learned
    half = config.train.model_copy(update={"epochs": ceil(config.train.epochs / 2), "patience": None})
    _fit(model, replace(data, model=model, features=features), half, run, name)
    return guess(replace(data, model=model), np.flatnonzero(mine), config.weights)


def _fit(
    model: Model, data: TrainingSet, config: TrainConfig, run: Run, name: str, dev: Sequence[Document] | None = None
) -> None:
    with run.stage(name) as stage:
        step = _weighted(data)
        settings = resolved(config, model, data.features)
        fit(model, data.features, lambda _: step, settings, stage, dev_scorer(model, dev))


def _weighted(data: TrainingSet) -> Step:
    def step(indices: Any) -> StepLoss:
        batch, targets = data.batch(indices)
        scores = data.model(batch)
        assert targets.probs is not None
        weighed = (targets.known | (targets.probs > 0).any(dim=-1)) & scores.mask
        words = float(batch.mask.sum())
        return StepLoss(weighted_crf_loss(scores, targets).sum(), words, float(weighed.sum()), words)

    return step


def guess(data: TrainingSet, sentences: np.ndarray, weights: Literal["soft", "hard"]) -> Tensor:
    """The distribution of each word's tags `[words of the row, tags]`, given the labels; zeros in other sentences."""

    def compute(indices: np.ndarray) -> Tensor:
        batch, targets = data.batch(indices)
        scores = data.model(batch)
        marginals = tag_marginals(scores, targets)
        if weights == "soft":
            return marginals
        only = scores.logits.masked_fill(~allowed_tags(scores, targets), IMPOSSIBLE)
        return functional.one_hot(viterbi(replace(scores, logits=only)), marginals.shape[-1]).float()

    return join_batches(infer_batches(data.model, data.features, compute, sentences), data.features.lengths)
