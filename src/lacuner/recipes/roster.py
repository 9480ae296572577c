"""Several models that leave out labels they cannot believe teach one model, which then teaches itself.

What it does: trains a few models, on the weak labels as if they were complete, with generalised cross entropy, which
    lets go of labels that the model finds impossible; after each epoch, what is unlabelled and looks like an entity and
    types that look wrong are left out of the next. One new model learns the mean of their probabilities. Then it learns
    from its own, sharpened; also on sentences in which a masked language model has put other words.
Assumes: that wrong and missing labels are fewer than right ones, and harder to learn; of words, that neighbouring
    entities have different types (the tag scheme is IO).
Needs: weak; augmentation needs an encoder from `lacuner pretrain`, or one that has a masked-word head itself.
Costs: as many trainings as there are models, side by side where there are cores, and between one and two and a half
    more.
Departs from the authors: with an encoder that starts from nothing the questions are asked of spans, not of words;
    labels and soft labels are judged anew every epoch, not every so many batches; words in which nobody may see a
    negative are left out everywhere; sentences are said otherwise with the encoder as it was pre-trained, anew in each
    epoch. Epochs and rates suit encoders that start from nothing, too: theirs are one epoch to five, and the later
    stages have a third and a sixtieth of the first one's rate. As in their code, that a labelled word is an entity is
    not doubted, and soft types are learned where the entity is likely. The guard is for O, too.
Reference: Meng et al. (2021), "Distantly-supervised named entity recognition with noise-robust learning and language
    model augmented self-training" (RoSTER).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import torch
from pydantic import Field
from torch import Tensor

from lacuner.config import Config as BaseConfig
from lacuner.data import Document, Lost, Splits
from lacuner.models.config import EncoderConfig, EntityTypeHeadConfig
from lacuner.models.encoders import is_transformer
from lacuner.models.inference import probabilities, score_corpus
from lacuner.models.model import Model
from lacuner.models.tagger import Tagger
from lacuner.pretraining.augmentation import Augmenter
from lacuner.pretraining.augmenting import LEAST_TOP5, augmenter_for
from lacuner.recipes.noise_robust import Task, robust_model, stage_of, write_left_out
from lacuner.techniques.distillation import soft_set, soft_step
from lacuner.techniques.self_training import sharpen
from lacuner.training.config import TrainConfig, resolved, slower
from lacuner.training.dataset import believed_set
from lacuner.training.loop import Step
from lacuner.training.parallel import learn_side_by_side
from lacuner.training.run_folder import Run
from lacuner.training.stage import learn_in_stage, new_model, once

NEEDS = ("weak",)


class Config(BaseConfig):
    """Settings of `roster`; `train` is that of the first stage."""

    encoder: EncoderConfig = EncoderConfig()
    head: EntityTypeHeadConfig | None = None
    """None: `entity_type`, words as in the paper, if the encoder is a pretrained one; otherwise `span`, with a
    threshold from dev."""
    train: TrainConfig = TrainConfig()
    models: int | None = Field(None, ge=1)
    """How many noise-robust models there are (the paper's K). None: five for words, as there, three for spans."""
    q: float | None = Field(None, ge=0, le=1)
    """Generalised cross entropy: 0 is cross entropy, 1 hardly believes anything. None: 0.7 for words, 0.1 for spans."""
    removal: bool = True
    """Leave out labels that the model does not believe."""
    tau: float | None = Field(None, ge=0, lt=1)
    """Removal: how probable a label must be to be believed. None: 0.7 for words, 0.5 for spans."""
    removal_after: int = Field(1, ge=1)
    """Removal: so many epochs believe everything."""
    guard: float | None = Field(None, gt=0, le=1)
    """Removal: a type that would lose more than this share of its words loses none. None: 0.9 for words, 0.25 for
    spans."""
    drop_unlabeled: float | None = Field(None, ge=0, lt=1)
    """The share of what is unlabelled that a model never sees, others for each. None: 0.5 of words, 0 of spans."""
    ensemble: bool = True
    """Without it there is one noise-robust model, and it teaches itself."""
    ensemble_epochs: int | None = Field(None, ge=1)
    """Epochs of the model that learns from the ensemble; None: as many as `train` has, twice as many for spans."""
    ensemble_rate: float = Field(1.0, gt=0)
    """Its learning rates, times those of the first stage."""
    weigh_types: bool | None = None
    """The ensemble's types count as much as it thinks there is an entity, not everywhere alike. None: for spans."""
    self_training: bool = True
    """At last, learn from its own sharpened opinion."""
    self_epochs: int | None = Field(None, ge=1)
    """Epochs of self-training; None: a third of those of `train`."""
    self_rate: float = Field(0.1, gt=0)
    """Its learning rates, times those of the first stage."""
    confident: float = Field(0.8, ge=0, le=1)
    """Self-training: types are learned at words that are so probably part of an entity."""
    augmentation: bool = True
    """Self-training: also learn from the sentences said otherwise, if the encoder has a masked-word head."""
    augment_rate: float = Field(0.15, gt=0, lt=1)
    """Augmentation: the share of the words that may be replaced."""
    least_top5: float = Field(LEAST_TOP5, ge=0, le=1)
    """Augmentation is off if hidden words of held-out text are less often among the five best guesses."""


class Suited(Config):
    """Settings of which none is left open."""

    head: EntityTypeHeadConfig
    models: int
    q: float
    tau: float
    guard: float
    drop_unlabeled: float
    ensemble_epochs: int
    weigh_types: bool


WORDS = {"models": 5, "q": 0.7, "tau": 0.7, "guard": 0.9, "drop_unlabeled": 0.5, "weigh_types": False}
"""Those of the paper."""
SPANS = {"models": 3, "q": 0.1, "tau": 0.5, "guard": 0.25, "drop_unlabeled": 0.0, "weigh_types": True}
"""Found with `tiny` on the dev data of Wikigold, BC5CDR and the demo corpus. Entities are a few in a hundred spans:
they are learned late, and with a larger q hardly at all. A type that the model does not believe in a quarter of the
places is rather one that it has not learned yet."""


def suited(config: Config, docs: Sequence[Document]) -> Suited:
    """The settings with what suits the encoder where nothing was said."""
    head = config.head
    if head is None:
        head = (
            EntityTypeHeadConfig()
            if is_transformer(config.encoder)
            else EntityTypeHeadConfig(kind="span", threshold="dev")
        )
    words = head.kind == "entity_type"
    usual = {**(WORDS if words else SPANS), "head": head, "ensemble_epochs": config.train.epochs * (1 if words else 2)}
    return Suited(**{**usual, **{name: value for name, value in config if value is not None}})


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Learn from `splits.weak` in the stages of the paper."""
    given, config = config, suited(config, splits.weak or ())
    count = config.models if config.ensemble else 1
    model, task, lost = _begin(splits, config, run)
    run.say(f"roster: learning from {len(task.docs):,} documents, {count} noise-robust models first: {lost}")
    augmenter = _augmenter(task, config)
    learn_side_by_side("roster", splits, given, run, {n: stage_of(n) for n in range(1, count + 1)})
    left_out, total = [], torch.zeros(())
    for number in range(1, count + 1):
        robust, gone = robust_model(task, config, number)
        left_out.append(gone)
        total = total + score_corpus(robust, task.weak.data.features, probabilities)
    run.say(f"roster: {write_left_out(run.folder, task, left_out):,} spans were left out in some epoch: removed.jsonl")
    taught = _distill(task, config, model, total / count) if config.ensemble else robust
    if config.self_training:
        _self_train(task, config, taught, total / count, augmenter)
    return Tagger(taught)


def _begin(splits: Splits, config: Suited, run: Run) -> tuple[Model, Task, Lost]:
    """A new model, the documents made ready for it, and what it cannot learn."""
    docs, lost = splits.weak or (), Lost()
    model = new_model(config.encoder, config.head, docs, run)
    return model, Task(docs, splits.dev, believed_set(model, docs, lost), run), lost


def learn_part(splits: Splits, config: Config, run: Run, number: int) -> None:
    """One of the noise-robust models, in a process of its own."""
    chosen = suited(config, splits.weak or ())
    robust_model(_begin(splits, chosen, run)[1], chosen, number)


def _distill(task: Task, config: Suited, model: Model, mean: Tensor) -> Model:
    """A new model that has learned what the others think on average."""
    data = soft_set(task.weak.data, model, mean, config.weigh_types)
    step = soft_step(data)
    settings = slower(resolved(config.train, model, data.features), config.ensemble_rate, config.ensemble_epochs)
    taught = config.model_copy(update={"train": settings})
    learn_in_stage(data, lambda _: step, taught, task.run, task.dev, "ensemble")
    return model


def _self_train(task: Task, config: Suited, model: Model, mean: Tensor, augmenter: Augmenter | None) -> None:
    """Let a model learn types from its own opinion, sharpened anew in each epoch; entities stay the ensemble's."""
    data = soft_set(task.weak.data, model, mean)
    features = data.features

    def sharpened() -> dict[str, Tensor]:
        joint = score_corpus(model, features, probabilities)
        inside = 1 - joint[..., 0]
        counted = (inside >= config.confident) & data.targets.known
        types = sharpen(joint[..., 1:] / inside.clamp(min=1e-9).unsqueeze(-1), counted)
        return {"types": types, "counted": counted}

    def make_step(epoch: int) -> Step:
        found = once(task.run, f"self_training/{epoch}", sharpened)
        entity = (1 - mean[..., :1]).clamp(min=1e-6)
        assert data.targets.probs is not None and data.targets.weight is not None
        data.targets.probs.copy_(torch.cat([1 - entity, entity * found["types"]], dim=-1))
        data.targets.weight.copy_(found["counted"])
        otherwise = None if augmenter is None else model.encoder.prepare(augmenter.draw(config.augment_rate))
        return soft_step(data, otherwise)

    settings = resolved(config.train, model, features)
    settings = slower(settings, config.self_rate, config.self_epochs or ceil(settings.epochs / 3))
    taught = config.model_copy(update={"train": settings})
    learn_in_stage(data, make_step, taught, task.run, task.dev, "self_training", start_counts=True)


def _augmenter(task: Task, config: Suited) -> Augmenter | None:
    """What says the sentences otherwise, if the encoder's masked-word head is good enough for that."""
    if not config.augmentation or not config.self_training:
        return None
    return augmenter_for(config.encoder, task.weak.data.sentences.words, config.least_top5, task.run.say)
