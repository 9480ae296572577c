"""Two-step learning: remove tokens that early learning exposes as unlabeled entities, then retrain.

What it does: step 1 explores: a model is trained for a few epochs on weak labels treated as complete; each unlabeled
    token then has an O-value, the score that the model gives O. The tokens with the smallest O-values are removed:
    they become unknown, and the model is discarded. Step 2 trains from fresh weights. In each epoch, spans of the
    remaining unlabeled tokens are sampled and trained as a label of their own, `non-entity`; where the model predicts
    it, there is no entity.
Assumes: that labels are right, and that unlabeled entities look like labeled ones.
Needs: weak; with dev it can search for its settings.
Costs: one training run and the exploration, about a fifth of it; six more at half the epochs with `search`.
Departs from the authors: the head is a softmax over tags; their models have a CRF (`head.kind=crf`). The share of
    removed tokens is estimated from the weak labels, where the paper takes 0.3 to 10 % and chooses on dev. Non-entity
    spans are at most as wide as the widest entity. The exploration uses larger steps than usual, and its learning rate
    falls to zero. Where labels look complete, no non-entity spans are sampled and nothing is removed, because the spans
    cost a point on BC5CDR's dev, and removal one on EC's. With a CRF, removed tokens are marginalised, as in a partial
    CRF (`removed=marginal`); `drop` and `observed` are two readings of the paper's formula, which is garbled in print.
    With a span head, spans are removed instead of tokens, and the negatives are sampled spans (`sample=0`: all others).
    Set `remove` then: the estimated share was far too high in the one check that was made.
Reference: Zhang et al. (2024), "A web semantic-based text analysis approach for enhancing named entity recognition
    using PU-learning and negative sampling", IJSWIS 20.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import ceil
from typing import NamedTuple

import numpy as np
import torch
from pydantic import Field

from lacuner.data import Lost, Splits
from lacuner.losses.crf import crf_loss
from lacuner.models.config import AngleHeadConfig
from lacuner.models.heads import build_head
from lacuner.models.heads.crf import Unknown
from lacuner.models.tag_sets import tag_set_of
from lacuner.models.tagger import Tagger
from lacuner.recipes import negative_sampling
from lacuner.sampling.non_entity_spans import sample_non_entity_spans
from lacuner.techniques.early_learning import Exploration, Rank, explore
from lacuner.techniques.filtered_tokens import write_removed
from lacuner.training.config import RecipeConfig, TrainConfig
from lacuner.training.dataset import TrainingSet
from lacuner.training.run_folder import Run
from lacuner.training.stage import Selection, StageResult, new_model, train_stage
from lacuner.training.steps import MakeStep, Step, loss_step, supervised_loss

NEEDS = ("weak",)
GROUP = "other methods"
PAPER = "Zhang et al., 2024"
SEARCH_EPOCHS = 3
"""Number of exploration epochs that a search considers."""
MAX_CHOICES = 7
"""Number of choices that a search tries at most."""


class Config(RecipeConfig):
    """Settings of `two_step`."""

    head: AngleHeadConfig = AngleHeadConfig()
    explore: int = Field(3, ge=1)
    """Epochs of exploration (the paper's n)."""
    each_epoch: bool = False
    """Whether O-values are recorded after each exploration epoch, for the plots of `lacuner audit removed`."""
    rank: Rank = "o_value"
    """Ranking of the unlabeled tokens: by the score of O (`o_value`), or by its probability (`o_prob`)."""
    remove: float | None = Field(None, ge=0, lt=1)
    """Share of the unlabeled tokens to remove (lambda); by default estimated from the exploration."""
    sample: float = Field(0.1, ge=0, le=1)
    """Number of sampled non-entity spans per word (gamma); 0 for none."""
    complete: float = Field(0.8, gt=0, le=1)
    """Estimated labeled share from which labels count as complete: no non-entity spans, and no removal by estimate."""
    removed: Unknown = "marginal"
    """Treatment of removed tokens by a CRF: any tag (`marginal`), taken out of the chain (`drop`), or taken out except
    that the transition from O to the next tag counts (`observed`)."""
    search: bool = False
    """Whether to choose `explore`, `remove` and `sample` on dev, by at most seven runs of half the epochs."""


class Choice(NamedTuple):
    """The settings that a search may change."""

    explore: int
    remove: float
    sample: float


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Train on `splits.weak` without the tokens that look like unlabeled entities."""
    docs = splits.weak or ()
    search_on_dev = config.search and bool(splits.dev)

    # step 1: explore, and decide how many tokens to remove
    epochs = max(config.explore, SEARCH_EPOCHS) if search_on_dev else config.explore
    half = config.train.with_epochs(ceil(config.train.epochs / 2))
    tries = [f"search/{number}" for number in range(MAX_CHOICES if search_on_dev else 0)]
    run.plan({"explore": epochs, **dict.fromkeys(tries, half.epochs), "train": config.train.epochs})
    exploration = explore(docs, config, epochs, run, every_epoch=search_on_dev or config.each_epoch)
    looks_complete = not search_on_dev and exploration.labeled_share(config.explore) >= config.complete
    estimate = 0.0 if looks_complete else exploration.missing_share(config.explore)
    share = estimate if config.remove is None else config.remove
    choice = Choice(config.explore, share, 0.0 if looks_complete else config.sample)
    if search_on_dev:

        def dev_f1(candidate: Choice, number: int) -> float:
            return _retrain(splits, config, run, exploration, candidate, half, f"search/{number}").dev_f1

        choice = search(choice, dev_f1)
    removed = exploration.likely_missing(choice.explore, choice.remove, config.rank)
    spans = config.head.kind == "span"
    run.log(
        f"two_step: removing {removed.sum():,} of {int(exploration.weak.unlabeled.sum()):,} unlabeled "
        f"{'spans' if spans else 'tokens'} after {choice.explore} epochs; {choice.sample:g} "
        f"{'negatives' if spans else 'non-entity spans'} per word"
    )
    write_removed(run.folder, docs, exploration.weak, exploration.ranking(config.rank), choice.explore, removed)

    # step 2: train from fresh weights
    return Tagger(_retrain(splits, config, run, exploration, choice, config.train, "train").model)


def _retrain(
    splits: Splits, config: Config, run: Run, exploration: Exploration, choice: Choice, train: TrainConfig, name: str
) -> StageResult:
    """Train from fresh weights without the removed tokens, with new non-entity spans in each epoch."""
    model = new_model(config, splits.weak or (), run)
    if choice.sample and config.head.kind != "span":
        model.head = build_head({**model.head.config(), "non_entity": True}, model.encoder.width)
    explored = exploration.weak.as_complete
    targets = model.head.targets(explored.sentences.annotations(), Lost())
    data = TrainingSet(model, explored.sentences, explored.features, targets)
    removed = torch.from_numpy(exploration.likely_missing(choice.explore, choice.remove, config.rank))
    if config.head.kind == "crf" and config.removed == "observed":
        targets.labels[~targets.known] = -1  # these were never O, so they may have any tag
    targets.known[removed] = False
    if config.head.kind == "span" and choice.sample:
        annotated = replace(exploration.weak.as_annotated, model=model)
        weak = replace(exploration.weak, as_annotated=annotated, unlabeled=exploration.weak.unlabeled & ~removed)
        make_step: MakeStep = partial(
            negative_sampling.sampling_step, weak, negative_sampling.Config(rate=choice.sample)
        )
    else:
        make_step = _token_steps(data, config, choice.sample)
    return train_stage(data, make_step, train, run, Selection(splits.dev, config.head.threshold), name)


def _token_steps(data: TrainingSet, config: Config, rate: float) -> MakeStep:
    """The steps of each epoch: the remaining O are trained, and `rate` sampled non-entity spans per word."""
    loss = partial(crf_loss, unknown=config.removed) if config.head.kind == "crf" else supervised_loss
    resample = _non_entity_sampler(data, rate) if rate else None

    def make_step(epoch: int) -> Step:
        if resample is not None:
            resample()
        return loss_step(data, loss)

    return make_step


def _non_entity_sampler(data: TrainingSet, rate: float) -> Callable[[], None]:
    """A function that writes freshly sampled non-entity spans into the targets, replacing the previous ones."""
    tags, labels = tag_set_of(data.model.head), data.targets.labels.clone()
    free = (data.targets.known & (labels == 0)).numpy()
    counts = np.ceil(rate * data.features.lengths - 1e-9).astype(np.int64)
    widest = max(end - start for annotation in data.sentences.annotations() for start, end, _ in annotation.spans)

    def resample() -> None:
        start, end = sample_non_entity_spans(free, data.targets.offsets, counts, widest)
        sampled = torch.from_numpy(tags.encode(start, end, np.full(len(start), len(tags.labels) - 1), len(labels)))
        data.targets.labels.copy_(torch.where(sampled > 0, sampled, labels))

    return resample


def search(first: Choice, score: Callable[[Choice, int], float]) -> Choice:
    """The best of at most seven choices, changing one setting at a time; `score` gets a choice and its number.

    First the share of removed tokens, which matters most; then the sampling rate; last the exploration epochs.
    """
    best, scores = first, {first: score(first, 0)}
    rates = [rate for rate in (0.0, 0.1, 0.2, 0.3) if rate != first.sample][:3]
    for setting, values in (
        ("remove", [first.remove / 2, min(first.remove * 2, 0.9)]),
        ("sample", rates),
        ("explore", [1 if first.explore > 1 else SEARCH_EPOCHS]),
    ):
        for value in values:
            choice = Choice(**{**best._asdict(), setting: value})
            if choice not in scores:
                scores[choice] = score(choice, len(scores))
        best = max(scores, key=lambda choice: scores[choice])
    return best
