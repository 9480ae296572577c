"""What can be hidden from an encoder: the words of `tiny` and `lstm`, the sub-words of Hugging Face encoders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from lacuner.models.heads.masked import MASK, MaskedWordHead
from lacuner.models.model import MaskedLanguageModel
from lacuner.models.ragged import offsets_of, pad_rows, run_positions
from lacuner.models.types import Batch, Features

AS_IT_IS = -1
"""In `inputs`: read what is there. In `numbers`: no number of the head's."""


@dataclass(frozen=True)
class Units:
    """The units of prepared sentences, in one row, with their numbers in a masked-word head."""

    features: Features
    numbers: np.ndarray
    offsets: np.ndarray
    """Where each sentence's units begin, and, last, where the row ends."""
    word: np.ndarray
    """The word, counted through all sentences, that each unit is a part of."""
    place: np.ndarray | None
    """Where encoders of words have the words of the vocabulary and, last, the hidden one; None for sub-words."""

    def collate(self, model: MaskedLanguageModel, indices: np.ndarray, inputs: np.ndarray) -> Batch:
        """Some sentences, in which other units may stand: `inputs` has their numbers, or `AS_IT_IS`."""
        features = self.features
        positions, real = pad_rows(self.offsets, indices)
        if self.place is None:
            batch: Batch = model.encoder.collate(features, indices)
            ids, new = batch.tensors["ids"], torch.from_numpy(inputs[positions] if len(inputs) else positions)
            changed = torch.from_numpy(real) & (new >= 0)
            before = int(batch.tensors["first"][:, 0].max())  # the marks that stand before each sentence
            row, column = changed.nonzero(as_tuple=True)
            ids[row, column + before] = new[changed]
            batch.tensors["shape"][row, column + before] = 0  # it would say how the hidden word is written
            return batch
        at = positions[real]
        row_of = np.where(inputs[at] >= 0, self.place[inputs[at]], features.arrays["row"][at])
        lengths = features.lengths[indices]
        arrays = {**features.arrays, "row": row_of, "offsets": offsets_of(lengths)}
        made: Batch = model.encoder.collate(Features(lengths, lengths, arrays), np.arange(len(lengths)))
        return made

    def vectors(self, model: MaskedLanguageModel, batch: Batch) -> Tensor:
        """Vectors `[batch, units, width]`; those of padding mean nothing."""
        if self.place is not None:
            words: Tensor = model.encoder(batch)
            return words
        pieces: Tensor = model.subword_encoder.pieces(batch)
        return pieces[:, int(batch.tensors["first"][:, 0].max()) :]


def prepare_units(model: MaskedLanguageModel, sentences: Sequence[Sequence[str]]) -> Units:
    """Once a corpus: what of it the model's masked-word head can guess."""
    if isinstance(model.head, MaskedWordHead):
        return _words(model, sentences)
    features = model.encoder.prepare(sentences)
    arrays = features.arrays
    sizes = np.diff(arrays["piece_offsets"])[arrays["row"]]
    numbers = arrays["pieces"][run_positions(arrays["piece_offsets"][arrays["row"]], sizes)]
    word = np.repeat(np.arange(len(sizes)), sizes)
    return Units(features, numbers, offsets_of(features.costs), word, None)


def _words(model: MaskedLanguageModel, sentences: Sequence[Sequence[str]]) -> Units:
    vocabulary = model.head.labels
    features = model.encoder.prepare([*sentences, [*vocabulary, MASK]])  # so that each of them has a place
    row, offsets = features.arrays["row"], features.arrays["offsets"]
    words, place = row[: offsets[-2]], row[offsets[-2] :]
    number = np.full(int(row.max()) + 1, AS_IT_IS, dtype=np.int64)
    number[place[:-1]] = np.arange(len(vocabulary))
    arrays = {**features.arrays, "row": words, "offsets": offsets[:-1]}
    read = replace(features, lengths=features.lengths[:-1], costs=features.costs[:-1], arrays=arrays)
    return Units(read, number[words], offsets[:-1], np.arange(len(words)), place)
