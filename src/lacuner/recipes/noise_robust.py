"""RoSTER's first stage: models that leave out labels which they cannot be brought to believe."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from lacuner.atomic import atomic_write
from lacuner.data import Document, Span
from lacuner.losses.gce import entity_type_gce_loss
from lacuner.models.heads.entity_type import split_entity_and_type
from lacuner.models.inference import score_corpus
from lacuner.models.model import Model
from lacuner.models.ragged import offsets_of
from lacuner.models.targets import CorpusTargets
from lacuner.models.types import EntityTypeScores, SpanScores
from lacuner.techniques.distillation import counted_words
from lacuner.techniques.label_issues import Suspect
from lacuner.techniques.label_removal import REMOVED, places, runs
from lacuner.training.config import HasPlainSettings
from lacuner.training.dataset import Believed, TrainingSet
from lacuner.training.loop import Step, StepLoss
from lacuner.training.run_folder import Run
from lacuner.training.stage import learn_in_stage, new_model, once


class RobustSettings(HasPlainSettings, Protocol):
    """What the stage is told."""

    @property
    def q(self) -> float: ...
    @property
    def tau(self) -> float: ...
    @property
    def removal(self) -> bool: ...
    @property
    def removal_after(self) -> int: ...
    @property
    def guard(self) -> float: ...
    @property
    def drop_unlabeled(self) -> float: ...


class Task(NamedTuple):
    """What all stages share."""

    docs: Sequence[Document]
    dev: Sequence[Document] | None
    weak: Believed
    run: Run


def stage_of(number: int) -> str:
    """The name of a model's stage."""
    return f"robust/{number}"


def robust_model(task: Task, config: RobustSettings, number: int) -> tuple[Model, dict[int, np.ndarray]]:
    """One noise-robust model, and the words of the row that it left out, by epoch."""
    name = stage_of(number)
    model = new_model(config.encoder, config.head, task.docs, task.run, name)
    labels, known = task.weak.data.targets.labels, task.weak.data.targets.known
    draw = torch.Generator().manual_seed(task.run.seed_for(name, "dropped"))
    dropped = torch.from_numpy(task.weak.plain) & (torch.rand(known.shape, generator=draw) < config.drop_unlabeled)
    features = task.weak.data.features
    targets = CorpusTargets(labels, known & ~dropped, offsets_of(features.lengths), weight=torch.ones(known.shape))
    data = replace(task.weak.data, model=model, targets=targets)
    step = _step(data, config.q)

    def believed_in(epoch: int) -> Tensor:
        found = once(task.run, f"{name}/removed/{epoch}", lambda: {"kept": kept_words(model, task.weak, config)})
        return found["kept"]

    def make_step(epoch: int) -> Step:
        if config.removal and epoch >= config.removal_after:
            assert targets.weight is not None
            targets.weight.copy_(believed_in(epoch))
        return step

    rows = learn_in_stage(data, make_step, config, task.run, task.dev, name).rows
    if not config.removal:
        return model, {}
    seen = (known & ~dropped).numpy()
    epochs = [row["epoch"] for row in rows if row["epoch"] >= config.removal_after]
    return model, {epoch: ~believed_in(epoch).numpy() & seen for epoch in epochs}


def _step(data: TrainingSet, q: float) -> Step:
    """Generalised cross entropy: the mean over words that count at the entity head, and over those at the type head."""

    def step(indices: np.ndarray) -> StepLoss:
        batch, targets = data.batch(indices)
        scores = split_entity_and_type(data.model(batch))
        entity, types = entity_type_gce_loss(scores, targets, q)
        labelled = targets.labels > 0
        counted = targets.known & (labelled | (targets.weight > 0))
        typed = (targets.known & labelled & (targets.weight > 0)).sum()
        known, words = counted.sum(), float(batch.mask.sum())
        total = entity.sum() / counted_words(known, batch) + types.sum() / typed.clamp(min=1)
        return StepLoss(total * words, words, float(known), float(scores.mask.sum()))

    return step


def kept_words(model: Model, weak: Believed, config: RobustSettings) -> Tensor:
    """Which words of the row the model believes: their weak label has a probability above `tau`.

    Of the words that are taken for O the entity head's probability counts, of labelled ones the type head's; that a
    labelled word is part of an entity is not doubted. Of a type (or of O) that would lose nearly all its words, none is
    lost.
    """
    joint = score_corpus(model, weak.data.features, _entity_and_types)
    labels = weak.data.targets.labels.long()
    inside, types = joint[..., 0], joint[..., 1:]
    typed = types.gather(-1, (labels - 1).clamp(min=0).unsqueeze(-1)).squeeze(-1)
    probability = torch.where(labels > 0, typed, 1 - inside)
    kept = probability > config.tau
    doubtable = torch.from_numpy(weak.plain | weak.labelled)
    kept |= ~doubtable
    for label in range(types.shape[-1] + 1):
        mine = doubtable & (labels == label)
        if (~kept[mine]).sum() > config.guard * mine.sum():
            kept |= mine
    return kept


def _entity_and_types(given: EntityTypeScores | SpanScores) -> Tensor:
    scores = split_entity_and_type(given)
    return torch.cat([scores.entity.sigmoid().unsqueeze(-1), scores.types.softmax(dim=-1)], dim=-1)


def write_left_out(folder: Path, task: Task, left_out: Sequence[dict[int, np.ndarray]]) -> int:
    """Write what the models left out as spans, with the epochs in which each model did; returns how many spans.

    `missing` were taken for O and seem to be part of an entity, `doubtful` have a label that seems to be wrong.
    """
    data = task.weak.data
    where = places(task.docs, data)
    found: dict[tuple[int, int, int, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, epochs in enumerate(left_out, 1):
        for epoch, gone in epochs.items():
            for key in _spans(data, where, gone):
                found[key][str(number)].append(epoch + 1)

    def row(key: tuple[int, int, int, str]) -> dict[str, Any]:
        document, start, end, label = key
        kind = "doubtful" if label else "missing"
        about = Suspect(kind, task.docs[document], Span(start, end, label)).as_json()
        return {**{name: value for name, value in about.items() if name != "score"}, "models": found[key]}

    order = sorted(found, key=lambda key: (-sum(map(len, found[key].values())), key))
    with atomic_write(folder / REMOVED) as stream:
        stream.writelines((json.dumps(row(key), ensure_ascii=False) + "\n").encode() for key in order)
    return len(order)


def _spans(
    data: TrainingSet, where: tuple[np.ndarray, np.ndarray, np.ndarray], gone: np.ndarray
) -> Iterator[tuple[int, int, int, str]]:
    """Runs of words that were left out, of one weak label each; an empty label for what was taken for O."""
    document, start, end = where
    labels = data.targets.labels.numpy()
    names = ("", *data.model.head.labels)
    for label in np.unique(labels[gone]):
        mine = gone & (labels == label)
        if mine.ndim > 1:
            first, width = np.nonzero(mine)
            last = first + width + 1
        else:
            first, last = runs(mine, offsets_of(data.features.lengths))
        for a, b in zip(first, last, strict=True):
            yield int(document[a]), int(start[a]), int(end[b - 1]), names[label]
