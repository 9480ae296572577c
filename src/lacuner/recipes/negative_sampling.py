"""Take a few unlabelled spans for negatives, new ones in every step, and say nothing of the others.

What it does: a span model learns from every labelled span and, in a sentence of n words, from `ceil(rate * n)` of the
    unlabelled ones. An unlabelled entity is seldom among them, so it is seldom taught as "no entity". The `uniform`
    sampler takes all alike; the `weighted` one prefers spans that the model itself is unsure of and that do not look
    like entities.
Assumes: that labels are right, and that what is missing is missing at random; entities must be few among all spans. Use
    it first: for labels with gaps, be they a few or most, when nothing else is known of them.
Needs: weak; with dev it chooses a threshold too.
Costs: one training of a span model, about as long as `trust`; one more for each rate that it is to choose from, and
    twice as long with a held-out oracle.
Departs from the authors: spans have a greatest width; documents that are complete give all their negatives; spans that
    touch an unsure one are never drawn. The head has one hidden layer of 96 with start, end and width by default
    (`head.variant=product` is theirs, but for its size), dropout 0.3, the optimizer of all our recipes, and there are
    0.5 negatives a word. A threshold is chosen on dev. The model's own opinion is that of the step, with dropout.
Reference: Li, Liu and Shi (2021), "Empirical analysis of unlabeled entity problem in named entity recognition"; Li, Liu
    and Shi (2022), "Rethinking negative sampling for handling missing entity annotations".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import sqrt
from typing import Annotated, Literal

import numpy as np
from pydantic import Field
from torch import Tensor

from lacuner.config import Config as BaseConfig
from lacuner.config import OnlyWith
from lacuner.data import Document, Lost, Splits
from lacuner.losses.cross_entropy import cross_entropy
from lacuner.models.config import EncoderConfig, SpanHeadConfig
from lacuner.models.model import Model
from lacuner.models.tagger import Tagger
from lacuner.models.targets import CorpusTargets
from lacuner.models.types import SpanScores, Targets
from lacuner.sampling.span_negatives import (
    Margin,
    negatives_per_sentence,
    sample_by_rank,
    sample_negatives,
    sampling_weights,
    span_entropy,
)
from lacuner.techniques.cross_fitting import judged_by_halves
from lacuner.training.callbacks import TrainingCallback
from lacuner.training.config import TrainConfig
from lacuner.training.dataset import SpanSet, span_set
from lacuner.training.loop import Step, StepLoss
from lacuner.training.run_folder import Run
from lacuner.training.stage import Learned, best_on_dev, learn_in_stage, new_model, new_span_set

NEEDS = ("weak",)

_WEIGHTED = OnlyWith("sampler", ("weighted",))


class Config(BaseConfig):
    """Settings of `negative_sampling`."""

    encoder: EncoderConfig = EncoderConfig()
    head: SpanHeadConfig = SpanHeadConfig()
    train: TrainConfig = TrainConfig()
    sampler: Literal["uniform", "weighted", "top", "middle", "bottom"] = "uniform"
    """`top`, `middle`, `bottom` take the spans of that uncertainty: an experiment, not a method. (In the paper's the
    gaps were never drawn; here they may be.)"""
    rate: float = Field(0.5, gt=0)
    """Negatives a word. The more is missing, the fewer there should be. The paper has 0.35; `sampling_forms.toml` and
    `sampling_sweeps.toml` under `benchmarks/` compare."""
    try_rate: tuple[Annotated[float, Field(gt=0)], ...] = ()
    """With dev: train once with each of these, and keep the best; `rate` is not used then."""
    mu: Annotated[float, _WEIGHTED] = Field(8.0, ge=0)
    """`weighted`: how much more spans count that do not look like entities."""
    margin: Annotated[Margin, _WEIGHTED] = "all"
    """`weighted`: the lead of O is over all classes, O included, or over the types alone."""
    temperature: Annotated[float, _WEIGHTED] = Field(1.0, gt=0)
    """`weighted`: times `sqrt(epochs - epoch)`; the lower, the less is left to chance."""
    uniform_epochs: Annotated[int, _WEIGHTED] = Field(0, ge=0)
    """`weighted`: so many epochs are uniform first."""
    oracle: Annotated[Literal["self", "heldout"], OnlyWith("sampler", ("weighted", "top", "middle", "bottom"))] = "self"
    """Who is unsure: the model itself, or, for each half of the documents, one that learned from the other half."""


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Learn from `splits.weak`."""
    weak = splits.weak or ()

    def learn(rate: float, name: str) -> Learned:
        spans, chosen = new_span_set(config, weak, run), config.model_copy(update={"rate": rate})
        fixed = _by_halves(spans, weak, config, run) if config.oracle == "heldout" else None
        make_step = partial(sampled, spans, chosen, callback=run.callback, fixed=fixed)
        return learn_in_stage(spans.data, make_step, config, run, splits.dev, name)

    if config.try_rate and splits.dev is not None:
        return best_on_dev(config.try_rate, learn, "rate", run)
    if config.try_rate:
        run.say(f"there is no dev to choose a rate by: it is {config.rate:g}")
    return learn(config.rate, "train").tagger


def sampled(
    spans: SpanSet,
    config: Config,
    epoch: int,
    callback: TrainingCallback | None = None,
    fixed: CorpusTargets | None = None,
) -> Step:
    """The step of an epoch: cross entropy over what is known and what is drawn."""
    kind = "uniform" if config.sampler == "weighted" and epoch < config.uniform_epochs else config.sampler
    temperature = config.temperature * sqrt(max(config.train.epochs - epoch, 1))

    def drawn_from(scores: SpanScores, indices: np.ndarray, candidates: Tensor, counts: Tensor) -> Tensor:
        if kind == "uniform":
            return sample_negatives(candidates, counts)
        said = fixed.collate(indices).weight.to(counts.device) if fixed else _opinion(config, scores.logits)
        if kind == "weighted":
            return sample_negatives(candidates, counts, said / temperature)
        return sample_by_rank(candidates, counts, said, kind)

    def step(indices: np.ndarray) -> StepLoss:
        batch, targets = spans.data.batch(indices)
        scores = spans.model(batch)
        counts = negatives_per_sentence(spans.words[indices], config.rate).to(batch.mask.device)
        drawn = drawn_from(scores, indices, spans.candidates(indices, targets.known), counts)
        if callback is not None:
            callback.on_negatives_sampled(epoch, spans.data, indices, drawn, scores.logits)
        known = targets.known | drawn
        losses = cross_entropy(scores, Targets(targets.labels, known, targets.weight))
        return StepLoss(losses.sum(), float(batch.mask.sum()), float(known.sum()), float(scores.mask.sum()))

    return step


def _opinion(config: Config, logits: Tensor) -> Tensor:
    """What the sampler goes by: a weight, or the uncertainty alone."""
    return sampling_weights(logits, config.mu, config.margin) if config.sampler == "weighted" else span_entropy(logits)


def _by_halves(spans: SpanSet, weak: Sequence[Document], config: Config, run: Run) -> CorpusTargets:
    """The opinions of models that learned, with uniform negatives, from the other half of the documents."""
    plain = config.model_copy(update={"sampler": "uniform"})

    def learn(docs: Sequence[Document], name: str) -> Model:
        half = span_set(new_model(config.encoder, config.head, weak, run, name), docs, Lost())
        learn_in_stage(half.data, partial(sampled, half, plain), config, run, None, name)
        return half.model

    found = judged_by_halves(spans, weak, learn, partial(_opinion, config))
    return replace(spans.open, weight=found)
