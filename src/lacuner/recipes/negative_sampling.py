"""Take a few unlabelled spans for negatives, new ones in every step, and say nothing of the others.

What it does: a span model learns from every labelled span and, in a sentence of n words, from `ceil(rate * n)` of the
    unlabelled ones. An unlabelled entity is seldom among them, so it is seldom taught as "no entity". The `uniform`
    sampler takes all alike; the `weighted` one prefers spans that the model itself is unsure of and that do not look
    like entities.
Assumes: that labels are right, and that what is missing is missing at random; entities must be few among all spans.
Needs: weak.
Costs: one training of a span model, about as long as `trust`.
Departs from the authors: spans have a greatest width; documents that are complete give all their negatives; spans that
    touch an unsure one are never drawn.
Reference: Li, Liu and Shi (2021), "Empirical analysis of unlabeled entity problem in named entity recognition"; Li, Liu
    and Shi (2022), "Rethinking negative sampling for handling missing entity annotations".
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Literal

import numpy as np
from pydantic import Field
from torch import Tensor

from lacuner.config import Config as BaseConfig
from lacuner.losses.cross_entropy import cross_entropy
from lacuner.losses.negatives import Margin, draw, draw_by_rank, entropy, how_many, weights
from lacuner.models.tagger import Tagger
from lacuner.recipes.parts import EncoderConfig, Splits
from lacuner.recipes.spans import SpanHeadConfig, SpanSet, learn_spans, new_span_set
from lacuner.training.loop import Step, StepLoss
from lacuner.training.run import Run
from lacuner.training.settings import TrainConfig
from lacuner.training.watch import Watch
from lacuner.types import SpanScores, Targets

NEEDS = ("weak",)
USES: tuple[str, ...] = ()

Sampler = Callable[[SpanScores, Tensor, Tensor], Tensor]
"""From scores, candidates and how many are wanted of each sentence to those that are drawn."""


class Config(BaseConfig):
    """Settings of `negative_sampling`."""

    encoder: EncoderConfig = EncoderConfig()
    head: SpanHeadConfig = SpanHeadConfig()
    train: TrainConfig = TrainConfig()
    sampler: Literal["uniform", "weighted", "top", "middle", "bottom"] = "uniform"
    """`top`, `middle`, `bottom` take the spans of that uncertainty: an experiment, not a method."""
    rate: float = Field(0.35, gt=0)
    """Negatives a word."""
    mu: float = Field(8.0, ge=0)
    """`weighted`: how much more spans count that do not look like entities."""
    margin: Margin = "all"
    """`weighted`: the lead of O is over all classes, O included, or over the types alone."""
    temperature: float = Field(1.0, gt=0)
    """`weighted`: times `sqrt(epochs - epoch)`; the lower, the less is left to chance."""
    uniform_epochs: int = Field(0, ge=0)
    """`weighted`: so many epochs are uniform first."""


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Learn from `splits.weak`."""
    spans = new_span_set(config, splits.weak or (), run)
    learn_spans(spans, lambda epoch: sampled(spans, config, epoch, run.watch), config, run, splits.dev)
    return Tagger(spans.model)


def sampler_of(config: Config, epoch: int) -> Sampler:
    """How negatives are drawn in an epoch."""
    kind = "uniform" if config.sampler == "weighted" and epoch < config.uniform_epochs else config.sampler
    temperature = config.temperature * sqrt(max(config.train.epochs - epoch, 1))

    def sampler(scores: SpanScores, candidates: Tensor, counts: Tensor) -> Tensor:
        if kind == "uniform":
            return draw(candidates, counts)
        if kind == "weighted":
            return draw(candidates, counts, weights(scores.logits, config.mu, config.margin) / temperature)
        return draw_by_rank(candidates, counts, entropy(scores.logits), kind)

    return sampler


def sampled(spans: SpanSet, config: Config, epoch: int, watch: Watch | None = None) -> Step:
    """The step of an epoch: cross entropy over what is known and what is drawn."""
    sampler = sampler_of(config, epoch)

    def step(indices: np.ndarray) -> StepLoss:
        batch, targets = spans.data.batch(indices)
        scores = spans.model(batch)
        drawn = sampler(scores, spans.candidates(indices, targets.known), how_many(batch.mask.sum(dim=1), config.rate))
        if watch is not None:
            watch.drew(epoch, spans.data, indices, drawn, scores.logits)
        known = targets.known | drawn
        losses = cross_entropy(scores, Targets(targets.labels, known, targets.weight))
        return StepLoss(losses.sum(), float(batch.mask.sum()), float(known.sum()), float(scores.mask.sum()))

    return step
