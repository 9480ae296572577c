"""Train on weak labels with another recipe, then fine-tune on gold.

What it does: runs a recipe that uses weak labels alone (BOND by default) and fine-tunes its model on gold at lower
    learning rates: that recipe and `finetune` in one run.
Assumes: what the first recipe assumes; that gold is right and has no label that the weak documents lack.
Needs: weak, gold.
Costs: the first recipe, and one training run on gold.
Departs from the authors: with dev the best epoch is kept, where the paper searches for the number of epochs.
Reference: Jiang et al. (2021), "Named entity recognition with small strongly labeled and large weakly labeled data",
    where BOND with fine-tuning is a baseline.
"""

from __future__ import annotations

from types import ModuleType
from typing import Literal, get_args

from pydantic import Field

from lacuner.config import Config as BaseConfig
from lacuner.data import Splits, labels_of
from lacuner.models.config import EncoderConfig
from lacuner.models.tagger import Tagger
from lacuner.recipes import bond, ensemble, negative_sampling, nrces, roster, trust, two_step
from lacuner.recipes.finetune import continue_training, need_known_labels
from lacuner.techniques.mixing import need_entities
from lacuner.training.config import TrainConfig
from lacuner.training.run_folder import Run

NEEDS = ("weak", "gold")
GROUP = "baselines"
PAPER = "Jiang et al., 2021"

First = Literal["bond", "trust", "negative_sampling", "nrces", "ensemble", "two_step", "roster"]
FIRST: dict[str, ModuleType] = dict(
    zip(get_args(First), (bond, trust, negative_sampling, nrces, ensemble, two_step, roster), strict=True)
)


class Config(BaseConfig):
    """Settings of `then_gold`; the first recipe has its defaults except for `encoder` and `train`."""

    encoder: EncoderConfig = EncoderConfig()
    train: TrainConfig = TrainConfig()
    first: First = "bond"
    """The recipe that is trained on the weak labels."""
    rate: float = Field(0.3, gt=0)
    """Learning rates on gold, relative to the defaults of the encoder (or to those in `train`)."""


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Train on `splits.weak`, then on `splits.gold`."""
    gold = splits.gold or ()
    need_entities(gold)
    if labels := labels_of(splits.weak or ()):  # without any label the first recipe raises the error
        need_known_labels(gold, labels)
    module = FIRST[config.first]
    first_config = module.Config(encoder=config.encoder, train=config.train)
    tagger: Tagger = module.train(Splits(weak=splits.weak, dev=splits.dev), first_config, run)
    return continue_training(tagger.model, gold, splits.dev, config.train, config.rate, run, "finetune")
