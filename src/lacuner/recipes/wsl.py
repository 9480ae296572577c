"""Weakly supervised learning: train on gold and weak labels mixed together.

What it does: one training run on both, with weak labels treated as gold. With `weight`, weak sentences count less
    (weighted WSL); with `unlabeled = "unknown"` their unlabeled tokens are left out of the loss (partial WSL); both
    together are weighted partial WSL; with `loss = "mse"` and a token head it is robust WSL.
Assumes: that weak labels do more good than harm, which is rarely so beside a little gold.
Needs: weak, gold.
Costs: one training run.
Departs from the authors: nothing of importance; it is a baseline.
Reference: Jiang et al. (2021), "Named entity recognition with small strongly labeled and large weakly labeled data",
    where these are the baselines.
"""

from dataclasses import replace
from typing import Literal

import numpy as np
from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from lacuner.data import Lost, Splits
from lacuner.losses.mse import squared_error
from lacuner.models.config import SequenceHeadConfig
from lacuner.models.tagger import Tagger
from lacuner.training.config import RecipeConfig
from lacuner.training.dataset import training_set
from lacuner.training.run_folder import Run
from lacuner.training.stage import Selection, new_model, train_stage
from lacuner.training.steps import loss_step, supervised_loss

NEEDS = ("weak", "gold")
GROUP = "baselines"
PAPER = "Jiang et al., 2021"


class Config(RecipeConfig):
    """Settings of `wsl`."""

    head: SequenceHeadConfig = SequenceHeadConfig()
    weight: float = Field(1.0, gt=0, le=1)
    """Weight of a weak sentence relative to a gold one."""
    unlabeled: Literal["O", "unknown"] = "O"
    """Meaning of an unlabeled token in a weak sentence."""
    loss: Literal["likelihood", "mse"] = "likelihood"
    """Loss function: likelihood, or the mean squared error of a token head's probabilities."""

    @field_validator("loss")
    @classmethod
    def _mse_needs_a_token_head(cls, loss: str, info: ValidationInfo) -> str:
        head = info.data.get("head")
        if loss == "mse" and head is not None and head.kind != "token":
            raise PydanticCustomError("mse", "loss=mse needs head.kind=token")
        return loss


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Train on `splits.gold` and `splits.weak` together."""
    gold, weak = splits.gold or (), splits.weak or ()
    if config.unlabeled == "O":
        weak = [replace(doc, complete=True) for doc in weak]
    lost = Lost()
    data = training_set(new_model(config, [*gold, *weak], run), [*gold, *weak], lost)
    run.log(f"wsl: training on {len(gold):,} gold and {len(weak):,} weak documents: {lost}")
    data.weight_documents(np.repeat([1, config.weight], [len(gold), len(weak)]))
    step = loss_step(data, supervised_loss if config.loss == "likelihood" else squared_error)
    return Tagger(train_stage(data, lambda _: step, config.train, run, Selection(splits.dev)).model)
