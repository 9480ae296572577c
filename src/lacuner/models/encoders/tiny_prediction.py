"""The forward pass of `tiny` for prediction: the function of `TinyEncoder.forward` with a third fewer operations.

- What depends on a word alone is computed once per distinct word of the corpus: its vector, and the products of its
  normalised vector with the weights of the first convolution, as left neighbour, middle and right neighbour. The first
  convolution then only adds three rows of a table.
- Two neighbouring outputs of any other convolution over three words take four products with matrices instead of six.
  This is the minimal filtering algorithm F(2, 3): Lavin and Gray (2016), "Fast algorithms for convolutional neural
  networks".

Numbers are added in another order than in training, so the vectors differ from those of `forward` by about 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from lacuner.models.encoders.hashing import GROUPS, select_words
from lacuner.models.ragged import pad_rows
from lacuner.models.types import Features

if TYPE_CHECKING:  # that module imports this one
    from lacuner.models.encoders.tiny import Convolution, TinyEncoder

MAX_TABLE = 32_768
"""Distinct words of a corpus up to which there is one table for all batches (at most 150 MB for the shipped encoders);
above, there is one per batch."""


class WordTable(NamedTuple):
    """What depends on a word alone; the last word is padding, a vector of zeros."""

    vectors: Tensor
    """`[words + 1, width]`"""
    products: Tensor
    """`[3 * (words + 1), 2 * width]`: of each word as left neighbour, as middle (with the bias), as right neighbour."""


def fast_forward(encoder: TinyEncoder, features: Features) -> Callable[[np.ndarray], tuple[Tensor, Tensor]]:
    """A function from sentence indices to the vectors of their words, `[batch, words, width]`, and the mask.

    The number of words is rounded up to an even number; there is no dropout, and it is to be called without gradients.

    >>> from lacuner.models.encoders.tiny import TinyEncoder
    >>> encoder = TinyEncoder().eval()
    >>> features = encoder.prepare([["Mara", "left", "Halden"], ["She", "left"]])
    >>> with torch.no_grad():
    ...     vectors, mask = fast_forward(encoder, features)(np.array([0, 1]))
    ...     expected = encoder(encoder.collate(features, [0, 1]))
    >>> bool((vectors[:, :3] - expected)[mask[:, :3]].abs().max() < 1e-5)
    True
    """
    arrays = features.arrays
    others = [(layer, filter_matrices(layer)) for layer in convolutions_of(encoder)[1:]]
    number = (len(arrays["bags"]) - 1) // len(GROUPS)
    shared = make_table(encoder, features, np.arange(number)) if number <= MAX_TABLE else None

    def forward(indices: np.ndarray) -> tuple[Tensor, Tensor]:
        positions, mask = pad_rows(arrays["offsets"], indices)
        if mask.shape[1] % 2:
            mask = np.pad(mask, ((0, 0), (0, 1)))
        words = arrays["row"][positions[mask[:, : positions.shape[1]]]]
        table = shared
        if table is None:
            distinct, words = np.unique(words, return_inverse=True)
            table = make_table(encoder, features, distinct)
        rows = np.full((len(mask), mask.shape[1] + 2), len(table.vectors) - 1)
        rows[:, 1:-1][mask] = words
        vectors = convolve_table(table, torch.from_numpy(rows))
        visible = torch.from_numpy(mask)
        real = visible.unsqueeze(-1).to(vectors.dtype)
        for layer, matrices in others:
            vectors = convolve(layer, matrices, vectors, real)
        if encoder.settings.heads:
            vectors = encoder.attention(vectors, visible)
        return encoder.norm(vectors), visible

    return forward


def convolutions_of(encoder: TinyEncoder) -> list[Convolution]:
    """The layers with their type, which `nn.ModuleList` does not know."""
    return cast("list[Convolution]", list(encoder.layers))


def make_table(encoder: TinyEncoder, features: Features, words: np.ndarray) -> WordTable:
    """The table of some of the distinct words of a corpus."""
    ids, bags = map(torch.from_numpy, select_words(features.arrays["ids"], features.arrays["bags"], words))
    first = convolutions_of(encoder)[0]
    width = encoder.width
    vectors = functional.pad(encoder.embed_words(ids, bags[:-1]), (0, 0, 0, 1))
    inputs = first.norm(vectors)
    inputs[-1] = 0
    weight = first.linear.weight.view(-1, 3, width).permute(2, 1, 0).reshape(width, -1)
    bias = functional.pad(first.linear.bias, (2 * width, 2 * width))  # added once: to the product of the middle
    return WordTable(vectors, torch.addmm(bias, inputs, weight).view(-1, 2 * width))


def convolve_table(table: WordTable, rows: Tensor) -> Tensor:
    """The output of the first convolution, `[batch, words, width]`; `rows` has one column of padding on each side."""
    at = rows * 3
    neighbours = torch.stack((at[:, :-2], at[:, 1:-1] + 1, at[:, 2:] + 2), dim=-1).view(-1, 3)
    change = functional.glu(functional.embedding_bag(neighbours, table.products, mode="sum"), dim=-1)
    vectors = functional.embedding(rows[:, 1:-1], table.vectors)
    return vectors.add_(change.view_as(vectors))


def filter_matrices(layer: Convolution) -> tuple[Tensor, ...]:
    """The four matrices `[width, 2 * width]` of F(2, 3)."""
    left, middle, right = (part.t().contiguous() for part in layer.linear.weight.chunk(3, dim=1))
    return left, (left + middle + right) / 2, (left - middle + right) / 2, -right


def convolve(layer: Convolution, matrices: tuple[Tensor, ...], vectors: Tensor, mask: Tensor) -> Tensor:
    """The output of a convolution, for an even number of words."""
    batch, words, width = vectors.shape
    inputs = vectors.new_zeros(batch, words + 2, width)
    torch.mul(layer.norm(vectors), mask, out=inputs[:, 1:-1])
    before, first, second, after = inputs[:, :-2:2], inputs[:, 1:-1:2], inputs[:, 2::2], inputs[:, 3::2]
    outer, plus, minus, last = matrices
    total = torch.addmm(layer.linear.bias, (first + second).view(-1, width), plus)
    difference = torch.mm((second - first).view(-1, width), minus)
    outputs = total.new_empty(len(total), 2, 2 * width)
    torch.add(total, difference, out=outputs[:, 0]).addmm_((before - second).view(-1, width), outer)
    torch.sub(total, difference, out=outputs[:, 1]).addmm_((first - after).view(-1, width), last)
    return functional.glu(outputs.view(batch, words, -1), dim=-1).add_(vectors)
