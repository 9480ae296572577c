"""Let the pull of unlabelled spans fade: cross entropy at first, later a sigmoid that stops pushing where it is sure.

What it does: a span model; labelled spans have cross entropy, half of the unlabelled ones `beta * CE + (1 - beta) * S`
    with `beta = exp(-epoch / w)`. S is bounded: once the model is sure that an unlabelled span is an entity, that span
    pushes it no more.
Assumes: that labels are right, that the gaps are at random, and that the model learns what entities look like before it
    learns the gaps by heart. Use it where much is missing and a pretrained encoder knows much; on clean labels cross
    entropy is better.
Needs: weak; with dev it chooses a threshold, and w if it is told to.
Costs: one training of a span model, about as long as `trust`; one more for each w that it is to choose from.
Departs from the authors: the sigmoid is of the lead of O, with the sign that the text describes (see the loss); spans
    have a greatest width that the data decides; documents that are complete give all their negatives; spans that touch
    an unsure one never take part. The threshold may also be below that of the most probable class, and then finds more.
    The paper's ablations: `share=1.0` (no random sampling), `negatives=ce` (no sigmoid), `positives=faded` (no separate
    training), `positives=both` (sigmoid on labelled spans too), `negatives=both` (cross entropy on unlabelled too).
Reference: Kang et al. (2022), "A noise-robust loss for unlabeled entity problem in named entity recognition" (NRCES).
"""

from __future__ import annotations

from math import exp
from typing import Annotated

import numpy as np
import torch
from pydantic import Field

from lacuner.config import Config as BaseConfig
from lacuner.data import Splits
from lacuner.losses.nrces import Part, Sigmoid, nrces_loss
from lacuner.models.config import EncoderConfig, SpanHeadConfig
from lacuner.models.tagger import Tagger
from lacuner.training.config import TrainConfig
from lacuner.training.dataset import SpanSet
from lacuner.training.loop import Step, StepLoss
from lacuner.training.run_folder import Run
from lacuner.training.stage import Learned, best_on_dev, learn_in_stage, new_span_set

NEEDS = ("weak",)


class Config(BaseConfig):
    """Settings of `nrces`."""

    encoder: EncoderConfig = EncoderConfig()
    head: SpanHeadConfig = SpanHeadConfig()
    train: TrainConfig = TrainConfig()
    w: float = Field(2.0, gt=0)
    """How slowly cross entropy fades, in epochs."""
    try_w: tuple[Annotated[float, Field(gt=0)], ...] = ()
    """With dev: train once with each of these, and keep the best; `w` is not used then."""
    share: float = Field(0.5, gt=0, le=1)
    """The share of the unlabelled spans, drawn once, that take part."""
    sigmoid: Sigmoid = "margin"
    """The bounded term: see the loss."""
    positives: Part = "ce"
    """The loss of labelled spans: `ce`, `faded` or the sum of `both`."""
    negatives: Part = "faded"
    """The loss of unlabelled spans: `ce`, `faded` or the sum of `both`."""


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Learn from `splits.weak`."""

    def learn(w: float, name: str) -> Learned:
        spans = new_span_set(config, splits.weak or (), run)
        take_part(spans, config.share, run.seed_for("negatives"))
        return learn_in_stage(
            spans.data, lambda epoch: faded(spans, exp(-epoch / w), config), config, run, splits.dev, name
        )

    if config.try_w and splits.dev is not None:
        return best_on_dev(config.try_w, learn, "w", run)
    if config.try_w:
        run.say(f"there is no dev to choose w by: it is {config.w:g}")
    return learn(config.w, "train").tagger


def take_part(spans: SpanSet, share: float, seed: int) -> None:
    """Draw, once and for all, which of the unlabelled spans count as negatives."""
    drawn = torch.rand(spans.open.known.shape, generator=torch.Generator().manual_seed(seed)) < share
    spans.data.targets.known |= spans.open.known & drawn


def faded(spans: SpanSet, beta: float, config: Config) -> Step:
    """The step of an epoch in which so much of the cross entropy is left."""

    def step(indices: np.ndarray) -> StepLoss:
        batch, targets = spans.data.batch(indices)
        scores = spans.model(batch)
        losses = nrces_loss(scores, targets, beta, config.sigmoid, config.positives, config.negatives)
        known, positions = float((targets.known & scores.mask).sum()), float(scores.mask.sum())
        return StepLoss(losses.sum(), float(batch.mask.sum()), known, positions)

    return step
