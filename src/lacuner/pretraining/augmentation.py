"""Sentences said otherwise: a masked language model puts other words in some places, and labels stay where they are.

What it does: hides 15 % of the words (or sub-words) and puts, in place of each, one of the five that the model thinks
    most likely there, drawn by their probability; only if it begins with a capital as the hidden one did, and begins a
    word if the hidden one did. Else the hidden one stays.
Assumes: that a word which fits the place is of the same type as the one that stood there.
Departs from the authors: their code guesses with an encoder that has been fine-tuned meanwhile, and also replaces words
    that were not hidden; this follows their text. Where an encoder ignores case, its guess gets the case of the hidden
    word.
Reference: Meng et al. (2021), "Distantly-supervised named entity recognition with noise-robust learning and language
    model augmented self-training" (RoSTER).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from lacuner.models.heads.masked import MaskedWordHead
from lacuner.models.inference import infer_batches
from lacuner.models.model import MaskedLanguageModel
from lacuner.models.ragged import offsets_of, pad_rows
from lacuner.pretraining.units import AS_IT_IS, Units, prepare_units

TOP = 5
CONTINUES, BEGINS = "##", ("Ġ", "▁")
"""How sub-words say that they continue a word, or that they begin one."""


@dataclass(frozen=True)
class Augmenter:
    """Sentences made ready for being said otherwise, as often as one likes."""

    model: MaskedLanguageModel
    sentences: Sequence[Sequence[str]]
    units: Units
    kind: np.ndarray
    """Of each unit: whether it begins with a capital, and whether it begins a word, as one number."""
    kinds: np.ndarray
    """The same of each unit of the head's vocabulary; -1 where it may not stand in a sentence."""

    def draw(self, rate: float = 0.15) -> list[list[str]]:
        """The sentences with other words in some places; randomness is torch's own."""
        numbers = self._guess(torch.rand(len(self.units.numbers)).numpy() < rate)
        changed = np.unique(self.units.word[numbers >= 0])
        flat = [word for words in self.sentences for word in words]
        for place, word in zip(changed.tolist(), self._spell(numbers, changed), strict=True):
            flat[place] = recased(word, flat[place]) or flat[place]
        ends = offsets_of(self.units.features.lengths).tolist()
        made = [flat[start:end] for start, end in pairwise(ends)]
        return self._short_enough(flat, made)

    def _guess(self, chosen: np.ndarray) -> np.ndarray:
        """The numbers of the units that are to stand in some places, `AS_IT_IS` in all others."""
        units, model = self.units, self.model
        inputs = np.where(chosen, model.head.mask, AS_IT_IS)
        found = np.full(len(inputs), AS_IT_IS, dtype=np.int64)
        device = next(model.parameters()).device

        def draw(indices: np.ndarray) -> None:
            positions, real = pad_rows(units.offsets, indices)
            here = real & chosen[positions] if len(chosen) else real
            if here.any():
                vectors = units.vectors(model, units.collate(model, indices, inputs).to(device))
                logs = model.head.log_probs(vectors[:, : here.shape[1]][torch.from_numpy(here).to(device)])
                best = logs.topk(min(TOP, logs.shape[-1]), dim=-1)
                drawn = torch.multinomial(best.values.exp(), 1)
                found[positions[here]] = best.indices.gather(1, drawn).squeeze(1).cpu().numpy()

        for _ in infer_batches(model, units.features, draw):
            pass
        same = chosen & (self.kinds[found] == self.kind) & (found != units.numbers)
        return np.where(same, found, AS_IT_IS)

    def _spell(self, numbers: np.ndarray, changed: np.ndarray) -> list[str]:
        """The changed words in letters; an empty string where that makes no word."""
        if isinstance(self.model.head, MaskedWordHead):
            return [self.model.head.labels[number] for number in numbers[numbers >= 0]]
        ids = np.where(numbers >= 0, numbers, self.units.numbers)
        first = np.searchsorted(self.units.word, changed)
        last = np.searchsorted(self.units.word, changed, side="right")
        pieces = [ids[start:end].tolist() for start, end in zip(first, last, strict=True)]
        unknown = self.model.subword_encoder.ids["unknown"]
        words = [word.strip() for word in self.model.subword_encoder.tokenizer.decode_batch(pieces)]
        sound = [unknown not in mine and word.split() == [word] for mine, word in zip(pieces, words, strict=True)]
        return [word if good else "" for word, good in zip(words, sound, strict=True)]

    def _short_enough(self, flat: Sequence[str], made: list[list[str]]) -> list[list[str]]:
        """Sentences that have become too long for the encoder stay as they were."""
        limit = self.model.encoder.limit
        if limit is None:
            return made
        ends = offsets_of(self.units.features.lengths)
        costs = np.diff(offsets_of(self.model.encoder.count(flat))[ends])
        return [list(old) if cost > limit else new for old, new, cost in zip(self.sentences, made, costs, strict=True)]


def recased(word: str, like: str) -> str:
    """A word in capitals, or with a capital, where the other one is and an encoder that ignores case forgot it."""
    if word and like[:1].isupper() and not word[:1].isupper():
        return word.upper() if len(like) > 1 and like.isupper() else word[:1].upper() + word[1:]
    return word


def augmenter(model: MaskedLanguageModel, sentences: Sequence[Sequence[str]]) -> Augmenter:
    """Make sentences ready, once."""
    units = prepare_units(model, sentences)
    if isinstance(model.head, MaskedWordHead):
        kinds = np.array([word[:1].isupper() for word in model.head.labels], dtype=np.int64)
        own = np.array([word[:1].isupper() for words in sentences for word in words], dtype=np.int64)
        return Augmenter(model, sentences, units, own, kinds)
    kinds = _piece_kinds(model)
    special = np.array([token["id"] for token in _added(model)], dtype=np.int64)
    allowed = kinds.copy()
    allowed[special[special < len(allowed)]] = -1
    return Augmenter(model, sentences, units, kinds[units.numbers], allowed)


def _piece_kinds(model: MaskedLanguageModel) -> np.ndarray:
    """Of each sub-word: 2 if it begins a word, and 1 more if its first letter is a capital; -1 of none."""
    from tokenizers import decoders

    kinds = np.full(model.head.size, -1, dtype=np.int64)
    tokenizer = model.subword_encoder.tokenizer
    vocabulary = tokenizer.get_vocab()
    decoder = json.dumps(json.loads(tokenizer.to_str()).get("decoder") or {})
    in_bytes = decoders.ByteLevel() if '"ByteLevel"' in decoder else None
    marked = '"WordPiece"' not in decoder and any(piece.startswith(BEGINS) for piece in vocabulary)
    for piece, number in vocabulary.items():
        begins = piece.startswith(BEGINS) if marked else not piece.startswith(CONTINUES)
        bare = piece.lstrip("".join(BEGINS)) if marked else piece.removeprefix(CONTINUES)
        if in_bytes is not None:  # a letter that is not ASCII is several of its signs
            bare = in_bytes.decode([bare])
        if number < len(kinds):
            kinds[number] = 2 * begins + bare[:1].isupper()
    return kinds


def _added(model: MaskedLanguageModel) -> list[dict[str, Any]]:
    """Sub-words that are no text: marks, padding, the mask."""
    tokens = json.loads(model.subword_encoder.tokenizer.to_str()).get("added_tokens") or []
    return [token for token in tokens if token.get("special")]
