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

from types import ModuleType

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from lacuner.config import Config as BaseConfig
from lacuner.data import Splits, labels_of
from lacuner.models.config import EncoderConfig
from lacuner.models.tagger import Tagger
from lacuner.recipes import finetune
from lacuner.training.config import TrainConfig
from lacuner.training.dataset import need_entities
from lacuner.training.run_folder import Run

NEEDS = ("weak", "gold")
GROUP = "baselines"
PAPER = "Jiang et al., 2021"


class Config(BaseConfig):
    """Settings of `then_gold`; the first recipe has its defaults except for `encoder` and `train`."""

    encoder: EncoderConfig = EncoderConfig()
    train: TrainConfig = TrainConfig()
    first: str = "bond"
    """Recipe that is trained on the weak labels: any recipe that needs nothing else and trains a model."""
    rate: float = Field(0.3, gt=0)
    """Learning rates on gold, relative to the defaults of the encoder (or to those in `train`)."""

    @field_validator("first")
    @classmethod
    def _uses_weak_labels_only(cls, first: str) -> str:
        possible = [name for name, module in _recipes().items() if module.NEEDS == ("weak",) and name != "dictionary"]
        if first not in possible:
            raise PydanticCustomError("first", f"choose one of {', '.join(possible)}")
        return first


def _recipes() -> dict[str, ModuleType]:
    from lacuner.recipes import RECIPES  # this module is one of them, so not before it is loaded

    return RECIPES


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Train on `splits.weak`, then on `splits.gold`."""
    gold = splits.gold or ()
    need_entities(gold)
    if labels := labels_of(splits.weak or ()):  # without any label the first recipe raises the error
        finetune.need_known_labels(gold, labels)
    module = _recipes()[config.first]
    first_config = module.Config(encoder=config.encoder, train=config.train)
    run.plan({"finetune": config.train.epochs})  # the first recipe puts its own stages before it
    tagger: Tagger = module.train(Splits(weak=splits.weak, dev=splits.dev), first_config, run)
    settings = finetune.Config(train=config.train, rate=config.rate)
    return finetune.continue_training(tagger.model, gold, splits.dev, settings, run, "finetune")
