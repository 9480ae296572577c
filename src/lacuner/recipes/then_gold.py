"""Learn from weak labels by another recipe, then from gold.

What it does: trains by a recipe that needs weak labels alone, BOND unless told otherwise, and goes on with its model on
    gold at lower rates. It is that recipe and `finetune` in one run.
Assumes: what the other recipe assumes; that gold is right, and has no label that the weak documents lack.
Needs: weak, gold.
Costs: the other recipe, and one training on gold.
Departs from the authors: with dev the best epoch is kept, where the paper searches for the number of epochs.
Reference: Jiang et al. (2021), "Named entity recognition with small strongly labeled and large weakly labeled data",
    where BOND with fine-tuning is a baseline.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from lacuner.config import Config as BaseConfig
from lacuner.data import Splits
from lacuner.models.config import EncoderConfig
from lacuner.models.tagger import Tagger
from lacuner.recipes import bond, negative_sampling, nrces, roster, trust, two_step
from lacuner.recipes.finetune import go_on, need_labels
from lacuner.techniques.mixing import need_entities
from lacuner.training.config import TrainConfig
from lacuner.training.run_folder import Run

NEEDS = ("weak", "gold")
_FIRST = {
    "bond": bond,
    "trust": trust,
    "negative_sampling": negative_sampling,
    "nrces": nrces,
    "two_step": two_step,
    "roster": roster,
}


class Config(BaseConfig):
    """Settings of `then_gold`; the first recipe has its defaults but for `encoder` and `train`."""

    encoder: EncoderConfig = EncoderConfig()
    train: TrainConfig = TrainConfig()
    first: Literal["bond", "trust", "negative_sampling", "nrces", "two_step", "roster"] = "bond"
    """The recipe that learns from the weak labels."""
    rate: float = Field(0.3, gt=0)
    """The learning rates on gold, times those that suit the encoder (or that `train` has)."""


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Learn from `splits.weak`, then from `splits.gold`."""
    gold = splits.gold or ()
    need_entities(gold)
    if known := sorted({span.label for doc in splits.weak or () for span in doc.spans}):  # else the recipe will say so
        need_labels(gold, known)
    module = _FIRST[config.first]
    settings = module.Config(encoder=config.encoder, train=config.train)
    found: Tagger = module.train(Splits(weak=splits.weak, dev=splits.dev), settings, run)
    return go_on(found.model, gold, splits.dev, config, run, "finetune")
