"""What a young model thinks of the words that nobody labelled: their O-values, and which of them are suspects.

Networks learn easy patterns before noise: after one to three epochs the score of O is visibly lower for a word of an
entity that nobody labelled than for a word that is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lacuner.data import Document, Lost
from lacuner.models.heads.crf import tag_marginals
from lacuner.models.inference import score_corpus
from lacuner.models.model import Model
from lacuner.models.types import CRFScores, Features
from lacuner.training.config import HasPlainSettings, TrainConfig, resolved
from lacuner.training.dataset import Believed, believed_set
from lacuner.training.loop import Step, fit
from lacuner.training.run_folder import Run
from lacuner.training.stage import new_model, once
from lacuner.training.steps import believe

WIDER, FASTER = 2, 1.5
"""How many times the words of a usual step, and its learning rate, one of the exploration has."""

Opinion = dict[str, Tensor]
"""Of the row of all words: `value`, the score of O, and `none`, the probability of O."""


@dataclass(frozen=True)
class Explored:
    """Weak data, and what a young model thought of it."""

    weak: Believed
    opinions: dict[int, Opinion]
    """By the number of epochs after which the model was asked."""

    def missing_share(self, epoch: int) -> float:
        """The share of the words taken for O that belong to entities, as it seems after an epoch."""
        return missing_share(self.opinions[epoch]["none"].numpy(), self.weak.plain, self.weak.labelled)

    def labelled_share(self, epoch: int) -> float:
        """The share of the words of entities that have a label, as it seems after an epoch."""
        return labelled_share(self.opinions[epoch]["none"].numpy(), self.weak.labelled)

    def suspects(self, epoch: int, share: float) -> np.ndarray:
        """The words of the row with the smallest O-values after an epoch: a mask."""
        return smallest(self.opinions[epoch]["value"].numpy(), self.weak.plain, share)


def explore(docs: Sequence[Document], config: HasPlainSettings, epochs: int, run: Run, each: bool = False) -> Explored:
    """Train a model that will be thrown away, and ask it what it thinks of every word: at the end, or after each epoch.

    Each opinion is a finished stage before the next epoch begins, so that a run that was killed in the middle of an
    epoch never asks a model that is half through it.
    """
    model = new_model(config.encoder, config.head, docs, run, "explore")
    lost = Lost()
    weak = believed_set(model, docs, lost)
    features, step = weak.data.features, believe(weak.data)
    run.say(f"exploring {len(docs):,} documents: {lost}")

    def ask(epoch: int) -> Opinion:
        return once(run, f"explore/{epoch}", lambda: opinion(model, features))

    def make_step(epoch: int) -> Step:
        if epoch and each:
            ask(epoch)
        return step

    settings = _hasty(config.train, resolved(config.train, model, features), model)
    with run.stage("explore") as stage:
        fit(model, features, make_step, settings.model_copy(update={"epochs": epochs, "patience": None}), stage)
    return Explored(weak, {epoch: ask(epoch) for epoch in range(1 if each else epochs, epochs + 1)})


def _hasty(given: TrainConfig, usual: TrainConfig, model: Model) -> TrainConfig:
    """Fewer and larger steps, where nobody said how large: a quarter cheaper, and they find as much.

    Resume, Wikigold, BC5CDR and EC, half of the labels masked, two seeds: of the words under suspicion 85.3 % belong to
    entities, and 62.9 % of those that do are under suspicion; with usual steps 86.4 and 61.7 %. Encoders that start
    from pretrained weights were not compared.
    """
    if model.encoder.is_transformer or given.budget or given.learning_rate or given.head_learning_rate:
        return usual
    assert usual.budget and usual.learning_rate and usual.head_learning_rate
    return usual.model_copy(
        update={
            "budget": WIDER * usual.budget,
            "learning_rate": FASTER * usual.learning_rate,
            "head_learning_rate": FASTER * usual.head_learning_rate,
        }
    )


def opinion(model: Model, features: Features) -> Opinion:
    """What the model thinks of prepared sentences."""

    def of_o(scores: Any) -> Tensor:
        probs = tag_marginals(scores) if isinstance(scores, CRFScores) else scores.logits.softmax(dim=-1)
        return torch.stack([scores.logits[..., 0], probs[..., 0]], dim=-1)

    value, none = score_corpus(model, features, of_o).unbind(dim=-1)
    return {"value": value, "none": none}


def smallest(values: np.ndarray, plain: np.ndarray, share: float) -> np.ndarray:
    """The words with the smallest values of those that are taken for O, `ceil(share * m)` of all `m`: a mask."""
    places = np.flatnonzero(plain)
    count = ceil(share * len(places) - 1e-9)  # a product that is whole but for rounding stays whole
    found = np.zeros(len(values), dtype=bool)
    found[places[np.argsort(values[places], kind="stable")[:count]]] = True
    return found


def labelled_share(none: np.ndarray, labelled: np.ndarray) -> float:
    """How many of the words of entities have a label, as the model sees it: how sure it is where there is one.

    A model that cannot tell words apart but by what they look like gives an entity's word that share of being labelled.
    """
    return float(np.clip((1 - none[labelled]).mean(), 1e-3, 1.0)) if labelled.any() else 1.0


def missing_share(none: np.ndarray, plain: np.ndarray, labelled: np.ndarray) -> float:
    """The share of the words taken for O that belong to entities, estimated from weak labels alone.

    By Elkan and Noto (2008), "Learning classifiers from only positive and unlabeled data": if a share `c` of the words
    of entities has a label, then an unlabelled word of which the model thinks that it has one with probability `p`
    belongs to an entity with probability `(1 - c) / c * p / (1 - p)`.
    """
    if not plain.any():
        return 0.0
    share = labelled_share(none, labelled)
    odds = (1 - none[plain]) / np.maximum(none[plain], 1e-6)
    return float(np.minimum(odds * (1 - share) / share, 1.0).mean())
