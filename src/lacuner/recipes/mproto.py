"""MProto: several prototypes per class; optimal transport separates unlabeled entities from O.

What it does: each class, O included, has three prototypes. In each batch, words labeled with a type are assigned to the
    prototypes of that type, evenly. Unlabeled words are assigned to the prototypes of all classes by optimal transport,
    and a fixed share of them must go to those of the types. These words are treated as unlabeled entities and have no
    loss. The encoder learns to move each word near its prototype; prototypes follow the words that are predicted
    correctly.
Assumes: that labels are right, and that the share of unlabeled words that belong to entities is about `missing`.
Needs: weak; with dev, that share can be estimated from dev (`entity_ratio=dev`).
Costs: one training run, and a fifth of another for the estimate of `missing`.
Departs from the authors: `missing` is estimated from the weak labels, like the share in two-step learning, unless it or
    the entity ratio is set. Theirs is set for each data set, and far larger: their configurations send 95 % of the
    unlabeled words to the types (CoNLL-2003; `missing=0.95`) and even 99 % (BC5CDR, a fifth of the dictionary), so that
    only the words nearest to O have a loss. With 200 sentences of Wikigold (`tiny-en`, seed 11, dev), F1 is 46.8 with
    the estimate, 9.1 with 95 %, and 23.9 with 95 % and their entropy. Cosines are multiplied by `head.scale`; without
    it, a probability is never far from one half. A prototype keeps 0.99 of its value in a step, where theirs keeps 0.5:
    with our small batches it would follow the last batch (the same sentences, without transport: 12.2 with 0.5, 34.5
    with 0.99). Ruled-out words and complete documents are O and not transported. A linear layer maps the encoder's
    vectors to those that are compared; prototypes follow vectors with dropout. The score of a class is the sum over its
    prototypes, where theirs is that of the nearest one. `preset=paper` has their scale, momentum, entropy, rates and
    batches.
Reference: Wu et al. (2023), "MProto: multi-prototype network with denoised optimal transport for distantly supervised
    named entity recognition".
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError
from torch import Tensor

from lacuner.data import Lost, Splits
from lacuner.losses.optimal_transport import assign_prototypes
from lacuner.losses.prototypes import prototype_loss
from lacuner.models.config import PrototypeHeadConfig
from lacuner.models.heads.prototype import PrototypeHead
from lacuner.models.tagger import Tagger
from lacuner.models.types import PrototypeScores, Targets
from lacuner.techniques.entity_ratio import (
    EntityRatioConfig,
    RatioSetting,
    configured_entity_ratio,
    count_missing_words,
    exploration_epochs,
)
from lacuner.training.config import PresetConfig
from lacuner.training.data_parallel import score_batch
from lacuner.training.dataset import WeakTrainingSet, weak_training_set
from lacuner.training.run_folder import Run
from lacuner.training.stage import Selection, new_model, train_stage
from lacuner.training.steps import Step, StepLoss

NEEDS = ("weak",)
GROUP = "other methods"
PAPER = "Wu et al., 2023"
MAX_MISSING = 0.5
"""Highest estimate of the share of unlabeled words that belong to entities."""


class Config(EntityRatioConfig, PresetConfig):
    """Settings of `mproto`."""

    LATER: ClassVar[frozenset[str]] = frozenset({"entity_ratio", "entropy"})
    PAPER_SETTINGS: ClassVar[Mapping[str, Any]] = {
        "head": {"scale": 1.0, "dropout": 0.1},
        "train": {
            "epochs": 10,
            "learning_rate": 1e-5,
            "head_learning_rate": 1e-5,
            "weight_decay": 1e-4,
            "batch_size": 32,
        },
        "momentum": 0.5,
        "entropy": 0.001,
    }
    PRESET_FIELDS: ClassVar[frozenset[str]] = frozenset({"preset", *PAPER_SETTINGS})

    head: PrototypeHeadConfig = PrototypeHeadConfig()
    entity_ratio: RatioSetting = "odds"
    """Share of all words that belong to entities, from which `missing` follows: a number, one per label, or how to
    estimate it: from `dev`, `hidden` names, label `counts` or `odds`, or `auto` (dev if possible, else counts)."""
    missing: float | None = Field(None, ge=0, lt=1)
    """Share of the unlabeled words that are assigned to the types; by default that of `entity_ratio`, at most 0.5."""
    transport: bool = True
    """Whether unlabeled words are transported; otherwise they all are O."""
    momentum: float = Field(0.99, ge=0, lt=1)
    """Share of a prototype that is kept in each step; 0.5 in the paper, whose batches are larger."""
    entropy: float = Field(0.05, gt=0)
    """Weight of the entropy in the transport; the smaller, the harder the assignment."""
    compactness: float = Field(0.05, ge=0)
    """Weight of the distance between a word and its prototype."""

    @field_validator("missing")
    @classmethod
    def _is_set_once(cls, missing: float | None, info: ValidationInfo) -> float | None:
        if missing is not None and info.data.get("entity_ratio", "odds") != "odds":
            raise PydanticCustomError("missing", "set either missing or entity_ratio, from which it follows")
        return missing


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Train on `splits.weak` with prototypes and denoised optimal transport."""
    docs, lost = splits.weak or (), Lost()
    needs_estimate = config.transport and config.missing is None
    run.plan({**(exploration_epochs(splits, config) if needs_estimate else {}), "train": config.train.epochs})
    model = new_model(config, docs, run)
    assert isinstance(model.head, PrototypeHead)
    model.head.prototypes.requires_grad_(False)  # they follow the words instead
    weak = weak_training_set(model, docs, lost)
    missing = find_missing_share(weak, splits, config, run)
    run.log(f"mproto: training on {len(docs):,} documents, {100 * missing:.1f} % of unlabeled words left out: {lost}")
    step = transport_step(weak, model.head, missing, config)
    return Tagger(train_stage(weak.as_complete, lambda _: step, config.train, run, Selection(splits.dev)).model)


