"""Believe the labels for a short while, then let a copy of the model teach it.

What it does: trains on the weak labels as if they were complete, and stops early. Then a copy, the teacher, says what
    each word is; the student learns that, where the teacher is sure, and takes the teacher's place after each period.
Assumes: that a model which was stopped early has learned the names, and not yet the gaps.
Needs: weak.
Costs: about one training and a half.
Departs from the authors: how often a class occurs is counted in the corpus, not in a batch with its padding; with dev
    the first stage ends with the epoch that is best there, without dev after a third of the epochs; periods are epochs.
Reference: Liang et al. (2020), "BOND: BERT-assisted open-domain named entity recognition with distant supervision".
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any, Literal

from pydantic import Field
from torch import Tensor
from torch.nn import functional

from lacuner.config import Config as BaseConfig
from lacuner.data import Lost, Splits
from lacuner.losses.cross_entropy import cross_entropy
from lacuner.models.config import EncoderConfig, TokenHeadConfig
from lacuner.models.inference import probabilities, score_corpus
from lacuner.models.ragged import offsets_of
from lacuner.models.tagger import Tagger
from lacuner.models.targets import CorpusTargets
from lacuner.techniques.self_training import sharpen
from lacuner.training.config import TrainConfig, resolved, slower
from lacuner.training.dataset import TrainingSet, believed_set, dev_scorer
from lacuner.training.loop import Step, StepLoss, fit
from lacuner.training.run_folder import Run
from lacuner.training.stage import new_model, once
from lacuner.training.steps import believe

NEEDS = ("weak",)


class Config(BaseConfig):
    """Settings of `bond`; `train` is that of the first stage."""

    encoder: EncoderConfig = EncoderConfig()
    head: TokenHeadConfig = TokenHeadConfig()
    train: TrainConfig = TrainConfig()
    early: int | None = Field(None, ge=1)
    """Epochs after which the first stage ends; None: with dev at the best one, without dev after a third of them."""
    student_epochs: int | None = Field(None, ge=1)
    """Epochs in which the student learns from the teacher; None: half of those of `train`."""
    student_rate: float = Field(0.3, gt=0)
    """The student's learning rates, times those of the first stage."""
    period: int = Field(1, ge=1)
    """After so many epochs the student takes the teacher's place."""
    labels: Literal["soft", "hard"] = "soft"
    """What the teacher says: sharpened probabilities, or the likeliest tag."""
    sure: float = Field(0.9, ge=0, le=1)
    """How probable the teacher's tag must be for a word to be learned."""


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Learn from `splits.weak`, then from a teacher."""
    docs = splits.weak or ()
    model = new_model(config.encoder, config.head, docs, run)
    lost = Lost()
    data = believed_set(model, docs, lost).data
    run.say(f"bond: learning from {len(docs):,} documents: {lost}")
    settings = resolved(config.train, model, data.features)
    early = config.early or (settings.epochs if splits.dev else ceil(settings.epochs / 3))
    step = believe(data)
    with run.stage("early") as stage:
        ended = settings.model_copy(update={"epochs": early})
        fit(model, data.features, lambda _: step, ended, stage, dev_scorer(model, splits.dev))
    epochs = config.student_epochs or ceil(settings.epochs / 2)
    with run.stage("student") as stage:
        taught = slower(settings, config.student_rate, epochs)
        fit(
            model,
            data.features,
            _lessons(data, config, run),
            taught,
            stage,
            dev_scorer(model, splits.dev),
            start_counts=True,
        )
    return Tagger(model)


def _lessons(data: TrainingSet, config: Config, run: Run) -> Any:
    """From epochs to steps: what the teacher of the period says, where it is sure."""
    known = data.targets.known.clone()
    offsets = offsets_of(data.features.lengths)

    def teach() -> dict[str, Tensor]:
        return taught(score_corpus(data.model, data.features, probabilities), known, config)

    def make_step(epoch: int) -> Step:
        found = once(run, f"student/{epoch // config.period * config.period}", teach)
        targets = CorpusTargets(data.targets.labels, found["sure"], offsets, probs=found["probs"])
        return _step(replace(data, targets=targets))

    return make_step


def taught(probs: Tensor, known: Tensor, config: Config) -> dict[str, Tensor]:
    """What is taught of each word of the row, and of which words; if the teacher is sure of none, of all."""
    sharp = sharpen(probs, known) if config.labels == "soft" else probs
    sure = (sharp.amax(dim=-1) > config.sure) & known
    if config.labels == "hard":
        sharp = functional.one_hot(probs.argmax(dim=-1), probs.shape[-1]).float()
    return {"probs": sharp, "sure": sure if sure.any() else known}


def _step(data: TrainingSet) -> Step:
    def step(indices: Any) -> StepLoss:
        batch, targets = data.batch(indices)
        scores = data.model(batch)
        known, words = float((targets.known & scores.mask).sum()), float(batch.mask.sum())
        return StepLoss(cross_entropy(scores, targets).sum(), max(known, 1.0), known, words)

    return step
