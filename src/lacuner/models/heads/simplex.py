"""Angle-based output layer: logits without a free constant.

What it does: the layer computes k - 1 numbers; each of the k logits is their product with one corner of a regular
    simplex around the origin. The logits sum to zero, so a single logit has a meaning of its own.
Assumes: at least two classes.
Departs from the authors: nothing. `two_step` is the paper that needs it.
Reference: Zhang and Liu (2014), "Multicategory angle-based large-margin classification", Biometrika 101.
"""

from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn

from lacuner.errors import ConfigError

MAX_CLASSES = 4096
"""The simplex has one number per pair of classes and is not stored, so no weight limits its size."""


def simplex(corners: int) -> Tensor:
    """Corners `[k, k - 1]` of a regular simplex around the origin: length 1, equal angles, sum zero."""
    if not 2 <= corners <= MAX_CLASSES:
        raise ConfigError(f"an angle-based output needs from two to {MAX_CLASSES:,} classes, not {corners:,}")
    sides = corners - 1
    # on the CPU even when a model is built on the meta device, where arithmetic takes seconds to load
    real: dict[str, Any] = {"dtype": torch.float64, "device": "cpu"}
    points = torch.empty(corners, sides, **real)
    points[0] = 1 / sqrt(sides)
    points[1:] = -(1 + sqrt(corners)) / sides**1.5 + sqrt(corners / sides) * torch.eye(sides, **real)
    return points


class AngleOutput(nn.Module):
    """A linear layer to `classes` logits that sum to zero."""

    corners: Tensor

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, classes - 1)
        # computed, not learned: not stored in model files
        self.register_buffer("corners", simplex(classes).to(torch.get_default_dtype()), persistent=False)

    def forward(self, vectors: Tensor) -> Tensor:
        logits: Tensor = self.linear(vectors) @ self.corners.T
        return logits


def output_layer(width: int, classes: int, angle: bool) -> nn.Module:
    """The last layer of a head: linear, or angle-based."""
    return AngleOutput(width, classes) if angle else nn.Linear(width, classes)
