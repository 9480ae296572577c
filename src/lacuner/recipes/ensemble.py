"""An ensemble of span classifiers with sampled negatives, distilled into one model.

What it does: trains a few span classifiers with negative sampling, which differ in their initial weights and in the
    negatives they sample. A span that one of them predicts by chance is rarely predicted by the others; on real
    entities they mostly agree. A last model is trained on the mean of their probabilities for every unlabeled span;
    labels stay as they are. The members are trained for few epochs with few negatives: a model first learns what
    labeled names have in common, and memorises only later that the unlabeled names among its negatives are no entities.
    After a review (`lacuner review`) fewer names are unlabeled, and the members are trained with more negatives.
    How many entities the last model predicts depends on the data. With dev, the mean probabilities are scaled so that
    they add up to the number of missing entities, estimated from the frequency of entities in dev. Without dev, a fifth
    of the names is hidden from each member. Its predictions for them show at which threshold there are about as many
    mistakes as missed entities; the number of predictions at this threshold estimates the number of missing entities,
    and the threshold of the last model is set so that it predicts as many. If too few names are hidden or found, the
    threshold is 0.5, so that the model only adds probable entities to the matches of a gazetteer. If `entity_ratio` is
    set, the number of missing entities follows from it in both cases.
Assumes: that labels are right and missing at random.
Needs: weak; with dev it also tunes thresholds and selects epochs.
Costs: a short training run per member, in parallel where there are cores, and one that is twice as long for the last
    model: about twice the time of `trust` with three members.
Departs from the authors: this is our own combination of negative sampling, RoSTER's ensemble, and the argument of Elkan
    and Noto about labels that are missing at random.
Reference: Li, Liu and Shi (2021), "Empirical analysis of unlabeled entity problem in named entity recognition"; Meng et
    al. (2021), "Distantly-supervised named entity recognition with noise-robust learning and language model augmented
    self-training"; Elkan and Noto (2008), "Learning classifiers from only positive and unlabeled data".
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import one_hot

from lacuner.advice import profile
from lacuner.data import Document, Lost, Splits, labels_of
from lacuner.models.config import SpanHeadConfig
from lacuner.models.inference import probabilities, score_corpus
from lacuner.models.tagger import Tagger, predict_all
from lacuner.models.types import HasThreshold
from lacuner.recipes import negative_sampling
from lacuner.techniques.distillation import distillation_step, soft_label_set
from lacuner.techniques.entity_ratio import Share, count_missing_entities
from lacuner.techniques.hidden_entries import (
    BALANCED,
    FOLDS,
    OperatingPoint,
    choose_operating_point,
    count_hidden,
    find_new,
    hide_entries,
    write_operating_point,
)
from lacuner.training.config import RecipeConfig, TrainConfig
from lacuner.training.dataset import WeakTrainingSet, weak_training_set
from lacuner.training.parallel import train_members
from lacuner.training.run_folder import Run
from lacuner.training.stage import Selection, load_stage, new_model, train_stage

NEEDS = ("weak",)
GROUP = "recommended"
PAPER = "ours; after Li et al., 2021, and Meng et al., 2021"

MIN_REVIEWED = 20
"""Number of labels that a reviewer has accepted, from which the members are trained with `rate_after_review`."""
REVIEWED = "review"
"""The `source` of what a reviewer has accepted."""


class Config(RecipeConfig):
    """Settings of `ensemble`; `train` applies to every member."""

    LATER: ClassVar[frozenset[str]] = frozenset({"entity_ratio", "rate_after_review"})

    head: SpanHeadConfig = SpanHeadConfig()
    train: TrainConfig = TrainConfig(epochs=6)
    models: int = Field(3, ge=1)
    """Number of ensemble members."""
    rate: float = Field(0.15, gt=0)
    """Number of sampled negatives per word."""
    rate_after_review: float = Field(0.5, gt=0)
    """The same, if a reviewer has accepted at least 20 labels."""
    scale: bool = True
    """With dev: whether the probabilities are scaled to the estimated number of missing entities."""
    hide: bool = True
    """Without dev: whether a fifth of the names is hidden from each member; what it predicts for them replaces dev."""
    entity_ratio: Share | None = None
    """Share of all words that belong to entities, if it is known; by default the number of missing entities is
    estimated from dev or, without dev, from hidden names."""
    lenient: float = Field(0.2, gt=0, lt=1)
    """Without dev and without `hide`: decision threshold of the last model."""
    last_epochs: int | None = Field(None, ge=1)
    """Epochs of the last model; by default twice `train.epochs`."""


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Train on `splits.weak`."""
    docs, lost = splits.weak or (), Lost()
    model = new_model(config, docs, run)
    weak = weak_training_set(model, docs, lost)
    run.log(f"ensemble: training on {len(docs):,} documents, {config.models} members first: {lost}")

    # 1. the members, each in a stage of its own
    stages = {number: f"models/{number}" for number in range(config.models)}
    run.plan(
        dict.fromkeys(stages.values(), config.train.epochs) | {"train": config.last_epochs or 2 * config.train.epochs}
    )
    train_members("ensemble", splits, config, run, stages, partial(train_member, splits, config, run))
    summed_probs, counts = torch.zeros(()), None
    for number, name in stages.items():
        member = new_model(config, docs, run, name)
        load_stage(run, name, member)
        summed_probs = summed_probs + score_corpus(member, weak.as_complete.features, probabilities)
        if config.hide and not splits.dev:
            member_counts = count_hidden(docs, predict_all(member, docs), number % FOLDS)
            counts = member_counts if counts is None else counts + member_counts
    point = None if counts is None else choose_operating_point(counts, config.models)
    if point is not None:
        write_operating_point(point, run.folder)

    # 2. soft labels: the members' mean where nothing is labeled
    missing = estimate_missing_entities(splits, config, point, run.log)
    probs = soft_labels(weak, summed_probs / config.models, missing if config.scale and splits.dev else None)

    # 3. one model that learns them
    data = soft_label_set(weak.as_complete, model, probs, weight_types=True)
    tune = config.head.threshold == "dev" and not splits.dev
    epochs = config.last_epochs or 2 * config.train.epochs
    selection = Selection(splits.dev, config.lenient if tune else config.head.threshold)
    settings = config.train.with_epochs(epochs)
    train_stage(data, lambda _: distillation_step(data), settings, run, selection)
    if tune and (config.hide or missing is not None):
        assert isinstance(model.head, HasThreshold)
        count = point.new if point is not None and config.entity_ratio is None else missing
        if count is None:
            model.head.threshold, why = BALANCED, ": the models find too few hidden names to choose another"
        else:
            model.head.threshold, why = match_count(docs, predict_all(model, docs), count), ""
        run.log(f"ensemble: decision threshold {model.head.threshold:.3f}{why}")
    return Tagger(model)


