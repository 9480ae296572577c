"""Find words that look like unlabelled entities early, leave them out, and start again.

What it does: explores: trains a model for a few epochs as if the labels were complete; then each word without a label
    has an O-value, the score that the model gives O. The words with the smallest ones are removed: they become unknown,
    and the explored model is thrown away. Then trains from fresh weights. In each epoch some spans of the remaining
    words are drawn and taught as a label of their own, `non-entity`; where the model finds one, there is no entity.
Assumes: that labels are right, and that entities without a label look like those that have one.
Needs: weak; with dev it can search for its settings.
Costs: one training and the exploration, which is about a fifth of it; six more at half the epochs with `search`.
Departs from the authors: how many words are removed is estimated from the weak labels, where the paper takes 0.3 to
    10 % and chooses by dev. Non-entities have at most the width of the widest entity. The exploration's steps are
    larger than usual, and its learning rate falls to zero within it. Where labels look complete, no non-entities are
    drawn and nothing is removed: that would cost a point on BC5CDR's dev, and one on EC's. `removed = drop` is our
    reading of a damaged formula; `marginal` is the partial CRF.
Reference: Zhang et al. (2024), "A web semantic-based text analysis approach for enhancing named entity recognition
    using PU-learning and negative sampling", IJSWIS 20.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

import numpy as np
import torch
from pydantic import Field

from lacuner.config import Config as BaseConfig
from lacuner.data import Document, Lost, Splits
from lacuner.models.config import AngleHeadConfig, EncoderConfig
from lacuner.models.heads import build_head
from lacuner.models.heads.crf import Unknown
from lacuner.models.model import Model
from lacuner.models.ragged import offsets_of
from lacuner.models.tag_sets import tag_set_of
from lacuner.models.tagger import Tagger
from lacuner.sampling.non_entity_spans import sample_non_entity_spans
from lacuner.techniques.early_learning import Explored, explore
from lacuner.techniques.label_removal import write_removed
from lacuner.training.config import TrainConfig, resolved
from lacuner.training.dataset import TrainingSet, dev_scorer
from lacuner.training.loop import Step, fit
from lacuner.training.run_folder import Row, Run
from lacuner.training.stage import new_model
from lacuner.training.steps import believe

NEEDS = ("weak",)
EXPLORED = 3
"""How many epochs a search looks at."""


class Config(BaseConfig):
    """Settings of `two_step`."""

    encoder: EncoderConfig = EncoderConfig()
    head: AngleHeadConfig = AngleHeadConfig()
    train: TrainConfig = TrainConfig()
    explore: int = Field(3, ge=1)
    """Epochs of exploration (the paper's n)."""
    each_epoch: bool = False
    """Ask the explored model after each epoch, not only at the end: `lacuner audit removed` draws it."""
    remove: float | None = Field(None, ge=0, lt=1)
    """Share of the unlabelled words that is removed (lambda); None: estimated from the exploration."""
    sample: float = Field(0.1, ge=0, le=1)
    """Non-entities drawn from a sentence, a word of it (gamma); 0: none."""
    complete: float = Field(0.8, gt=0, le=1)
    """From this labelled share of the entities on, as the exploration sees it, no non-entities are drawn, and nothing
    is removed unless `remove` says how much. A search decides for itself."""
    removed: Unknown = "marginal"
    """CRF: what becomes of a removed word: any tag (`marginal`), or out of the chain (`drop`)."""
    search: bool = False
    """With dev: choose epochs, share and sample by at most six trainings of half the epochs."""


class Choice(NamedTuple):
    """What a search may change."""

    explore: int
    remove: float
    sample: float


@dataclass(frozen=True)
class _Task:
    """What all retrainings share."""

    docs: Sequence[Document]
    dev: Sequence[Document] | None
    config: Config
    run: Run
    explored: Explored


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Learn from `splits.weak` without the words that look like gaps."""
    docs = splits.weak or ()
    searching = config.search and bool(splits.dev)
    epochs = max(config.explore, EXPLORED) if searching else config.explore
    explored = explore(docs, config, epochs, run, each=searching or config.each_epoch)
    task = _Task(docs, splits.dev, config, run, explored)
    complete = not searching and explored.labelled_share(config.explore) >= config.complete
    estimated = 0.0 if complete else explored.missing_share(config.explore)
    share = estimated if config.remove is None else config.remove
    choice = Choice(config.explore, share, 0.0 if complete else config.sample)
    if searching:
        choice = search(choice, lambda tried, number: _dev_f1(task, tried, number))
    gone = explored.suspects(choice.explore, choice.remove)
    run.say(
        f"two_step: after {choice.explore} epochs {gone.sum():,} of {explored.weak.plain.sum():,} unlabelled words are "
        f"removed; non-entities: {choice.sample:g} a word"
    )
    write_removed(run.folder, docs, explored, choice.explore, gone)
    return Tagger(_retrain(task, choice, config.train, "train")[0])


def _retrain(task: _Task, choice: Choice, config: TrainConfig, stage_name: str) -> tuple[Model, list[Row]]:
    """From fresh weights, without the removed words, with other non-entities in each epoch."""
    explored = task.explored
    model = new_model(task.config.encoder, task.config.head, task.docs, task.run)
    if choice.sample:
        model.head = build_head({**model.head.config(), "non_entity": True}, model.encoder.width)
    sentences, features = explored.weak.data.sentences, explored.weak.data.features
    data = TrainingSet(model, sentences, features, model.head.targets(sentences.annotations, Lost()))
    gone = explored.suspects(choice.explore, choice.remove)
    data.targets.known[torch.from_numpy(gone)] = False
    step = believe(data, task.config.removed)
    renew = _non_entities(data, choice.sample) if choice.sample else None

    def make_step(epoch: int) -> Step:
        if renew is not None:
            renew()
        return step

    with task.run.stage(stage_name) as stage:
        settings = resolved(config, model, features)
        rows = fit(model, features, make_step, settings, stage, dev_scorer(model, task.dev))
    return model, rows


def _non_entities(data: TrainingSet, rate: float) -> Callable[[], None]:
    """A function that writes newly drawn non-entities into the targets, in place of those drawn before."""
    tags, labels = tag_set_of(data.model.head), data.targets.labels.clone()
    free = (data.targets.known & (labels == 0)).numpy()
    offsets = offsets_of(data.features.lengths)
    wanted = np.ceil(rate * data.features.lengths - 1e-9).astype(np.int64)
    widest = max(end - start for known in data.sentences.annotations for start, end, _ in known.spans)

    def renew() -> None:
        start, end = sample_non_entity_spans(free, offsets, wanted, widest)
        drawn = tags.encode(start, end, np.full(len(start), len(tags.labels) - 1), len(labels))
        data.targets.labels.copy_(torch.where(torch.from_numpy(drawn > 0), torch.from_numpy(drawn), labels))

    return renew


def _dev_f1(task: _Task, choice: Choice, number: int) -> float:
    """The best dev F1 of a training with half the epochs."""
    half = task.config.train.model_copy(update={"epochs": ceil(task.config.train.epochs / 2)})
    _, rows = _retrain(task, choice, half, f"search/{number}")
    return max(float(row["dev"]["f1"]) for row in rows)


def search(first: Choice, score: Callable[[Choice, int], float]) -> Choice:
    """The best of at most six choices, one setting at a time; `score` is given a choice and its number.

    First how much is removed, which matters most; then what is sampled; last when the exploration ends.
    """
    best, tried = first, {first: score(first, 0)}
    rates = [rate for rate in (0.0, 0.1, 0.3) if rate != first.sample][:2]
    for setting, values in (
        ("remove", [first.remove / 2, min(first.remove * 2, 0.9)]),
        ("sample", rates),
        ("explore", [1 if first.explore > 1 else EXPLORED]),
    ):
        for value in values:
            choice = Choice(**{**best._asdict(), setting: value})
            if choice not in tried:
                tried[choice] = score(choice, len(tried))
        best = max(tried, key=lambda choice: tried[choice])
    return best
