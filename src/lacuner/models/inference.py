"""TODO docstring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lacuner.models.model import Model
from lacuner.models.ragged import offsets_of, pad_rows
from lacuner.models.types import Features

BUDGET = 2048
"""Words, padding included, that are scored at once."""


def budget_batches(costs: np.ndarray, order: np.ndarray, budget: int) -> list[np.ndarray]:
    """Batches of sentences in the given order: as many at a time as fit the budget when padded to the longest."""
    batches, first, longest = [], 0, 0
    for i, cost in enumerate(costs[order].tolist()):
        if i > first and max(longest, cost) * (i - first + 1) > budget:
            batches.append(order[first:i])
            first, longest = i, 0
        longest = max(longest, cost)
    if first < len(order):
        batches.append(order[first:])
    return batches


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
