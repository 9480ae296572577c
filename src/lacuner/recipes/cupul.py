"""CuPUL: positive-unlabeled learning with a curriculum, from easy words to hard ones.

What it does: (1) trains a few models, the voters, on weak labels treated as complete; each voter never sees a random
    share of the unlabeled words. (2) A word is hard if the voters disagree about it. (3) Trains one model in stages:
    first on the easiest half of the words, at last on all, with a positive-unlabeled risk. An unlabeled word that the
    voters take for an entity does not count as O, and class priors correct for those that are left out.
Assumes: that labels are right, and that the voters disagree where labels are missing or wrong.
Needs: weak.
Costs: a third of a training run per voter, one more for the curriculum, and a fifth for the class priors.
Departs from the authors: their class priors come from gold and are written into their code; ours are estimated, or
    given by `entity_ratio`. Mean absolute error hardly teaches a small encoder rare classes: with `tiny-en` it
    predicted nothing (Wikigold's dev, a fifth of the names labeled; F1 51.7 with cross-entropy, one seed). Their
    released code trains the last stage with the risk of the voters (`risk=mpn`); the default here is that of their
    paper. Their fourth step, self-training as in RoSTER, is left out. Numbers of epochs also suit encoders trained
    from scratch.
Reference: Li et al. (2025), "Re-examine distantly supervised NER: a new benchmark and a simple approach".
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

from lacuner.data import Document, Lost, Splits
from lacuner.losses.conf_mpu import Base, conf_mpu_risk, mpn_risk
from lacuner.models.config import TokenHeadConfig
from lacuner.models.inference import probabilities, score_corpus
from lacuner.models.tag_sets import tag_set_of
from lacuner.models.tagger import Tagger
from lacuner.models.types import Targets
from lacuner.recipes.pu import default_base
from lacuner.techniques.entity_ratio import (
    RatioSetting,
    exploration_stage,
    explorer,
    find_entity_ratio,
    ratios_to_labeled,
)
from lacuner.training.config import RecipeConfig
from lacuner.training.dataset import WeakTrainingSet, weak_training_set
from lacuner.training.parallel import train_members
from lacuner.training.run_folder import Run
from lacuner.training.stage import Selection, cached_tensors, load_stage, new_model, train_stage
from lacuner.training.steps import Step, loss_step

NEEDS = ("weak",)
GROUP = "other methods"
PAPER = "Li et al., 2025"


class Config(RecipeConfig):
    """Settings of `cupul`; `train` applies to the curriculum."""

    head: TokenHeadConfig = TokenHeadConfig(scheme="IO")
    voters: int = Field(5, ge=2)
    """Number of models that say how hard a word is."""
    voter_epochs: int | None = Field(None, ge=1)
    """Epochs of a voter; by default a third of those of `train`."""
    drop_unlabeled: float = Field(0.5, ge=0, lt=1)
    """Share of the unlabeled words that a voter never sees, different for each."""
    stages: int = Field(5, ge=1)
    """Stages of the curriculum; each has the same number of epochs."""
    risk: Literal["conf_mpu", "mpn"] = "conf_mpu"
    """Risk of the curriculum: that of the paper, or that of the authors' code."""
    base: Base | None = None
    """Loss of a word: mean absolute error, or cross-entropy; by default `mae` for Hugging Face encoders, else `ce`."""
    positive: float = Field(10.0, gt=0)
    """Weight of labeled words (the paper's m)."""
    confident: float = Field(0.5, ge=0, le=1)
    """Entity probability above which the voters take a word for part of an entity (the paper's eta)."""
    RENAMED: ClassVar[Mapping[str, str]] = {"prior": "entity_ratio"}
    entity_ratio: RatioSetting = "counts"
    """Share of all words that belong to entities: a number, one per label (`entity_ratio.PER=0.05`), or the source of
    an estimate: label `counts`, `hidden` names, `dev`, or `auto`: dev, or else counts."""
    explore: int = Field(3, ge=1)
    """Epochs of the model that the shares are estimated with."""


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Train on `splits.weak` with voters and a curriculum."""
    docs, lost = splits.weak or (), Lost()
    model = new_model(config, docs, run)
    weak = weak_training_set(model, docs, lost)
    run.log(f"cupul: training on {len(docs):,} documents, {config.voters} voters first: {lost}")
    stages = {number: f"voters/{number}" for number in range(config.voters)}
    epochs = dict.fromkeys(stages.values(), _voter_epochs(config)) | {"train": config.train.epochs}
    stage = exploration_stage(splits, config.entity_ratio)
    run.plan(({stage: config.explore} if stage else {}) | epochs)
    prior = find_prior(weak, splits, config, run)
    run.log(f"cupul: {100 * float(prior.sum()):.1f} % of the words are taken to belong to entities")

    # 1. the voters
    train_members("cupul", splits, config, run, stages, partial(train_member, splits, config, run))
    votes = [cached_tensors(run, f"{name}/votes", _votes_of(weak, docs, config, run, name)) for name in stages.values()]
    probs = [vote["probs"] for vote in votes]

    # 2. the curriculum: the last words to come in are those on which the voters differ most
    difficulty = disagreement(probs)
    data, known = weak.as_complete, weak.as_complete.targets.known.clone()
    data.targets.probs = torch.stack(probs).mean(dim=0)
    limits = stage_limits(difficulty[known].numpy(), config.stages)

    # 3. one model, stage after stage
    def loss(scores: Any, targets: Targets) -> Tensor:
        common = scores, targets, prior.to(scores.logits.device), config.positive, _base(config)
        risk = mpn_risk(*common) if config.risk == "mpn" else conf_mpu_risk(*common, config.confident)
        return risk * float(scores.mask.sum())

    def make_step(epoch: int) -> Step:
        stage = min(epoch * config.stages // config.train.epochs, config.stages - 1)
        data.targets.known = known & (difficulty <= limits[stage])
        return loss_step(data, loss)

    return Tagger(train_stage(data, make_step, config.train, run, Selection(splits.dev)).model)


def _voter_epochs(config: Config) -> int:
    return config.voter_epochs or ceil(config.train.epochs / 3)


def _base(config: Config) -> Base:
    return config.base or default_base(config.encoder.name)


def find_prior(weak: WeakTrainingSet, splits: Splits, config: Config, run: Run) -> Tensor:
    """The share of all words that have each tag `[tags]`, O left out: given, of dev, or estimated."""
    ratio = find_entity_ratio(splits, config.entity_ratio, explorer(config, config.explore, run))
    tags, targets = tag_set_of(weak.as_complete.model.head), weak.as_complete.targets
    ratios = ratios_to_labeled(ratio, splits.weak or (), tags.labels)
    by_tag = np.repeat(list(ratios.values()), len(tags.letters))
    counts = np.bincount(targets.labels[targets.known].long().numpy(), minlength=len(by_tag) + 1)[1:]
    prior = torch.tensor(by_tag * counts / max(int(targets.known.sum()), 1), dtype=torch.float32)
    return prior / max(float(prior.sum()) / 0.9, 1.0)  # something must be left for O


def train_member(splits: Splits, config: Config, run: Run, number: int) -> None:
    """Train one voter, in its own stage."""
    docs, name = splits.weak or (), f"voters/{number}"
    model = new_model(config, docs, run, name)
    weak = weak_training_set(model, docs, Lost())
    prior = find_prior(weak, splits, config, run)
    generator = torch.Generator().manual_seed(run.seed_for(name, "dropped"))
    dropped = weak.unlabeled & (torch.rand(weak.unlabeled.shape, generator=generator) < config.drop_unlabeled)
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


def disagreement(probs: Sequence[Tensor]) -> Tensor:
    """How far the voters' probabilities `[words, tags]` differ at each word `[words]`.

    The mean over all pairs of the symmetric Kullback-Leibler divergence, itself a mean over the tags.

    >>> disagreement([torch.tensor([[0.5, 0.5], [0.9, 0.1]]), torch.tensor([[0.5, 0.5], [0.1, 0.9]])]).round(decimals=2)
    tensor([0.0000, 1.7600])
    """
    logs = [p.clamp(min=1e-8).log() for p in probs]
    pairs = [((probs[i] - probs[j]) * (logs[i] - logs[j])).mean(dim=-1) for i, j in combinations(range(len(probs)), 2)]
    return torch.stack(pairs).mean(dim=0)


def stage_limits(difficulty: np.ndarray, stages: int) -> list[float]:
    """The difficulty up to which words are trained on in each stage.

    The shares follow the authors: of `n` stages, the first has the easiest `2^(n-1) / (2^n - 1)` of the words, and each
    stage adds half as many as the one before: 52, 77, 90, 97 and 100 % with five.

    >>> stage_limits(np.arange(31.0), 5)
    [15.0, 23.0, 27.0, 29.0, inf]
    """
    if not len(difficulty):
        return [float("inf")] * stages
    ordered, total = np.sort(difficulty), 2**stages - 1
    shares = np.cumsum([2 ** (stages - 1 - stage) / total for stage in range(stages)])
    return [*(float(ordered[max(ceil(share * len(ordered)) - 1, 0)]) for share in shares[:-1]), float("inf")]
