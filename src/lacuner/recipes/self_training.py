"""What recipes share in which a model learns from a model: opinions of every word, made sharper, once a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lacuner.models.model import Model
from lacuner.models.packing import offsets_of, pad_rows
from lacuner.models.tagger import BUDGET, budget_batches
from lacuner.training.run import Run
from lacuner.training.settings import TrainConfig
from lacuner.types import Features


def once(run: Run, name: str, compute: Callable[[], dict[str, Tensor]]) -> dict[str, Tensor]:
    """Tensors that are computed once in a run.

    What an epoch learns from is finished before the epoch begins, so that a run that was killed in the middle of it
    never asks a model that is half through it.
    """
    with run.stage(name) as stage:
        if not stage.finished:
            stage.finish(compute(), {})
    with run.stage(name) as stage:
        return stage.tensors


def of_words(model: Model, features: Features, what: Callable[[Any], Tensor]) -> Tensor:
    """What scores say of each word of prepared sentences, `[words, ...]`; the model is left in evaluation mode."""
    offsets = offsets_of(features.lengths)
    device = next(model.parameters()).device
    row: Tensor | None = None
    model.eval()
    with torch.no_grad():
        for indices in budget_batches(features.costs, np.argsort(features.costs, kind="stable"), BUDGET):
            found = what(model(model.encoder.collate(features, indices).to(device))).float().cpu()
            if row is None:
                row = torch.zeros(int(offsets[-1]), *found.shape[2:])
            positions, real = (torch.from_numpy(array) for array in pad_rows(offsets, indices))
            row[positions[real]] = found[real]
    return torch.zeros(0) if row is None else row


def probabilities(scores: Any) -> Tensor:
    """Of each tag, or of O and the types."""
    probs: Tensor = scores.logits.softmax(dim=-1)
    return probs


def sharpen(probs: Tensor, counted: Tensor) -> Tensor:
    """Soft labels of which the model is surer than it was, without the large classes eating the small ones.

    `y_ij = (f_ij^2 / g_j) / sum_j' (f_ij'^2 / g_j')` with `g_j = sum_i f_ij` over the counted words of the corpus.
    """
    mass = probs[counted].sum(dim=0).clamp(min=1e-9)
    squared = probs.square() / mass
    return squared / squared.sum(dim=-1, keepdim=True).clamp(min=1e-30)


def slower(settings: TrainConfig, factor: float, epochs: int) -> TrainConfig:
    """Resolved settings with lower learning rates, for another number of epochs."""
    assert settings.learning_rate is not None and settings.head_learning_rate is not None
    rates = {
        "learning_rate": settings.learning_rate * factor,
        "head_learning_rate": settings.head_learning_rate * factor,
    }
    return settings.model_copy(update={**rates, "epochs": epochs})
