"""CuPUL: positive-unlabeled learning with a curriculum, from easy words to hard ones.

What it does: (1) trains a few models, the voters, on weak labels treated as complete, each without a random share of
    the unlabeled words. (2) Measures how hard each word is: by how much the voters disagree about it. (3) Trains one
    model in stages, first on the easiest half of the words, in the end on all of them, with a positive-unlabeled risk:
    an unlabeled word that the voters take for an entity does not count as O, and class priors correct for that. With
    `stages=1` there is no curriculum; then it is Conf-MPU, with the voters as its entity classifier.
Assumes: that labels are right, and that the voters disagree where labels are missing or wrong.
Needs: weak.
Costs: a third of a training run per voter, one more for the curriculum, and a fifth for the class priors.
Departs from the authors: their class priors are taken from gold and fixed in their code; ours are estimated, or set by
    `entity_ratio`. They use mean absolute error (`base=mae`), with which a small encoder hardly learns rare classes:
    `tiny-en` predicted nothing (Wikigold's dev, a fifth of the names labeled; F1 51.7 with cross-entropy, one seed).
    Their released code trains the curriculum with the risk of the voters (`risk=mpn`); the default here is the risk of
    their paper. Their fourth step, self-training as in RoSTER, is left out. Words that are ruled out, and those of
    complete documents, count as O whatever the voters predict. The defaults also suit encoders trained from scratch;
    `preset=paper` has the settings for CoNLL-2003, with a learning rate from the middle of the paper's range.
Reference: Li et al. (2025), "Re-examine distantly supervised NER: a new benchmark and a simple approach" (CuPUL); Zhou
    et al. (2022), "Distantly supervised named entity recognition via confidence-based multi-class positive and
    unlabeled learning" (Conf-MPU).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from math import ceil
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from lacuner.advice.entity_ratio import EntityRatio
from lacuner.data import Document, Lost, Splits
from lacuner.losses.conf_mpu import Base, conf_mpu_risk, mpn_risk
from lacuner.models.config import TokenHeadConfig
from lacuner.models.inference import probabilities, score_corpus
from lacuner.models.tag_sets import tag_set_of
from lacuner.models.tagger import Tagger
from lacuner.models.types import Targets
from lacuner.recipes.pu import default_base
from lacuner.techniques.entity_ratio import (
    EntityRatioConfig,
    configured_entity_ratio,
    exploration_epochs,
    ratios_to_labeled,
)
from lacuner.training.config import PresetConfig
from lacuner.training.dataset import WeakTrainingSet, weak_training_set
from lacuner.training.parallel import train_members
from lacuner.training.run_folder import Run
from lacuner.training.stage import Selection, cached_tensors, load_stage, new_model, train_stage
from lacuner.training.steps import Step, loss_step

NEEDS = ("weak",)
GROUP = "other methods"
PAPER = "Li et al., 2025"


class Config(EntityRatioConfig, PresetConfig):
    """Settings of `cupul`; `train` applies to the curriculum."""

    LATER: ClassVar[frozenset[str]] = frozenset({"preset", "drop_labeled"})
    RENAMED: ClassVar[Mapping[str, str]] = {"prior": "entity_ratio"}
    PAPER_SETTINGS: ClassVar[Mapping[str, Any]] = {
        "train": {"epochs": 5, "learning_rate": 2e-5, "head_learning_rate": 2e-5, "batch_size": 32},
        "voter_epochs": 1,
        "base": "mae",
        "positive": 20.0,
    }
    PRESET_FIELDS: ClassVar[frozenset[str]] = frozenset({"preset", *PAPER_SETTINGS})

    head: TokenHeadConfig = TokenHeadConfig(scheme="IO")
    voters: int = Field(5, ge=2)
    """Number of models whose disagreement measures how hard a word is."""
    voter_epochs: int | None = Field(None, ge=1)
    """Epochs of a voter; by default a third of those of `train`."""
    drop_unlabeled: float = Field(0.5, ge=0, lt=1)
    """Share of the unlabeled words that a voter is not trained on, drawn anew for each."""
    drop_labeled: float = Field(0.0, ge=0, lt=1)
    """Share of the labeled words that a voter is not trained on; 0.1 in the paper for some corpora."""
    stages: int = Field(5, ge=1)
    """Number of stages of the curriculum, of equal length; at most the number of epochs."""
    risk: Literal["conf_mpu", "mpn"] = "conf_mpu"
    """Risk of the curriculum: that of the paper, or that of the authors' code."""
    base: Base | None = None
    """Loss of a word: mean absolute error, or cross-entropy; by default `mae` for Hugging Face encoders, else `ce`."""
    positive: float = Field(10.0, gt=0)
    """Weight of labeled words (the paper's m)."""
    confident: float = Field(0.5, ge=0, le=1)
    """Mean entity probability of the voters above which a word counts as part of an entity (the paper's eta)."""


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Train on `splits.weak` with voters and a curriculum."""
    docs, lost = splits.weak or (), Lost()
    model = new_model(config, docs, run)
    weak = weak_training_set(model, docs, lost)
    run.log(f"cupul: training on {len(docs):,} documents, {config.voters} voters first: {lost}")
    stages = {number: f"voters/{number}" for number in range(config.voters)}
    epochs = dict.fromkeys(stages.values(), _voter_epochs(config)) | {"train": config.train.epochs}
    run.plan(exploration_epochs(splits, config) | epochs)
    ratio = configured_entity_ratio(splits, config, run)
    run.log(f"cupul: {ratio.describe()}")
    prior = class_priors(weak, docs, ratio)

    # 1. the voters
    train_members("cupul", splits, config, run, stages, partial(train_member, splits, config, run))
    votes = [cached_tensors(run, f"{name}/votes", _votes_of(weak, docs, config, run, name)) for name in stages.values()]
    probs = [vote["probs"] for vote in votes]

    # 2. hardness: by how much the voters disagree about a word
    hardness = disagreement(probs)
    data, known = weak.as_complete, weak.as_complete.targets.known.clone()
    count = min(config.stages, config.train.epochs)
    limits = stage_limits(hardness[known].numpy(), count)

    # 3. the curriculum: one model, with harder words from stage to stage
    data.targets.probs = mean_vote(weak, probs)

    def loss(scores: Any, targets: Targets) -> Tensor:
        common = scores, targets, prior.to(scores.logits.device), config.positive, _base(config)
        risk = mpn_risk(*common) if config.risk == "mpn" else conf_mpu_risk(*common, config.confident)
        return risk * float(scores.mask.sum())

    def make_step(epoch: int) -> Step:
        stage = epoch * count // config.train.epochs
        data.targets.known = known & (hardness <= limits[stage])
        return loss_step(data, loss)

    return Tagger(train_stage(data, make_step, config.train, run, Selection(splits.dev)).model)


def _voter_epochs(config: Config) -> int:
    return config.voter_epochs or ceil(config.train.epochs / 3)


def _base(config: Config) -> Base:
    return config.base or default_base(config.encoder.name)


def class_priors(weak: WeakTrainingSet, docs: Sequence[Document], ratio: EntityRatio) -> Tensor:
    """The share of all words that have each tag `[tags]`, O left out."""
    tags, targets = tag_set_of(weak.as_complete.model.head), weak.as_complete.targets
    ratios = ratios_to_labeled(ratio, docs, tags.labels)
    by_tag = np.repeat(list(ratios.values()), len(tags.letters))
    counts = np.bincount(targets.labels[targets.known].long().numpy(), minlength=len(by_tag) + 1)[1:]
    prior = torch.tensor(by_tag * counts / max(int(targets.known.sum()), 1), dtype=torch.float32)
    return prior / max(float(prior.sum()) / 0.9, 1.0)  # something must be left for O


def train_member(splits: Splits, config: Config, run: Run, number: int) -> None:
    """Train one voter, in its own stage."""
    docs, name = splits.weak or (), f"voters/{number}"
    model = new_model(config, docs, run, name)
    weak = weak_training_set(model, docs, Lost())
    prior = class_priors(weak, docs, configured_entity_ratio(splits, config, run))
    generator = torch.Generator().manual_seed(run.seed_for(name, "dropped"))
    dropped = weak.unlabeled & (torch.rand(weak.unlabeled.shape, generator=generator) < config.drop_unlabeled)
    if config.drop_labeled:
        dropped |= weak.labeled & (torch.rand(dropped.shape, generator=generator) < config.drop_labeled)
    data = weak.as_complete
    data.targets.known = data.targets.known & ~dropped

    def loss(scores: Any, targets: Targets) -> Tensor:
        risk = mpn_risk(scores, targets, prior.to(scores.logits.device), config.positive, _base(config))
        return risk * float(scores.mask.sum())

    step, settings = loss_step(data, loss), config.train.with_epochs(_voter_epochs(config))
    train_stage(data, lambda _: step, settings.model_copy(update={"patience": None}), run, Selection(), name)


def _votes_of(
    weak: WeakTrainingSet, docs: Sequence[Document], config: Config, run: Run, name: str
) -> Callable[[], dict[str, Tensor]]:
    """The probabilities of a finished voter for every word, when they are asked for."""

    def compute() -> dict[str, Tensor]:
        voter = new_model(config, docs, run, name)
        load_stage(run, name, voter)
        return {"probs": score_corpus(voter, weak.as_complete.features, probabilities)}

    return compute


def mean_vote(weak: WeakTrainingSet, probs: Sequence[Tensor]) -> Tensor:
    """The mean of the voters' probabilities `[words, tags]`; words that are known to be O have probability 1 of O."""
    mean, targets = torch.stack(list(probs)).mean(dim=0), weak.as_complete.targets
    certain = targets.known & (targets.labels == 0) & ~weak.unlabeled
    mean[certain] = torch.eye(mean.shape[-1])[0]
    return mean


