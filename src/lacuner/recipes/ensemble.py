"""Several span models with few random negatives each, and one that learns what they think on average.

What it does: cuts the documents into parts; for each, a span model learns from the others, with few random negatives,
    as in `negative_sampling`. What one of them takes for an entity by chance the others do not, and on what is one they
    mostly agree: a last model learns the mean of their probabilities for every span, but for labels, which stay what
    they are. How probable entities are on the whole follows from the labels: those that were kept from a model it finds
    again or not, and of the entities without a label it should find the same share.
Assumes: that labels are right, and that what is missing is missing at random.
Needs: weak; with dev it chooses thresholds and epochs.
Costs: as many trainings as there are models, side by side where there are cores, and two more: with three models four
    to five times `trust`.
Departs from the authors: this is our own, from parts of others: negative sampling, the ensemble of RoSTER, and the
    argument of Elkan and Noto about labels that are missing at random.
Reference: Li, Liu and Shi (2021), "Empirical analysis of unlabeled entity problem in named entity recognition"; Meng et
    al. (2021), "Distantly-supervised named entity recognition with noise-robust learning and language model augmented
    self-training"; Elkan and Noto (2008), "Learning classifiers from only positive and unlabeled data".
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import one_hot

from lacuner.config import Config as BaseConfig
from lacuner.models.tagger import Tagger
from lacuner.recipes.distilling import soft_set, soft_step
from lacuner.recipes.evidence import scaled, weigh
from lacuner.recipes.heldout import cut
from lacuner.recipes.negative_sampling import Config as SamplingConfig
from lacuner.recipes.negative_sampling import sampled
from lacuner.recipes.o_values import Believed, believed_set
from lacuner.recipes.parts import EncoderConfig, Splits, learn_in_stage, new_model, resolved
from lacuner.recipes.self_training import of_words, probabilities, slower
from lacuner.recipes.side_by_side import learn_side_by_side
from lacuner.recipes.spans import SpanHeadConfig, span_set
from lacuner.training.data import LOOSE
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
    models: int = Field(3, ge=2)
    """How many models there are, and parts that one of them each does not see."""
    rate: float = Field(0.5, gt=0)
    """Their negatives a word."""
    scale: bool = True
    """Scale their probabilities to the number of entities that seem to be missing, or take them as they are."""
    last_epochs: int | None = Field(None, ge=1)
    """Epochs of the model that learns from them; None: twice as many as `train` has."""


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Learn from `splits.weak`."""
    docs, lost = splits.weak or (), Lost()
    model = new_model(config.encoder, config.head, docs, run)
    weak = believed_set(model, docs, lost)
    run.say(f"ensemble: learning from {len(docs):,} documents, {config.models} models first: {lost}")
    learn_side_by_side("ensemble", splits, config, run, {n: _stage(n) for n in range(config.models)})
    part_of, total, found = cut(docs, config.models), torch.zeros(()), list(docs)
    for number in range(config.models):
        tagger = _learned(splits, config, run, number)
        total = total + of_words(tagger.model, weak.data.features, probabilities)
        tagger.model.head.threshold = LOOSE
        unseen = np.flatnonzero(part_of == number).tolist()
        for place, doc in zip(unseen, tagger.predict([docs[place] for place in unseen]), strict=True):
            found[place] = doc
    evidence = weigh(docs, found)
    run.say(f"ensemble: beside {evidence.labels:,} labels about {evidence.missing():,.0f} seem to be missing")
    probs = believed(weak, total / config.models, evidence.missing() if config.scale else None)
    data = soft_set(weak.data, model, probs, weigh_types=True)
    step = soft_step(data)
    settings = slower(resolved(config.train, model, data.features), 1.0, config.last_epochs or 2 * config.train.epochs)
    taught = config.model_copy(update={"train": settings})
    return learn_in_stage(data, lambda _: step, taught, run, splits.dev, "train").tagger


def _stage(number: int) -> str:
    return f"models/{number}"


def learn_part(splits: Splits, config: Config, run: Run, number: int) -> None:
    """One of the models, in a process of its own."""
    _learned(splits, config, run, number)


def _learned(splits: Splits, config: Config, run: Run, number: int) -> Tagger:
    """The model that does not see a part of the documents."""
    docs, name = splits.weak or (), _stage(number)
    others = [doc for doc, part in zip(docs, cut(docs, config.models), strict=True) if part != number]
    spans = span_set(new_model(config.encoder, config.head, docs, run, name), others, Lost())
    sampling = SamplingConfig(encoder=config.encoder, head=config.head, train=config.train, rate=config.rate)
    return learn_in_stage(spans.data, partial(sampled, spans, sampling), config, run, splits.dev, name).tagger


def believed(weak: Believed, mean: Tensor, missing: float | None) -> Tensor:
    """What models think of each span, `[words, widths, classes]`; where somebody has said something, what was said."""
    gaps = torch.from_numpy(weak.plain)
    labels = weak.data.targets.labels.long().clamp(min=0)
    probs = one_hot(labels, mean.shape[-1]).to(mean.dtype)
    probs[gaps] = mean[gaps] if missing is None else scaled(mean[gaps], missing)
    return probs