def find_missing_share(weak: WeakTrainingSet, splits: Splits, config: Config, run: Run) -> float:
    """The share of the unlabeled words that is assigned to the types: set, or by the entity ratio."""
    if not config.transport:
        return 0.0
    if config.missing is not None:
        return config.missing
    ratio = configured_entity_ratio(splits, config, run)
    run.log(f"mproto: {ratio.describe()}")
    missing_words = count_missing_words(ratio.value, splits.weak or ())
    return min(missing_words / max(int(weak.unlabeled.sum()), 1), MAX_MISSING)


def transport_step(weak: WeakTrainingSet, head: PrototypeHead, missing: float, config: Config) -> Step:
    """A training step: assign the words of a batch to prototypes, compute the loss, and move the prototypes."""
    data = weak.as_complete

    def step(indices: np.ndarray) -> StepLoss:
        targets = data.targets_of(indices)
        scores = score_batch(data.model, data.features, indices)
        certain = ~weak.unlabeled_in(indices).to(targets.known.device)
        assigned, known = assign_words(scores, targets, certain, head.count, missing, config.entropy)
        kept = Targets(targets.labels, known, targets.weight)
        total = prototype_loss(scores, kept, assigned, head.scale, config.compactness).sum()
        right = known & (scores.logits.argmax(dim=-1) == targets.labels)
        head.move_prototypes(scores.directions[right], assigned[right], config.momentum)
        return StepLoss(
            total, float(data.features.lengths[indices].sum()), float(known.sum()), float(scores.mask.sum())
        )

    return step


@torch.no_grad()
def assign_words(
    scores: PrototypeScores, targets: Targets, certain: Tensor, prototypes: int, missing: float, entropy: float = 0.05
) -> tuple[Tensor, Tensor]:
    """The prototype of each word `[batch, words]`, and which words stay in the loss.

    >>> near = torch.tensor([[[0.9, 0.0], [0.0, 0.9], [0.0, 0.8]]])  # similarity with O, and with a type
    >>> mask = torch.ones(1, 3, dtype=torch.bool)
    >>> labels = torch.tensor([[0, 0, 1]])
    >>> words = PrototypeScores(near, near, near, mask), Targets(labels, mask, torch.ones(1, 3))
    >>> assign_words(*words, certain=labels > 0, prototypes=1, missing=0.5)[1].tolist()
    [[True, False, True]]
    """
    at = targets.known & scores.mask
    labels = targets.labels[at]
    prototype = assign_prototypes(scores.similarities[at], labels, certain[at], prototypes, missing, entropy)
    assigned, kept = torch.zeros_like(targets.labels), torch.zeros_like(at)
    assigned[at] = prototype
    kept[at] = prototype // prototypes == labels
    return assigned, kept
