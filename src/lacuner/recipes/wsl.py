"""Weakly supervised learning: train on gold and weak labels mixed together.

What it does: trains on gold, then continues on both for a few epochs, with weak labels treated as gold: stages I and II
    of `needle` without completion and noise-aware loss. Weak documents without any label are left out, as there. With
    `weight`, weak sentences count less (weighted WSL); with `unlabeled = "unknown"` their unlabeled tokens are left out
    of the loss (partial WSL); both together are weighted partial WSL; with `loss = "mse"` and a token head it is robust
    WSL. With `start = "encoder"` there is one training run on both instead, and no document is left out.
Assumes: that weak labels do more good than harm beside gold. With 5 % of BC5CDR's gold they did (4.5 points); on EC,
    and on Wikigold with MiniLM, they did not.
Needs: weak, gold.
Costs: one training run on gold and a few epochs on everything.
Departs from the authors: with dev the best epoch is kept; the number of epochs on both is that of `needle`.
Reference: Jiang et al. (2021), "Named entity recognition with small strongly labeled and large weakly labeled data",
    where these are the baselines.
"""

from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from lacuner.config import OnlyWith
from lacuner.data import Lost, Splits
from lacuner.losses.mse import squared_error
from lacuner.models.config import SequenceHeadConfig
from lacuner.models.tagger import Tagger
from lacuner.recipes.needle import choose_noisy_epochs
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
    start: Literal["gold", "encoder"] = "gold"
    """Start of the training on both: a model trained on gold, or the encoder."""
    noisy_epochs: Annotated[int | None, OnlyWith("start", ("gold",))] = Field(None, ge=1)
    """Epochs on both; by default 1 for a Hugging Face encoder, as in the paper, 5 for any other."""
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
    """Train on `splits.gold`, then on `splits.gold` and `splits.weak` together."""
    gold, weak, lost = splits.gold or (), splits.weak or (), Lost()
    model = new_model(config, [*gold, *weak], run)
    starts_with_gold = config.start == "gold" and any(doc.spans for doc in gold)
    stages = {"initial": config.train.epochs, "noisy/1": choose_noisy_epochs(config.noisy_epochs, model)}
    stages = stages if starts_with_gold else {"train": config.train.epochs}
    run.plan(stages)

    # gold alone
    if starts_with_gold:
        gold_data = training_set(model, gold, lost)
        gold_step = loss_step(gold_data)
        train_stage(gold_data, lambda _: gold_step, config.train, run, Selection(splits.dev), "initial")
        weak = [doc for doc in weak if doc.spans or doc.complete]

    # gold and weak labels together
    if config.unlabeled == "O":
        weak = [replace(doc, complete=True) for doc in weak]
    data = training_set(model, [*gold, *weak], lost)
    run.log(f"wsl: training on {len(gold):,} gold and {len(weak):,} weak documents: {lost}")
    data.weight_documents(np.repeat([1, config.weight], [len(gold), len(weak)]))
    step = loss_step(data, supervised_loss if config.loss == "likelihood" else squared_error)
    *_, (name, epochs) = stages.items()
    settings = config.train.with_epochs(epochs)
    return Tagger(train_stage(data, lambda _: step, settings, run, Selection(splits.dev), name).model)