def estimate_missing_entities(
    splits: Splits, config: Config, point: OperatingPoint | None, log: Callable[[str], None]
) -> float | None:
    """The number of unlabeled entities: by the entity ratio if it is set, by dev, or by hidden names; None if unknown.

    `point` is the operating point of the hidden names.
    """
    missing, source, details = None, "", ""
    if config.entity_ratio is not None:
        missing, source = count_missing_entities(config.entity_ratio, splits.weak or ()), "the entity ratio"
    elif splits.dev:
        missing, source = missing_entities(splits) if config.scale else None, "dev"
    elif point is not None:
        missing, source = point.missing, "hidden names"
        details = f"; a member finds {100 * point.recall:.0f} % of these at threshold {point.threshold:.2f}"
    if missing is not None:
        log(f"ensemble: about {missing:,.0f} entities are unlabeled, estimated from {source}{details}")
    return missing


def match_count(docs: Sequence[Document], predicted: Sequence[Document], count: float) -> float:
    """The threshold at which a model predicts `count` entities where nothing is labeled.

    If that is none, or if nothing is predicted there at all, it is at least 0.5.
    """
    scores = sorted(
        span.score or 0.0
        for doc, prediction in zip(docs, predicted, strict=True)
        for span in find_new(doc, prediction.spans)
    )
    if not scores or not round(count):
        threshold = max([BALANCED, *scores])
    else:
        threshold = scores[max(len(scores) - round(count), 0)]
    return min(max(threshold, 0.02), 0.98)


