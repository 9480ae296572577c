"""The forward pass of `tiny` for prediction: the function of `TinyEncoder.forward` in half the time.

- What depends on a word alone is computed once per distinct word of the corpus: its vector, and the products of its
  normalised vector with the weights of the first convolution, as left neighbour, middle and right neighbour. The first
  convolution then only adds three rows of a table.
- The sentences of a batch lie one after another in one row of words, each followed by a word of padding.
- Processors with AVX-512 compute with oneDNN (`slide`).
- On others, two neighbouring outputs of a convolution over three words take four products with matrices instead of six
  (`filter_pairs`).

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
    from lacuner.models.encoders.tiny import Attention, Convolution, TinyEncoder

MAX_TABLE = 32_768
"""Distinct words of a corpus up to which there is one table for all batches (at most 150 MB for the shipped encoders);
above, there is one per batch."""
ROWS = 64
"""Words of a batch, padding included, are a multiple of this: oneDNN compiles a program for each new shape."""
ONEDNN = torch.backends.cpu.get_cpu_capability() == "AVX512" and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
"""Whether oneDNN multiplies."""
IMAGES = 32
"""Parts into which `multiply` divides its rows: with fewer than 16, torch does not use oneDNN."""


class WordTable(NamedTuple):
    """What depends on a word alone. The last words are padding, vectors of zeros."""

    vectors: Tensor
    """`[words, width]`"""
    products: Tensor
    """`[3 * words, 2 * width]`: of each word as left neighbour, as middle (with the bias), as right neighbour."""


def fast_forward(encoder: TinyEncoder, features: Features) -> Callable[[np.ndarray], tuple[Tensor, Tensor]]:
    """A function from sentence indices to the vectors of their words, `[batch, words, width]`, and the mask.

    There is no dropout, and it is to be called without gradients.

    >>> from lacuner.models.encoders.tiny import TinyEncoder
    >>> encoder = TinyEncoder().eval()
    >>> features = encoder.prepare([["Mara", "left", "Halden"], ["She", "left"]])
    >>> with torch.no_grad():
    ...     vectors, mask = fast_forward(encoder, features)(np.array([0, 1]))
    ...     expected = encoder(encoder.collate(features, [0, 1]))
    >>> bool((vectors - expected)[mask].abs().max() < 1e-5)
    True
    """
    arrays = features.arrays
    others = [(layer, filter_matrices(layer)) for layer in convolutions_of(encoder)[1:]]
    number = (len(arrays["bags"]) - 1) // len(GROUPS)
    shared = make_table(encoder, features, np.arange(number)) if number <= MAX_TABLE else None

    def forward(indices: np.ndarray) -> tuple[Tensor, Tensor]:
        positions, mask = pad_rows(arrays["offsets"], indices)
        words, table = arrays["row"][positions[mask]], shared
        if table is None:
            distinct, words = np.unique(words, return_inverse=True)
            table = make_table(encoder, features, distinct)
        batch, longest = mask.shape
        size = batch * (longest + 1)
        row = np.full(size + -size % ROWS, len(table.vectors) - 1)
        row[:size].reshape(batch, longest + 1)[:, :-1][mask] = words
        vectors = convolve_table(table, torch.from_numpy(row))
        real = torch.from_numpy(row < len(table.vectors) - 1).unsqueeze(-1).to(vectors.dtype)
        for layer, matrices in others:
            vectors = convolve(layer, matrices, vectors, real)
        visible = torch.from_numpy(mask)
        if encoder.settings.heads:
            vectors = attend(encoder.attention, vectors, visible)
        return encoder.norm(vectors[:size].view(batch, longest + 1, -1)[:, :-1]), visible

    return forward


def convolutions_of(encoder: TinyEncoder) -> list[Convolution]:
    """The layers with their type, which `nn.ModuleList` does not know."""
    return cast("list[Convolution]", list(encoder.layers))


def make_table(encoder: TinyEncoder, features: Features, words: np.ndarray) -> WordTable:
    """The table of some of the distinct words of a corpus."""
    ids, bags = map(torch.from_numpy, select_words(features.arrays["ids"], features.arrays["bags"], words))
    first = convolutions_of(encoder)[0]
    width = encoder.width
    vectors = functional.pad(encoder.embed_words(ids, bags[:-1]), (0, 0, 0, ROWS - len(words) % ROWS))
    inputs = first.norm(vectors)
    inputs[len(words) :] = 0
    weight = first.linear.weight.view(-1, 3, width).transpose(0, 1).reshape(-1, width)
    bias = functional.pad(first.linear.bias, (2 * width, 2 * width))  # added once: to the product of the middle
    return WordTable(vectors, multiply(inputs, weight, bias).view(-1, 2 * width))


def convolve_table(table: WordTable, row: Tensor) -> Tensor:
    """The output of the first convolution for a row of words, `[words, width]`."""
    padding = len(table.vectors) - 1
    at = functional.pad(row, (1, 1), value=padding) * 3
    neighbours = torch.stack((at[:-2], at[1:-1] + 1, at[2:] + 2), dim=-1)
    change = functional.glu(functional.embedding_bag(neighbours, table.products, mode="sum"), dim=-1)
    return change.add_(functional.embedding(row, table.vectors))


def filter_matrices(layer: Convolution) -> tuple[Tensor, ...]:
    """The four matrices `[width, 2 * width]` of `filter_pairs`."""
    left, middle, right = (part.t().contiguous() for part in layer.linear.weight.chunk(3, dim=1))
    return left, (left + middle + right) / 2, (left - middle + right) / 2, -right


def convolve(layer: Convolution, matrices: tuple[Tensor, ...], vectors: Tensor, real: Tensor) -> Tensor:
    """The output of a convolution for a row of words; `real` is 0 at padding."""
    inputs = layer.norm(vectors).mul_(real)
    if ONEDNN:
        sums = slide(inputs, layer.linear.weight.view(-1, 3, vectors.shape[1]), layer.linear.bias)
    else:
        sums = filter_pairs(inputs, matrices, layer.linear.bias)
    return functional.glu(sums, dim=-1).add_(vectors)


def filter_pairs(inputs: Tensor, matrices: tuple[Tensor, ...], bias: Tensor) -> Tensor:
    """Sums over three neighbouring words, for an even number of words, two at a time.

    This is the minimal filtering algorithm F(2, 3): Lavin and Gray (2016), "Fast algorithms for convolutional neural
    networks".
    """
    padded = functional.pad(inputs, (0, 0, 1, 1))
    before, first, second, after = padded[:-2:2], padded[1:-1:2], padded[2::2], padded[3::2]
    outer, plus, minus, last = matrices
    total = torch.addmm(bias, first + second, plus)
    difference = torch.mm(second - first, minus)
    sums = total.new_empty(len(total), 2, total.shape[1])
    torch.add(total, difference, out=sums[:, 0]).addmm_(before - second, outer)
    torch.sub(total, difference, out=sums[:, 1]).addmm_(first - after, last)
    return sums.view(len(inputs), -1)


def attend(layer: Attention, vectors: Tensor, visible: Tensor) -> Tensor:
    """The output of attention for a row of words, in sentences of which `visible` `[batch, words]` is the mask."""
    batch, words = len(visible), visible.shape[1] + 1
    size = batch * words
    projected = multiply(layer.norm(vectors), layer.inputs.weight, layer.inputs.bias)
    context = torch.zeros_like(vectors)
    context[:size].view(batch, words, layer.heads, -1).copy_(
        layer.attend(projected[:size].view(batch, words, -1), functional.pad(visible, (0, 1)))
    )
    return multiply(context, layer.output.weight, layer.output.bias).add_(vectors)


def multiply(rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """`functional.linear` for a number of rows that `IMAGES` divides."""
    return slide(rows, weight.unsqueeze(1), bias, IMAGES) if ONEDNN else functional.linear(rows, weight, bias)


def slide(rows: Tensor, weight: Tensor, bias: Tensor, images: int = 1) -> Tensor:
    """Sums over one or three neighbouring rows with weights `[outputs, neighbours, width]`, as torch convolves images.

    torch passes matrices to MKL, which uses AVX-512 on Intel processors only, but convolutions to oneDNN, which uses it
    on all: on an AMD processor that is twice as fast. The rows are the pixels of images that are one pixel high.
    """
    pixels = rows.view(images, 1, len(rows) // images, -1).permute(0, 3, 1, 2)
    kernel = weight.unsqueeze(1).permute(0, 3, 1, 2)
    sums = functional.conv2d(pixels, kernel, bias, padding=(0, weight.shape[1] // 2))
    return sums.permute(0, 2, 3, 1).reshape(len(rows), -1)
