"""Learn from gold and weak labels mixed together.

What it does: one training on both, as if weak labels were gold. With `weight` weak sentences count less (weighted WSL);
    with `unlabeled = "unknown"` what has no label there is left out of the loss (partial WSL); both together are
    weighted partial WSL; with `loss = "mse"` and a token head it is robust WSL.
Assumes: that weak labels do more good than harm, which with a little gold they seldom do.
Needs: weak, gold.
Costs: one training.
Departs from the authors: it is a baseline; in nothing that decides.
Reference: Jiang et al. (2021), "Named entity recognition with small strongly labeled and large weakly labeled data",
    where these are the baselines.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from lacuner.config import Config as BaseConfig
from lacuner.data import Lost, Splits
from lacuner.losses.mse import squared_error
from lacuner.models.config import EncoderConfig, SequenceHeadConfig
from lacuner.models.tagger import Tagger
from lacuner.techniques.mixing import mix
from lacuner.training.config import TrainConfig
from lacuner.training.dataset import TrainingSet
from lacuner.training.loop import Step, StepLoss
from lacuner.training.run_folder import Run
from lacuner.training.stage import learn_in_stage, new_model
from lacuner.training.steps import believe

NEEDS = ("weak", "gold")


class Config(BaseConfig):
    """Settings of `wsl`."""

    encoder: EncoderConfig = EncoderConfig()
    head: SequenceHeadConfig = SequenceHeadConfig()
    train: TrainConfig = TrainConfig()
    weight: float = Field(1.0, gt=0, le=1)
    """What a weak sentence counts, where a gold one counts 1."""
    unlabeled: Literal["O", "unknown"] = "O"
    """What a word of a weak sentence is that has no label."""
    loss: Literal["likelihood", "mse"] = "likelihood"
    """`mse`: the squared error of each word's probabilities, for a token head."""

    @field_validator("loss")
    @classmethod
    def _for_tokens(cls, loss: str, info: ValidationInfo) -> str:
        head = info.data.get("head")
        if loss == "mse" and head is not None and head.kind != "token":
            raise PydanticCustomError("mse", "mse is for single words: it needs head.kind=token")
        return loss


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Learn from `splits.gold` and `splits.weak` at once."""
    gold, weak = splits.gold or (), splits.weak or ()
    if config.unlabeled == "O":
        weak = [replace(doc, complete=True) for doc in weak]
    lost = Lost()
    both = mix(new_model(config.encoder, config.head, [*gold, *weak], run), gold, weak, lost)
    run.say(f"wsl: learning from {len(gold):,} gold and {len(weak):,} weak documents: {lost}")
    weights = both.of_sentences(1.0, np.full(len(weak), config.weight))
    both.data.targets.weight = torch.from_numpy(np.repeat(weights, both.data.features.lengths)).float()
    step = believe(both.data) if config.loss == "likelihood" else _squared(both.data)
    return learn_in_stage(both.data, lambda _: step, config, run, splits.dev).tagger


def _squared(data: TrainingSet) -> Step:
    def step(indices: Any) -> StepLoss:
        batch, targets = data.batch(indices)
        scores = data.model(batch)
        known, words = float((targets.known & scores.mask).sum()), float(batch.mask.sum())
        return StepLoss(squared_error(scores, targets).sum(), words, known, words)

    return step
