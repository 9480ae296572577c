"""Negative sampling: train on the labeled spans and a few sampled unlabeled ones.

What it does: a span classifier is trained on every labeled span and, in a sentence of n words, on `ceil(rate * n)` of
    the unlabeled spans, resampled in every step. An unlabeled entity is rarely among them, so it is rarely trained as a
    negative. The `uniform` sampler treats all unlabeled spans alike. The `weighted` sampler prefers spans that do not
    look like entities: a span has the weight `(1 + v)^(mu / T)`, where `v` is the probability of O minus that of the
    best type, and `T` falls from `sqrt(epochs)` to 1.
Assumes: that labels are right and missing at random, and that entities are few among all spans. A good first choice
    for incomplete labels when nothing else is known about them.
Needs: weak; with dev it also tunes the decision threshold.
Costs: one training run of a span classifier, about as long as `trust`; one more for each rate to choose from.
Departs from the authors: spans have a maximum width. Complete documents contribute all their negatives, and spans that
    overlap an unsure one are never sampled. By default, the head has one hidden layer of 96 with start, end and width
    (`head.variant=product` is theirs, except for its size), dropout 0.3, and the optimiser of all our recipes; there
    are 0.5 negatives per word. The threshold is tuned on dev. The weights of the sampler come from the training step
    itself, with dropout. The paper's weight is `exp(u (1 + v)^8 / T)` with the entropy `u`
    (`ablation.weighting=printed`, `mu=8`). Both readings of it sample more unlabeled entities than the uniform sampler:
    if O counts for `v` (`ablation.margin=all`), the weights are nearly uniform; if not, nearly all negatives are spans
    of high entropy, and with the models that we tried many of these are unlabeled entities. Without `u` and `exp`,
    fewer unlabeled entities are sampled from the second epoch on.
Reference: Li, Liu and Shi (2021), "Empirical analysis of unlabeled entity problem in named entity recognition"; Li, Liu
    and Shi (2022), "Rethinking negative sampling for handling missing entity annotations".
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import sqrt
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError
from torch import Tensor

from lacuner.config import Config as BaseConfig
from lacuner.config import OnlyWith
from lacuner.corpus.stored import StoredDocuments
from lacuner.data import Document, Lost, Splits
from lacuner.errors import ConfigError, TrainingError
from lacuner.losses.cross_entropy import cross_entropy
from lacuner.models.config import SpanHeadConfig
from lacuner.models.inference import score_corpus
from lacuner.models.tagger import Tagger
from lacuner.models.targets import CorpusTargets
from lacuner.models.types import SpanScores, Targets
from lacuner.sampling.span_negatives import (
    Margin,
    Rank,
    Weighting,
    negatives_per_sentence,
    sample_by_rank,
    sample_negatives,
    sampling_weights,
    span_entropy,
)
from lacuner.training.callbacks import TrainingCallback
from lacuner.training.config import RecipeConfig
from lacuner.training.dataset import WeakTrainingSet, assign_folds, weak_training_set
from lacuner.training.run_folder import Run
from lacuner.training.stage import Selection, StageResult, best_on_dev, name_stages, new_model, train_stage
from lacuner.training.steps import Step, loss_step

NEEDS = ("weak",)
GROUP = "recommended"
PAPER = "Li et al., 2021 and 2022"
STREAMS = True

_WEIGHTED = OnlyWith("sampler", ("weighted",))


class Ablation(BaseConfig):
    """Switches that only experiments need."""

    rank: Rank | None = None
    """Uncertainty of the spans that are sampled instead: top, middle or bottom (an experiment of the paper)."""
    weighting: Weighting = "margin"
    """Weighted sampler: weight of a span: by its margin, by margin and entropy, or the paper's printed formula."""
    margin: Margin = "types"
    """Weighted sampler: whether the margin of O is taken over the types alone, or over all classes, O included."""
    uniform_epochs: int = Field(0, ge=0)
    """Weighted sampler: number of epochs at the beginning that sample uniformly."""
    oracle: Literal["self", "heldout"] = "self"
    """Model that measures uncertainty: the one in training, or a cross-fitted one that has not seen the document."""


