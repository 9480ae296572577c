"""Mean teacher: a student agrees with the moving average of its own weights on unlabeled text.

What it does: trains a student on gold. After each step, the weights of the teacher move towards those of the student.
    On all texts, the student's probabilities should equal the teacher's, with other dropout in both: the loss is the
    squared error. Its weight rises over the first epochs. The teacher becomes the tagger.
Assumes: that averaged weights are better than those of the last step, and that gold is right and complete.
Needs: weak, gold. Unlabeled text (`--unlabeled`) may take the place of weak documents, or come beside them; weak labels
    are ignored.
Costs: about one and a half training runs on all texts.
Departs from the authors: dropout is the only noise; the weight rises by epochs, not by steps, and the decay of the
    average has one value; token and span classifiers only, as a CRF has no predictions for single words; gold is
    repeated until it has a quarter of the words.
Reference: Tarvainen and Valpola (2017), "Mean teachers are better role models: weight-averaged consistency targets
    improve semi-supervised deep learning results"; as a baseline in Jiang et al. (2021), "Named entity recognition with
    small strongly labeled and large weakly labeled data".
"""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from lacuner.data import Lost, Splits
from lacuner.losses.mse import squared_error
from lacuner.models.inference import probabilities
from lacuner.models.model import Model
from lacuner.models.tagger import Tagger
from lacuner.models.types import Targets
from lacuner.techniques.semi_supervised import ConsistencyConfig, consistency_steps, semi_supervised_set
from lacuner.training.data_parallel import score_batch
from lacuner.training.dataset import need_entities
from lacuner.training.run_folder import Run
from lacuner.training.stage import Selection, new_model, train_stage

NEEDS = ("weak", "gold")
GROUP = "baselines"
PAPER = "Tarvainen and Valpola, 2017"
UNLABELED = True


class Config(ConsistencyConfig):
    """Settings of `mean_teacher`."""

    decay: float = Field(0.99, ge=0, lt=1)
    """Share of the teacher's weights that a step keeps; less in the first steps."""


class StudentAndTeacher(Model):
    """A student, and its teacher as a part of it, so that checkpoints contain both."""

    teacher: Model
    steps: Tensor

    def __init__(self, student: Model, decay: float) -> None:
        super().__init__(student.encoder, student.head)
        self.teacher = deepcopy(student).requires_grad_(False)
        self.decay = decay
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    def after_step(self) -> None:
        """Move the teacher towards the student; at first the teacher is the mean of all students so far."""
        self.steps += 1
        kept = min(1 - 1 / (int(self.steps) + 1), self.decay)
        student: list[Tensor] = [*self.encoder.parameters(), *self.head.parameters()]
        torch._foreach_lerp_([*self.teacher.parameters()], student, 1 - kept)


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Train on `splits.gold` and `splits.texts`."""
    gold, texts, lost = splits.gold or (), splits.texts, Lost()
    need_entities(gold)
    model = StudentAndTeacher(new_model(config, [*gold, *texts], run), config.decay)
    semi = semi_supervised_set(model, gold, texts, config.gold_share, lost)
    run.log(f"mean_teacher: training on {len(gold):,} gold documents and {len(texts):,} texts: {lost}")
    run.plan({"train": config.train.epochs})
    selection = Selection(splits.dev, config.head.threshold, scored=model.teacher)

    def loss(scores: Any, targets: Targets, indices: np.ndarray) -> Tensor:
        with torch.no_grad():
            probs = probabilities(score_batch(model.teacher, semi.data.features, indices))
        return squared_error(scores, replace(targets, probs=probs)).sum()

    train_stage(semi.data, consistency_steps(semi, loss, config), config.train, run, selection)
    return Tagger(model.teacher)
