"""MProto: several prototypes per class, and optimal transport that tells unlabeled entities from O.

What it does: each class, O included, has three prototypes. In each batch, words labeled with a type are assigned to the
    prototypes of that type, evenly. Unlabeled words are assigned to the prototypes of all classes by optimal transport:
    a given share of them must go to those of the types. These are taken for unlabeled entities and leave the loss. The
    encoder learns to bring each word near its prototype; prototypes follow the words that are predicted rightly.
Assumes: that labels are right, and that the share of unlabeled words that belong to entities is about `missing`.
Needs: weak.
Costs: one training run, and a fifth of another for the estimate of `missing`.
Departs from the authors: `missing` is estimated from the weak labels, like the share in two-step learning, unless it is
    given; theirs is set for each data set. Cosines are multiplied by `head.scale`: without it, as in `preset=paper`, a
    probability is never far from one half. A prototype keeps 0.99 of its value in a step, where theirs keeps 0.5: with
    our small batches it would follow the last batch (200 sentences of Wikigold, `tiny-en`, without transport, seed 11:
    dev F1 12.2 with 0.5, 34.5 with 0.99, and 46.8 with transport). Ruled-out words and complete documents are O and not
    transported. A linear layer maps the encoder's vectors to those that are compared.
Reference: Wu et al. (2023), "MProto: multi-prototype network with denoised optimal transport for distantly supervised
    named entity recognition".
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor

from lacuner.data import Lost, Splits
from lacuner.losses.optimal_transport import assign_prototypes
from lacuner.losses.prototypes import prototype_loss
from lacuner.models.config import PrototypeHeadConfig
from lacuner.models.heads.prototype import PrototypeHead
from lacuner.models.tagger import Tagger
from lacuner.models.types import PrototypeScores, Targets
from lacuner.techniques.early_learning import explore
from lacuner.training.config import RecipeConfig
from lacuner.training.data_parallel import score_batch
from lacuner.training.dataset import WeakTrainingSet, weak_training_set
from lacuner.training.run_folder import Run
from lacuner.training.stage import Selection, new_model, train_stage
from lacuner.training.steps import Step, StepLoss

NEEDS = ("weak",)
GROUP = "other methods"
PAPER = "Wu et al., 2023"
PAPER_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "head": {"scale": 1.0},
    "train": {"epochs": 10, "learning_rate": 1e-5, "weight_decay": 1e-4},
}
"""What `preset=paper` changes: settings for a large transformer."""
PAPER_MOMENTUM = 0.5
MAX_MISSING = 0.5
"""Highest estimate of the share of unlabeled words that belong to entities."""


class Config(RecipeConfig):
    """Settings of `mproto`."""

    PRESET_FIELDS: ClassVar[frozenset[str]] = frozenset({"preset", "head", "train", "momentum"})

    preset: Literal["small", "paper"] = "small"
    """Settings for small encoders, or those of the paper, for large transformers."""
    head: PrototypeHeadConfig = PrototypeHeadConfig()
    missing: float | None = Field(None, ge=0, lt=1)
    """Share of the unlabeled words that belong to entities; by default estimated from the weak labels."""
    transport: bool = True
    """Whether unlabeled words are transported; otherwise they all are O."""
    momentum: float = Field(0.99, ge=0, lt=1)
    """How much of a prototype is kept in each step; 0.5 in the paper, whose batches are larger."""
    compactness: float = Field(0.05, ge=0)
    """Weight of the distance between a word and its prototype."""
    explore: int = Field(3, ge=1)
    """Epochs of the model that `missing` is estimated with."""

    @model_validator(mode="before")
    @classmethod
    def _fill_in_preset(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("preset") != "paper":
            return values
        tables = {k: {**defaults, **_as_dict(values.get(k))} for k, defaults in PAPER_SETTINGS.items()}
        return {"momentum": PAPER_MOMENTUM, **values, **tables}

    def matching_defaults(self) -> RecipeConfig:
        return Config(preset=self.preset)


def _as_dict(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else value.model_dump(exclude_unset=True) if value else {}


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Train on `splits.weak` with prototypes and denoised optimal transport."""
    docs, lost = splits.weak or (), Lost()
    run.plan({"train": config.train.epochs})  # find_missing_share plans its exploration before it
    missing = find_missing_share(splits, config, run)
    model = new_model(config, docs, run)
    assert isinstance(model.head, PrototypeHead)
    model.head.prototypes.requires_grad_(False)  # they follow the words instead
    weak = weak_training_set(model, docs, lost)
    run.log(f"mproto: training on {len(docs):,} documents, {100 * missing:.1f} % of unlabeled words left out: {lost}")
    step = transport_step(weak, model.head, missing, config)
    return Tagger(train_stage(weak.as_complete, lambda _: step, config.train, run, Selection(splits.dev)).model)


def find_missing_share(splits: Splits, config: Config, run: Run) -> float:
    """The share of the unlabeled words that belong to entities: given, or estimated from the weak labels."""
    if not config.transport:
        return 0.0
    if config.missing is not None:
        return config.missing
    run.plan({"explore": config.explore})
    exploration = explore(splits.weak or (), config, config.explore, run)
    return min(exploration.missing_share(config.explore), MAX_MISSING)


def transport_step(weak: WeakTrainingSet, head: PrototypeHead, missing: float, config: Config) -> Step:
    """A training step: assign the words of a batch to prototypes, compute the loss, and move the prototypes."""
    data = weak.as_complete

    def step(indices: np.ndarray) -> StepLoss:
        targets = data.targets_of(indices)
        scores = score_batch(data.model, data.features, indices)
        certain = ~weak.unlabeled_in(indices).to(targets.known.device)
        assigned, known = assign_words(scores, targets, certain, head.count, missing)
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
    scores: PrototypeScores, targets: Targets, certain: Tensor, prototypes: int, missing: float
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
    own = assign_prototypes(scores.similarities[at], targets.labels[at], certain[at], prototypes, missing)
    assigned, kept = torch.zeros_like(targets.labels), torch.zeros_like(at)
    assigned[at] = own
    kept[at] = own // prototypes == targets.labels[at]
    return assigned, kept