class Config(RecipeConfig):
    """Settings of `negative_sampling`."""

    RENAMED: ClassVar[Mapping[str, str]] = {
        "margin": "ablation.margin",
        "uniform_epochs": "ablation.uniform_epochs",
        "oracle": "ablation.oracle",
    }

    head: SpanHeadConfig = SpanHeadConfig()
    sampler: Literal["uniform", "weighted"] = "uniform"
    """Sampler of the negatives."""
    rate: float = Field(0.5, gt=0)
    """Number of sampled negatives per word; lower it if many labels are missing (the paper uses 0.35)."""
    try_rate: tuple[Annotated[float, Field(gt=0)], ...] = ()
    """Rates to try, one training run each; the best on dev is kept, and `rate` is ignored."""
    mu: Annotated[float, _WEIGHTED] = Field(2.0, ge=0)
    """Exponent of the weighted sampler: the higher, the more it prefers spans that do not look like entities."""
    temperature: Annotated[float, _WEIGHTED] = Field(1.0, gt=0)
    """Temperature of the weighted sampler, relative to `sqrt(epochs - epoch)`; the lower, the less random."""
    ablation: Ablation = Ablation()
    """Switches that only experiments need."""

    @field_validator("sampler", mode="before")
    @classmethod
    def _was_a_rank(cls, sampler: object) -> object:
        if sampler in ("top", "middle", "bottom"):
            raise PydanticCustomError("sampler", f"this experiment is now ablation.rank={sampler}")
        return sampler

    @field_validator("ablation")
    @classmethod
    def _has_an_effect(cls, ablation: Ablation, info: ValidationInfo) -> Ablation:
        changed = [name for name, value in ablation if value != getattr(Ablation(), name) and name != "rank"]
        if ablation.rank is not None:
            ineffective, setting = [name for name in changed if name != "oracle"], f"ablation.rank={ablation.rank}"
        else:
            ineffective, setting = (changed if info.data.get("sampler") == "uniform" else []), "sampler=uniform"
        if ineffective:
            raise PydanticCustomError("ablation", f"{', '.join(ineffective)} has no effect together with {setting}")
        return ablation


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Train on `splits.weak`."""
    docs = splits.weak or ()
    if config.ablation.oracle == "heldout" and isinstance(docs, StoredDocuments):
        raise ConfigError("ablation.oracle=heldout needs the documents in memory: add --no-stream")
    rates = name_stages(config.try_rate, "rate") if splits.dev is not None else []
    halves = ["half0", "half1"] if config.ablation.oracle == "heldout" else []
    run.plan(dict.fromkeys([*halves, *(rates or ["train"])], config.train.epochs))

    def train_with(rate: float, name: str) -> StageResult:
        lost = Lost()
        weak = weak_training_set(new_model(config, docs, run), docs, lost)
        run.log(f"training on {len(docs):,} documents: {lost}")
        held_out = _held_out_weights(weak, docs, config, run) if config.ablation.oracle == "heldout" else None
        with_rate = config.model_copy(update={"rate": rate})
        make_step = partial(sampling_step, weak, with_rate, callback=run.callback, held_out=held_out)
        selection = Selection(splits.dev, config.head.threshold)
        return train_stage(weak.as_annotated, make_step, config.train, run, selection, name)

    return best_on_dev(config.try_rate, config.rate, train_with, "rate", splits.dev, run)


def sampling_step(
    weak: WeakTrainingSet,
    config: Config,
    epoch: int,
    callback: TrainingCallback | None = None,
    held_out: CorpusTargets | None = None,
) -> Step:
    """The step of an epoch: cross-entropy on the known spans and freshly sampled negatives."""
    rank = config.ablation.rank
    uniform = rank is None and (config.sampler == "uniform" or epoch < config.ablation.uniform_epochs)
    temperature = config.temperature * sqrt(max(config.train.epochs - epoch, 1))

    def add_negatives(scores: SpanScores, targets: Targets, indices: np.ndarray) -> Targets:
        device = targets.known.device
        candidates = weak.unlabeled_in(indices).to(device)
        counts = negatives_per_sentence(weak.own_lengths[indices], config.rate).to(device)
        if uniform:
            negatives = sample_negatives(candidates, counts)
        else:
            values = held_out.collate(indices).weight.to(device) if held_out else _weigh(scores, config)
            if rank is None:
                negatives = sample_negatives(candidates, counts, values / temperature)
            else:
                negatives = sample_by_rank(candidates, counts, values, rank)
        if callback is not None:
            callback.on_negatives_sampled(epoch, weak.as_annotated, indices, negatives, scores.logits)
        return replace(targets, known=targets.known | negatives)

    return loss_step(weak.as_annotated, cross_entropy, retarget=add_negatives)


def _weigh(scores: SpanScores, config: Config) -> Tensor:
    """Log-weights of the weighted sampler, or the uncertainty that spans are ranked by: `[batch, words, widths]`."""
    if config.ablation.rank:
        return span_entropy(scores.logits)
    return sampling_weights(scores.logits, config.mu, config.ablation.margin, config.ablation.weighting)


def _held_out_weights(weak: WeakTrainingSet, docs: Sequence[Document], config: Config, run: Run) -> CorpusTargets:
    """Sampling weights of every span from uniformly sampled models of the other half of the documents."""
    uniform = config.model_copy(update={"sampler": "uniform", "ablation": Ablation()})
    fold_of, corpus = assign_folds(docs, 2), weak.as_annotated
    if len({int(fold) for doc, fold in zip(docs, fold_of, strict=True) if doc.spans}) == 1:
        raise TrainingError("there are too few documents with labels for cross-fitting: all of them fall into one fold")
    weights = torch.zeros(())
    for fold in range(2):
        name, half = f"half{fold}", [doc for doc, other in zip(docs, fold_of, strict=True) if other != fold]
        data = weak_training_set(new_model(config, docs, run, name), half, Lost())
        train_stage(data.as_annotated, partial(sampling_step, data, uniform), config.train, run, name=name)
        sentences = np.flatnonzero(fold_of[corpus.sentences.document] == fold)
        model = data.as_annotated.model
        weights = weights + score_corpus(model, corpus.features, partial(_weigh, config=config), sentences)
    return replace(corpus.targets, known=weak.unlabeled, weight=weights)
