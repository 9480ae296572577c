"""Semi-supervised training: a supervised loss on gold, and a consistency loss on gold and unlabeled text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from lacuner.corpus.words import words_of
from lacuner.data import Document, Lost
from lacuner.losses.cross_entropy import cross_entropy
from lacuner.models.config import PositionHeadConfig
from lacuner.models.model import Model
from lacuner.models.types import SpanScores, Targets, TokenScores
from lacuner.training.config import RecipeConfig
from lacuner.training.data_parallel import score_batch
from lacuner.training.dataset import TrainingSet, training_set
from lacuner.training.steps import MakeStep, Step, StepLoss


class ConsistencyConfig(RecipeConfig):
    """Settings of recipes with a consistency loss."""

    head: PositionHeadConfig = PositionHeadConfig()
    weight: float = Field(1.0, ge=0)
    """Weight of the consistency loss, per word, relative to the supervised loss."""
    rampup: float = Field(3.0, ge=0)
    """Number of epochs in which the weight of the consistency loss rises from nearly 0."""
    gold_share: float = Field(0.25, gt=0, lt=1)
    """Share of gold among the words of an epoch; gold is repeated until it has this share."""


@dataclass(frozen=True)
class SemiSupervisedSet:
    """Gold and unlabeled sentences. All positions are known, except unsure ones; only gold has labels."""

    data: TrainingSet
    is_gold: np.ndarray
    """Which sentences have labels."""
    factor: float
    """All words per gold word: the factor that makes a sum over gold words comparable with one over all words."""

    def supervised_loss(self, scores: TokenScores | SpanScores, targets: Targets, indices: np.ndarray) -> Tensor:
        """The summed cross-entropy of the gold sentences of a batch, as large as if all its sentences were gold."""
        gold = torch.from_numpy(self.is_gold[indices]).to(targets.known.device)
        known = targets.known & gold.view(-1, *[1] * (targets.known.dim() - 1))
        return self.factor * cross_entropy(scores, replace(targets, known=known)).sum()


def semi_supervised_set(
    model: Model, gold: Sequence[Document], texts: Sequence[Document], share: float, lost: Lost
) -> SemiSupervisedSet:
    """Prepare gold and texts. Gold is repeated until it has about this share of the words of an epoch."""
    words, others = (sum(len(words_of(doc)) for doc in docs) for docs in (gold, texts))
    repeats = gold_repeats(words, others, share)
    repeated = [doc for doc in gold for _ in range(repeats)]
    data = training_set(model, [*repeated, *(replace(doc, complete=True) for doc in texts)], lost)
    factor = (repeats * words + others) / max(repeats * words, 1)
    return SemiSupervisedSet(data, data.sentences.document < len(repeated), factor)


def gold_repeats(gold_words: int, other_words: int, share: float) -> int:
    """How often gold occurs in an epoch, so that it has about this share of the words; at least once.

    >>> gold_repeats(100, 900, 0.25)
    3
    """
    return max(1, round(share / (1 - share) * other_words / max(gold_words, 1)))


def ramp_up(epoch: int, epochs: float) -> float:
    """Weight of the consistency loss relative to its full weight: it rises from nearly 0 to 1 in some epochs.

    >>> [round(ramp_up(epoch, 4), 2) for epoch in range(6)]
    [0.01, 0.06, 0.29, 0.73, 1.0, 1.0]
    """
    return exp(-5 * (1 - min(1.0, epoch / epochs)) ** 2) if epochs else 1.0


def consistency_steps(
    semi: SemiSupervisedSet, loss: Callable[[Any, Targets, np.ndarray], Tensor], config: ConsistencyConfig
) -> MakeStep:
    """Steps with the supervised loss on gold and a consistency loss on all sentences, whose weight rises.

    `loss` gets the scores, the targets and the indices of the sentences of a batch, and returns a sum.
    """
    data = semi.data

    def make_step(epoch: int) -> Step:
        weight = config.weight * ramp_up(epoch, config.rampup)

        def step(indices: np.ndarray) -> StepLoss:
            targets = data.targets_of(indices)
            scores = score_batch(data.model, data.features, indices)
            total = semi.supervised_loss(scores, targets, indices)
            if weight:
                total = total + weight * loss(scores, targets, indices)
            words = float(data.features.lengths[indices].sum())
            return StepLoss(total, words, float((targets.known & scores.mask).sum()), float(scores.mask.sum()))

        return step

    return make_step
