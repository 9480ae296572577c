"""Dropout that zeroes the same features at every word of a sentence.

Faster than one draw per word (on a CPU the draws cost as much as a convolution), and a convolution cannot read from
one word what was dropped at its neighbour.
"""

import torch
from torch import Tensor

from lacuner.errors import ConfigError


def check_rate(rate: float) -> float:
    """Return a dropout rate, or raise if it is not a number from 0 to below 1."""
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < 1:
        raise ConfigError(f"dropout must be a number from 0 to below 1, not {rate!r}")
    return rate


def drop_features(vectors: Tensor, rate: float, training: bool) -> Tensor:
    """Zero a share of the features of `[sentences, words, features]`, one draw per sentence.

    A matrix `[rows, features]` gets ordinary dropout, drawn faster than torch draws on a CPU.
    """
    if not training or rate == 0:
        return vectors
    shape = vectors.shape if vectors.dim() == 2 else (vectors.shape[0], 1, vectors.shape[2])
    return vectors * ((torch.rand(shape, device=vectors.device) >= rate).to(vectors.dtype) / (1 - rate))
