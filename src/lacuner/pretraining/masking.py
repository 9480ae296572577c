"""Hiding words and guessing them: the step of masked pre-training, and how well hidden words are guessed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import exp

import numpy as np
import torch
from torch import Tensor

from lacuner.models.inference import infer_batches
from lacuner.models.model import MaskedLanguageModel
from lacuner.models.ragged import pad_rows
from lacuner.pretraining.units import AS_IT_IS, Units
from lacuner.training.loop import HeldOut, Step, StepLoss

MASKED, RANDOM = 0.8, 0.1
"""What becomes of a unit that is to be guessed: hidden, or replaced by any other; else it stays (BERT's shares)."""


@dataclass(frozen=True)
class Hidden:
    """What is read in place of each unit of a row (or `AS_IT_IS`), and what is to be guessed there (or `AS_IT_IS`)."""

    inputs: np.ndarray
    wanted: np.ndarray


def hide(units: Units, model: MaskedLanguageModel, rate: float, whole_words: bool) -> Hidden:
    """Draw what is to be guessed, a share of all units, or of all words; randomness is torch's own."""
    numbers, head = units.numbers, model.head
    words = int(units.word[-1]) + 1 if len(units.word) else 0
    chance = torch.rand(words).numpy()[units.word] if whole_words else torch.rand(len(numbers)).numpy()
    chosen = (chance < rate) & (numbers >= 0)
    fate, other = torch.rand(len(numbers)).numpy(), torch.randint(head.size, (len(numbers),)).numpy()
    inputs = np.where(fate < MASKED, head.mask, np.where(fate < MASKED + RANDOM, other, AS_IT_IS))
    return Hidden(np.where(chosen, inputs, AS_IT_IS), np.where(chosen, numbers, AS_IT_IS))


def guess_step(units: Units, model: MaskedLanguageModel, hidden: Hidden) -> Step:
    """The step of an epoch: a mean over what is to be guessed."""

    def step(indices: np.ndarray) -> StepLoss:
        vectors, wanted = _at(units, model, indices, hidden.inputs, hidden.wanted)
        losses = model.head.losses(vectors, wanted)
        count, words = float(len(wanted)), float(units.features.lengths[indices].sum())
        return StepLoss(losses.sum(), count, count, words)

    return step


def _at(
    units: Units, model: MaskedLanguageModel, indices: np.ndarray, inputs: np.ndarray, wanted: np.ndarray
) -> tuple[Tensor, Tensor]:
    """The vectors of the units of some sentences where something is wanted, and what."""
    device = next(model.parameters()).device
    positions, real = pad_rows(units.offsets, indices)
    asked = np.where(real, wanted[positions], AS_IT_IS)
    vectors = units.vectors(model, units.collate(model, indices, inputs).to(device))
    at = torch.from_numpy(asked != AS_IT_IS).to(device)
    return vectors[:, : asked.shape[1]][at], torch.from_numpy(asked).to(device)[at]


def measure(units: Units, model: MaskedLanguageModel, rate: float, whole_words: bool) -> HeldOut:
    """How well each unit is guessed when it is hidden, in as many rounds as it takes.

    Units that the head has no number for count as never guessed, but have no place in the perplexity.
    """
    rounds = max(round(1 / rate), 1)
    draw = np.random.default_rng(0).integers(rounds, size=len(units.numbers))
    drawn = draw[units.word] if whole_words else draw
    sums = np.zeros(3)
    for turn in range(rounds):
        chosen = drawn == turn
        inputs = np.where(chosen, model.head.mask, AS_IT_IS)
        wanted = np.where(chosen, units.numbers, AS_IT_IS)
        compute = partial(_guessed, units, model, inputs, wanted)
        sums += sum((counts for _, counts in infer_batches(model, units.features, compute)), np.zeros(3))
    known = int((units.numbers >= 0).sum())
    first, five, loss = sums.tolist()
    count, perplexity = max(len(units.numbers), 1), exp(min(loss / max(known, 1), 50.0))
    row = {"top1": round(first / count, 6), "top5": round(five / count, 6), "perplexity": round(perplexity, 4)}
    return HeldOut(1 / perplexity, row)


def _guessed(
    units: Units, model: MaskedLanguageModel, inputs: np.ndarray, masked: np.ndarray, indices: np.ndarray
) -> np.ndarray:
    """How many are the first guess, how many are among the first five, and the sum of their losses."""
    vectors, wanted = _at(units, model, indices, inputs, masked)
    if not len(wanted):
        return np.zeros(3)
    logs = model.head.log_probs(vectors)
    best = logs.topk(min(5, logs.shape[-1]), dim=-1).indices == wanted.unsqueeze(-1)
    loss = -logs.gather(1, wanted.unsqueeze(-1)).double().sum()
    return np.array([float(best[:, 0].sum()), float(best.sum()), float(loss)])
