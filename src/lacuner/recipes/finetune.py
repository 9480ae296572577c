"""Go on with the model of another run, on gold.

What it does: takes the model of any run, whatever recipe and head it has, and trains it on gold at lower rates. After a
    recipe that learns from weak labels alone it is what a little gold adds to it.
Assumes: that gold is right, and has no label that the run does not know.
Needs: gold; and the other run, as `--from RUN`.
Costs: one training on gold.
Departs from the authors: with dev the best epoch is kept, where the paper searches for the number of epochs.
Reference: Jiang et al. (2021), "Named entity recognition with small strongly labeled and large weakly labeled data",
    whose last stage it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from pydantic import Field

from lacuner.config import Config as BaseConfig
from lacuner.data import Document, Lost, Splits
from lacuner.errors import ConfigError, TrainingError
from lacuner.models.config import HeadConfig
from lacuner.models.heads.span import SpanHead
from lacuner.models.model import Model
from lacuner.models.storage import load
from lacuner.models.tagger import Tagger
from lacuner.techniques.mixing import need_entities
from lacuner.training.config import PlainConfig, TrainConfig, resolved, slower
from lacuner.training.dataset import training_set
from lacuner.training.run_folder import Run
from lacuner.training.stage import learn_in_stage
from lacuner.training.steps import believe

NEEDS = ("gold",)


class HasRate(Protocol):
    """Settings of a training that goes on with a model."""

    @property
    def train(self) -> TrainConfig: ...
    @property
    def rate(self) -> float: ...


class Config(BaseConfig):
    """Settings of `finetune`."""

    start: Path | None = None
    """The run to go on from; `--from` on the command line."""
    train: TrainConfig = TrainConfig()
    rate: float = Field(0.3, gt=0)
    """The learning rates, times those that suit the encoder (or that `train` has)."""


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Learn from `splits.gold`, beginning with the model of another run."""
    if config.start is None:
        raise ConfigError("the recipe finetune needs --from RUN: the run whose model it goes on with")
    gold = splits.gold or ()
    need_entities(gold)
    run.say(f"finetune: going on with {config.start}")
    return go_on(_start(config.start, gold), gold, splits.dev, config, run)


def go_on(
    model: Model,
    gold: Sequence[Document],
    dev: Sequence[Document] | None,
    config: HasRate,
    run: Run,
    stage: str = "train",
) -> Tagger:
    """Train a model that has learned something on gold, at lower rates."""
    lost = Lost()
    data = training_set(model, gold, lost)
    run.say(f"fine-tuning on {len(gold):,} documents: {lost}")
    settings = slower(resolved(config.train, model, data.features), config.rate, config.train.epochs)
    # a span head that had a threshold has it from dev, and what was best then is not best now
    chosen = isinstance(model.head, SpanHead) and model.head.threshold is not None and bool(dev)
    head = HeadConfig(kind="span", threshold="dev" if chosen else "argmax")
    step, plain = believe(data), PlainConfig(head=head, train=settings)
    return learn_in_stage(data, lambda _: step, plain, run, dev, stage, start_counts=True).tagger


def need_labels(gold: Sequence[Document], known: Sequence[str], file: Path | None = None) -> None:
    """Refuse gold with a label that a model does not know."""
    unknown = sorted({span.label for doc in gold for span in doc.spans} - set(known))
    if unknown:
        raise TrainingError(
            f"gold has the label {unknown[0]!r}, which this model does not know: it knows {', '.join(known)}", file=file
        )


def _start(place: Path, gold: Sequence[Document]) -> Model:
    """The model of a run, which must know the labels of gold."""
    tagger = load(place)
    if not isinstance(tagger, Tagger):
        raise ConfigError("this run has no weights to train: it learned names by heart", file=place)
    need_labels(gold, tagger.labels, place)
    return tagger.model
