"""Fine-tune the model of another run on gold.

What it does: takes the model of any run, whatever its recipe and head, and trains it on gold at lower learning rates.
    After a recipe that uses weak labels alone, this shows what a little gold adds.
Assumes: that gold is right and has no label that the run does not know.
Needs: gold; and the other run, as `--from RUN`.
Costs: one training run on gold.
Departs from the authors: with dev the best epoch is kept, where the paper searches for the number of epochs.
Reference: Jiang et al. (2021), "Named entity recognition with small strongly labeled and large weakly labeled data",
    whose last stage it is.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from lacuner.config import Config as BaseConfig
from lacuner.data import Document, Lost, Splits, labels_of
from lacuner.errors import ConfigError, TrainingError
from lacuner.models.model import Model
from lacuner.models.storage import load
from lacuner.models.tagger import Tagger
from lacuner.models.types import HasThreshold
from lacuner.techniques.label_masking import MaskingConfig, masking_steps
from lacuner.training.config import TrainConfig
from lacuner.training.dataset import need_entities, training_set
from lacuner.training.run_folder import Run
from lacuner.training.stage import Selection, train_stage

NEEDS = ("gold",)
GROUP = "other methods"
PAPER = "Jiang et al., 2021"


class Config(BaseConfig):
    """Settings of `finetune`."""

    LATER: ClassVar[frozenset[str]] = frozenset({"masking"})

    start: Path | None = None
    """The run to continue from; `--from` on the command line."""
    train: TrainConfig = TrainConfig()
    rate: float = Field(0.3, gt=0)
    """Learning rates relative to the defaults of the encoder (or to those in `train`)."""
    masking: MaskingConfig = MaskingConfig()
    """Labels that leave the loss because the model contradicts them: for gold with mistakes."""


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Train the model of another run on `splits.gold`."""
    if config.start is None:
        raise ConfigError("recipe `finetune` needs --from RUN: the run whose model it continues from")
    gold = splits.gold or ()
    need_entities(gold)
    tagger = load(config.start)
    if not isinstance(tagger, Tagger):
        raise ConfigError("this run has no weights: it was trained with the `dictionary` recipe", file=config.start)
    need_known_labels(gold, tagger.labels, config.start)
    run.log(f"finetune: continuing from {config.start}")
    return continue_training(tagger.model, gold, splits.dev, config, run)


def continue_training(
    model: Model,
    gold: Sequence[Document],
    dev: Sequence[Document] | None,
    config: Config,
    run: Run,
    stage: str = "train",
) -> Tagger:
    """Train a trained model on gold, with its learning rates multiplied by `config.rate`."""
    lost = Lost()
    data = training_set(model, gold, lost)
    run.log(f"fine-tuning on {len(gold):,} documents: {lost}")
    settings = config.train.resolve(model, data.features).scale_learning_rates(config.rate)
    # a threshold in the head was tuned on dev, for the weights that it had then
    tune = isinstance(model.head, HasThreshold) and model.head.threshold is not None and bool(dev)
    selection = Selection(dev, "dev" if tune else "argmax", "best or start")
    make_step = masking_steps(data, config.masking, settings, run, stage)
    return Tagger(train_stage(data, make_step, settings, run, selection, stage).model)


def need_known_labels(gold: Sequence[Document], known: Sequence[str], file: Path | None = None) -> None:
    """Raise an error if gold has a label that a model does not know."""
    unknown = sorted(set(labels_of(gold)) - set(known))
    if unknown:
        raise TrainingError(
            f"gold has the label {unknown[0]!r}, which this model does not know: it knows {', '.join(known)}", file=file
        )
