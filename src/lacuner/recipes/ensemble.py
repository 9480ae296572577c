"""Several span models with few random negatives each, and one that learns what they think on average.

What it does: trains a few span models with `negative_sampling`, which differ in where they start and in the negatives
    that they draw. What one of them takes for an entity by chance the others do not, and on what is one they mostly
    agree. A new model learns the mean of their probabilities for every span, but for labels, which stay what they are.
Assumes: that labels are right, and that what is missing is missing at random.
Needs: weak; with dev it chooses thresholds and epochs.
Costs: as many trainings as there are models, side by side where there are cores, and two more.
Departs from the authors: this is our own: the ensemble of RoSTER on top of negative sampling.
Reference: Li, Liu and Shi (2021), "Empirical analysis of unlabeled entity problem in named entity recognition"; Meng et
    al. (2021), "Distantly-supervised named entity recognition with noise-robust learning and language model augmented
    self-training" (RoSTER).
"""

from __future__ import annotations

from functools import partial

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import one_hot

from lacuner.config import Config as BaseConfig
from lacuner.models.tagger import Tagger
from lacuner.recipes.distilling import soft_set, soft_step
from lacuner.recipes.negative_sampling import Config as SamplingConfig
from lacuner.recipes.negative_sampling import sampled
from lacuner.recipes.o_values import Believed, believed_set
from lacuner.recipes.parts import EncoderConfig, Splits, learn_in_stage, new_model, resolved
from lacuner.recipes.self_training import of_words, probabilities, slower
from lacuner.recipes.side_by_side import learn_side_by_side
from lacuner.recipes.spans import SpanHeadConfig, SpanSet, span_set
from lacuner.training.run import Run
from lacuner.training.settings import TrainConfig
from lacuner.types import Lost

NEEDS = ("weak",)
USES: tuple[str, ...] = ()


class Config(BaseConfig):
    """Settings of `ensemble`; `train` is that of each of its models."""

    encoder: EncoderConfig = EncoderConfig()
    head: SpanHeadConfig = SpanHeadConfig()
    train: TrainConfig = TrainConfig()
    models: int = Field(3, ge=1)
    """How many models there are."""
    rate: float = Field(0.5, gt=0)
    """Their negatives a word."""
    last_epochs: int | None = Field(None, ge=1)
    """Epochs of the model that learns from them; None: twice as many as `train` has."""


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Learn from `splits.weak`."""
    docs, lost = splits.weak or (), Lost()
    model = new_model(config.encoder, config.head, docs, run)
    weak = believed_set(model, docs, lost)
    run.say(f"ensemble: learning from {len(docs):,} documents, {config.models} models first: {lost}")
    learn_side_by_side("ensemble", splits, config, run, {n: _stage(n) for n in range(config.models)})
    total = torch.zeros(())
    for number in range(config.models):
        spans = _learned(splits, config, run, number)
        total = total + of_words(spans.model, spans.data.features, probabilities)
    data = soft_set(weak.data, model, believed(weak, total / config.models), weigh_types=True)
    step = soft_step(data)
    settings = slower(resolved(config.train, model, data.features), 1.0, config.last_epochs or 2 * config.train.epochs)
    taught = config.model_copy(update={"train": settings})
    return learn_in_stage(data, lambda _: step, taught, run, splits.dev, "train").tagger


def _stage(number: int) -> str:
    return f"models/{number}"


def learn_part(splits: Splits, config: Config, run: Run, number: int) -> None:
    """One of the models, in a process of its own."""
    _learned(splits, config, run, number)


def _learned(splits: Splits, config: Config, run: Run, number: int) -> SpanSet:
    """One of the models, with the documents as it was given them."""
    docs, name = splits.weak or (), _stage(number)
    spans = span_set(new_model(config.encoder, config.head, docs, run, name), docs, Lost())
    sampling = SamplingConfig(encoder=config.encoder, head=config.head, train=config.train, rate=config.rate)
    learn_in_stage(spans.data, partial(sampled, spans, sampling), config, run, splits.dev, name)
    return spans


def believed(weak: Believed, mean: Tensor) -> Tensor:
    """What models think of each span, `[words, widths, classes]`; where somebody has said something, what was said."""
    said = weak.data.targets.known & ~torch.from_numpy(weak.plain)
    truth = one_hot(weak.data.targets.labels.long().clamp(min=0), mean.shape[-1]).to(mean.dtype)
    return torch.where(said.unsqueeze(-1), truth, mean)
