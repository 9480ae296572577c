"""Knowledge distillation: a student learns soft labels of entity and type, optionally on augmented sentences too."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from lacuner.losses.soft_labels import entity_type_soft_loss
from lacuner.models.heads.entity_type import split_entity_and_type
from lacuner.models.inference import probabilities, score_parts
from lacuner.models.model import Model
from lacuner.models.types import Features, Targets
from lacuner.training.data_parallel import score_batch
from lacuner.training.dataset import TrainingSet
from lacuner.training.steps import Step, StepLoss


def mean_probabilities(models: Sequence[Model], features: Features) -> Iterator[dict[str, np.ndarray]]:
    """The mean of the models' probabilities for every position of a corpus, `probs`, part by part."""
    for parts in zip(*(score_parts(model, features, probabilities) for model in models), strict=True):
        yield {"probs": (sum((rows for _, rows in parts), torch.zeros(())) / len(models)).numpy()}


def soft_label_set(data: TrainingSet, student: Model, probs: Tensor, weight_types: bool = False) -> TrainingSet:
    """A training set for a student with soft labels; positions that `data` leaves unknown stay unknown.

    `probs` `[words, 1 + types]` or `[words, widths, 1 + types]` are the probabilities of O and of each type. With
    `weight_types` the type loss is weighted by the entity probability instead of equally everywhere.
    """
    targets = replace(data.targets, weight=None, probs=probs, weight_by_entity=weight_types)
    return replace(data, model=student, targets=targets)


def distillation_step(
    data: TrainingSet, augmented: Features | None = None, retarget: Callable[[Targets], Targets] | None = None
) -> Step:
    """Make a step with the soft-label loss of entity and type; `retarget` changes the targets of a batch.

    On `augmented` sentences only the types count, where both predictions agree.
    """
    model = data.model

    def step(indices: np.ndarray) -> StepLoss:
        targets = data.targets_of(indices)
        targets = targets if retarget is None else retarget(targets)
        scores = split_entity_and_type(score_batch(model, data.features, indices))
        entity, types = entity_type_soft_loss(scores, targets)
        known = (targets.known & scores.mask).sum()
        words = known.new_tensor(int(data.features.lengths[indices].sum()))
        typed = (targets.weight * targets.known).sum().clamp(min=1)
        total = entity.sum() / entity_denominator(known, words) + types.sum() / typed
        if augmented is not None:
            other = split_entity_and_type(score_batch(model, augmented, indices))
            agree = (other.types.argmax(dim=-1) == scores.types.argmax(dim=-1)) & targets.known & (targets.weight > 0)
            _, types = entity_type_soft_loss(other, replace(targets, weight=targets.weight * agree))
            total = total + types.sum() / agree.sum().clamp(min=1)
        return StepLoss(total * float(words), float(words), float(known), float(scores.mask.sum()))

    return step


def entity_denominator(known: Tensor, words: Tensor) -> Tensor:
    """Divisor of the summed entity losses: the number of known positions, at most one per word.

    Divided by the number of all spans, it would be negligible beside the type loss.
    """
    return torch.minimum(known.clamp(min=1), words)
