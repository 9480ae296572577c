"""What recipes share in which one model learns what others think: soft labels of entity and type."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from lacuner.losses.soft_labels import entity_type_soft_loss
from lacuner.models.heads.entity_type import split_entity_and_type
from lacuner.models.model import Model
from lacuner.models.ragged import offsets_of
from lacuner.models.targets import CorpusTargets
from lacuner.models.types import Batch, Features
from lacuner.training.dataset import TrainingSet
from lacuner.training.loop import Step, StepLoss


def soft_set(data: TrainingSet, model: Model, probs: Tensor, weigh_types: bool = False) -> TrainingSet:
    """A training set with soft labels; of what is unsure nothing is ever said.

    `probs` has the probability of O and of each type for every word, or span, of the row. Types count everywhere alike,
    or as much as there is an entity.
    """
    weight = 1 - probs[..., 0] if weigh_types else torch.ones(probs.shape[:-1])
    offsets = offsets_of(data.features.lengths)
    targets = CorpusTargets(data.targets.labels, data.targets.known, offsets, weight, probs.clone())
    return replace(data, model=model, targets=targets)


def soft_step(data: TrainingSet, otherwise: Features | None = None) -> Step:
    """Soft labels of entity and type; of sentences said otherwise the types, where the model's guess is the same."""
    model = data.model

    def step(indices: np.ndarray) -> StepLoss:
        batch, targets = data.batch(indices)
        scores = split_entity_and_type(model(batch))
        entity, types = entity_type_soft_loss(scores, targets)
        known = (targets.known & scores.mask).sum()
        typed = (targets.weight * targets.known).sum().clamp(min=1)
        total = entity.sum() / counted_words(known, batch) + types.sum() / typed
        if otherwise is not None:
            other: Batch = model.encoder.collate(otherwise, indices)
            again = split_entity_and_type(model(other.to(batch.mask.device)))
            agree = (again.types.argmax(dim=-1) == scores.types.argmax(dim=-1)) & targets.known & (targets.weight > 0)
            _, types = entity_type_soft_loss(again, replace(targets, weight=targets.weight * agree))
            total = total + types.sum() / agree.sum().clamp(min=1)
        words = float(batch.mask.sum())
        return StepLoss(total * words, words, float(known), float(scores.mask.sum()))

    return step


def counted_words(known: Tensor, batch: Batch) -> Tensor:
    """By what the loss of the entity head is divided: the words that count, also where there are several spans a word.

    A mean over all spans would be next to nothing beside the types'.
    """
    return torch.minimum(known.clamp(min=1), batch.mask.sum())