def disagreement(probs: Sequence[Tensor]) -> Tensor:
    """The hardness of each word `[words]`: how far the voters' probabilities `[words, tags]` differ there.

    It is the mean over all pairs of the symmetric Kullback-Leibler divergence, itself a mean over the tags.

    >>> disagreement([torch.tensor([[0.5, 0.5], [0.9, 0.1]]), torch.tensor([[0.5, 0.5], [0.1, 0.9]])]).round(decimals=2)
    tensor([0.0000, 1.7600])
    """
    logs = [p.clamp(min=1e-8).log() for p in probs]
    pairs = [((probs[i] - probs[j]) * (logs[i] - logs[j])).mean(dim=-1) for i, j in combinations(range(len(probs)), 2)]
    return torch.stack(pairs).mean(dim=0)


def stage_limits(hardness: np.ndarray, stages: int) -> list[float]:
    """The hardness up to which words are trained on in each stage.

    The shares follow the authors: of `n` stages, the first has the easiest `2^(n-1) / (2^n - 1)` of the words, and each
    stage adds half as many as the one before: 52, 77, 90, 97 and 100 % with five.

    >>> stage_limits(np.arange(31.0), 5)
    [15.0, 23.0, 27.0, 29.0, inf]
    """
    if not len(hardness):
        return [float("inf")] * stages
    ordered, total = np.sort(hardness), 2**stages - 1
    shares = np.cumsum([2 ** (stages - 1 - stage) / total for stage in range(stages)])
    return [*(float(ordered[max(ceil(share * len(ordered)) - 1, 0)]) for share in shares[:-1]), float("inf")]
