"""Several span models with few random negatives each, and one that learns what they think on average.

What it does: trains a few span models with few random negatives, as `negative_sampling` does, which differ in where
    they start and in what they draw. What one of them takes for an entity by chance the others do not, and on what is
    one they mostly agree: a last model learns the mean of their probabilities for every span, but for labels, which
    stay what they are. With dev, all these probabilities are first made larger or smaller alike, until they amount to
    as many entities as are missing, judged by how frequent entities are in dev. Without dev they stay what they are,
    and the last model finds whatever has some chance to be an entity, not only what is likelier one than none: where
    names are missing as a whole, few models believe in them.
Assumes: that labels are right, and that what is missing is missing at random.
Needs: weak; with dev it chooses thresholds and epochs.
Costs: as many trainings as there are models, side by side where there are cores, and two more: with three models five
    times `trust`.
Departs from the authors: this is our own, from parts of others: negative sampling, the ensemble of RoSTER, and the
    argument of Elkan and Noto about labels that are missing at random.
Reference: Li, Liu and Shi (2021), "Empirical analysis of unlabeled entity problem in named entity recognition"; Meng et
    al. (2021), "Distantly-supervised named entity recognition with noise-robust learning and language model augmented
    self-training"; Elkan and Noto (2008), "Learning classifiers from only positive and unlabeled data".
"""

from __future__ import annotations

from functools import partial

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import one_hot

from lacuner.advice import profile
from lacuner.config import Config as BaseConfig
from lacuner.data import Lost, Splits
from lacuner.models.config import EncoderConfig, SpanHeadConfig
from lacuner.models.inference import probabilities, score_corpus
from lacuner.models.model import Model
from lacuner.models.tagger import Tagger
from lacuner.recipes.negative_sampling import Config as SamplingConfig
from lacuner.recipes.negative_sampling import sampled
from lacuner.techniques.distillation import soft_set, soft_step
from lacuner.training.config import TrainConfig, resolved, slower
from lacuner.training.dataset import Believed, believed_set, span_set
from lacuner.training.parallel import learn_side_by_side
from lacuner.training.run_folder import Run
from lacuner.training.stage import learn_in_stage, new_model

NEEDS = ("weak",)


class Config(BaseConfig):
    """Settings of `ensemble`; `train` is that of each of its models."""

    encoder: EncoderConfig = EncoderConfig()
    head: SpanHeadConfig = SpanHeadConfig()
    train: TrainConfig = TrainConfig()
    models: int = Field(3, ge=1)
    """How many models there are."""
    rate: float = Field(0.5, gt=0)
    """Their negatives a word."""
    scale: bool = True
    """With dev: scale their probabilities to the number of entities that seem to be missing."""
    lenient: float = Field(0.2, gt=0, lt=1)
    """Without dev, which would choose it: how probable a label must be for the last model to find a span."""
    last_epochs: int | None = Field(None, ge=1)
    """Epochs of the model that learns from them; None: twice as many as `train` has."""


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Learn from `splits.weak`."""
    docs, lost = splits.weak or (), Lost()
    model = new_model(config.encoder, config.head, docs, run)
    weak = believed_set(model, docs, lost)
    run.say(f"ensemble: learning from {len(docs):,} documents, {config.models} models first: {lost}")
    learn_side_by_side("ensemble", splits, config, run, {n: _stage(n) for n in range(config.models)})
    models = (_learned(splits, config, run, number) for number in range(config.models))
    total = sum((score_corpus(each, weak.data.features, probabilities) for each in models), torch.zeros(()))
    missing = missing_entities(splits) if config.scale else None
    if missing is not None:
        run.say(f"ensemble: by dev, about {missing:,.0f} entities have no label")
    data = soft_set(weak.data, model, believed(weak, total / config.models, missing), weigh_types=True)
    step = soft_step(data)
    settings = slower(resolved(config.train, model, data.features), 1.0, config.last_epochs or 2 * config.train.epochs)
    head = config.head
    if head.threshold == "dev" and not splits.dev:
        head = head.model_copy(update={"threshold": config.lenient})
    taught = config.model_copy(update={"train": settings, "head": head})
    return learn_in_stage(data, lambda _: step, taught, run, splits.dev, "train").tagger


def _stage(number: int) -> str:
    return f"models/{number}"


def learn_part(splits: Splits, config: Config, run: Run, number: int) -> None:
    """One of the models, in a process of its own."""
    _learned(splits, config, run, number)


def _learned(splits: Splits, config: Config, run: Run, number: int) -> Model:
    """One of the models."""
    docs, name = splits.weak or (), _stage(number)
    spans = span_set(new_model(config.encoder, config.head, docs, run, name), docs, Lost())
    sampling = SamplingConfig(encoder=config.encoder, head=config.head, train=config.train, rate=config.rate)
    learn_in_stage(spans.data, partial(sampled, spans, sampling), config, run, splits.dev, name)
    return spans.model


def missing_entities(splits: Splits) -> float | None:
    """How many entities have no label, by how frequent they are in dev; None if dev cannot tell."""
    data = profile(splits.weak, dev=splits.dev)
    if data.unlabeled_rate is None or data.weak is None:
        return None
    return data.weak.entities * data.unlabeled_rate / (1 - data.unlabeled_rate)


def believed(weak: Believed, mean: Tensor, missing: float | None) -> Tensor:
    """What models think of each span, `[words, widths, classes]`; where somebody has said something, what was said."""
    gaps = torch.from_numpy(weak.plain)
    labels = weak.data.targets.labels.long().clamp(min=0)
    probs = one_hot(labels, mean.shape[-1]).to(mean.dtype)
    probs[gaps] = mean[gaps] if missing is None else scaled(mean[gaps], missing)
    return probs


def scaled(probs: Tensor, missing: float) -> Tensor:
    """Probabilities of O and the types, `[spans, classes]`, such that about so many of the spans are entities.

    All odds of being one are multiplied by the same number: few negatives multiply them, and so do gaps that were taken
    for negatives.
    """
    odds = (1 - probs[:, 0]) / probs[:, 0].clamp(min=1e-6)
    low, high = 1e-9, 1e9
    for _ in range(64):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if float((middle * odds).clamp(max=1).sum()) > missing else (middle, high)
    entity = (low * odds).clamp(max=1).unsqueeze(-1)
    types = probs[:, 1:] / (1 - probs[:, :1]).clamp(min=1e-9)
    return torch.cat([1 - entity, entity * types], dim=-1)
