"""Semi-supervised training: a supervised loss on gold, and a consistency loss on gold and unlabeled text."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp

import numpy as np
import torch
from torch import Tensor

from lacuner.corpus.words import words_of
from lacuner.data import Document, Lost
from lacuner.losses.cross_entropy import cross_entropy
from lacuner.models.model import Model
from lacuner.models.types import SpanScores, Targets, TokenScores
from lacuner.training.dataset import TrainingSet, training_set


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