def train_member(splits: Splits, config: Config, run: Run, number: int) -> None:
    """Train one ensemble member with negative sampling, in its own stage."""
    docs, name = splits.weak or (), f"models/{number}"
    model = new_model(config, docs, run, name)
    weak = weak_training_set(
        model, list(hide_entries(docs, number % FOLDS)) if config.hide and not splits.dev else docs, Lost()
    )
    rate = member_rate(docs, config)
    sampling = negative_sampling.Config(encoder=config.encoder, head=config.head, train=config.train, rate=rate)
    make_step = partial(negative_sampling.sampling_step, weak, sampling)
    train_stage(weak.as_annotated, make_step, config.train, run, Selection(splits.dev, config.head.threshold), name)


def member_rate(docs: Sequence[Document], config: Config) -> float:
    """Number of sampled negatives per word of a member: more if a reviewer has accepted labels, one by one.

    >>> from lacuner.data import Span
    >>> doc = Document("1", "Mara left", spans=(Span(0, 4, "PER", None, "review"),))
    >>> member_rate([doc] * 19, Config()), member_rate([doc] * 20, Config())
    (0.15, 0.5)
    """
    accepted = sum(span.source == REVIEWED for doc in docs if not doc.complete for span in doc.spans)
    return config.rate if accepted < MIN_REVIEWED else config.rate_after_review


def missing_entities(splits: Splits) -> float | None:
    """Estimated number of unlabeled entities, from the entity density of dev; None if dev cannot tell.

    Only labels that dev has are counted: of the others it says nothing.
    """
    rate, labels = profile(splits.weak, dev=splits.dev).unlabeled_rate, set(labels_of(splits.dev or ()))
    if rate is None:
        return None
    return sum(span.label in labels for doc in splits.weak or () for span in doc.spans) * rate / (1 - rate)


def soft_labels(weak: WeakTrainingSet, mean: Tensor, missing: float | None) -> Tensor:
    """The members' mean probabilities at unlabeled spans, the labels elsewhere: `[words, widths, classes]`."""
    labels = weak.as_complete.targets.labels.long().clamp(min=0)
    probs = one_hot(labels, mean.shape[-1]).to(mean.dtype)
    unlabeled = mean[weak.unlabeled]
    probs[weak.unlabeled] = unlabeled if missing is None else scale_to_count(unlabeled, missing)
    return probs


def scale_to_count(probs: Tensor, count: float) -> Tensor:
    """Scale the entity odds of all spans by one factor so that the entity probabilities sum to about `count`.

    Sampled negatives inflate the odds, and missing labels that were sampled deflate them, both by a constant factor.
    `probs` `[spans, classes]` are the probabilities of O and of each type.

    >>> scale_to_count(torch.tensor([[0.5, 0.5], [0.5, 0.5]]), 0.5)[:, 1].round(decimals=2)
    tensor([0.2500, 0.2500])
    """
    odds = (1 - probs[:, 0]) / probs[:, 0].clamp(min=1e-6)
    low, high = 1e-9, 1e9
    for _ in range(64):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if float((middle * odds).clamp(max=1).sum()) > count else (middle, high)
    entity = (low * odds).clamp(max=1).unsqueeze(-1)
    types = probs[:, 1:] / (1 - probs[:, :1]).clamp(min=1e-9)
    return torch.cat([1 - entity, entity * types], dim=-1)
