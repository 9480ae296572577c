"""RoSTER: noise-robust models, distilled into one, then self-training.

What it does: stage 1 trains a few models on weak labels treated as complete, with generalised cross-entropy, which
    hardly fits labels of very low probability. After each epoch, label removal decides anew which labels the next epoch
    leaves out: O where a position looks like an entity, and types that look wrong. Stage 2 distils the mean of the
    models' probabilities into one new model. Stage 3 self-trains it: entities stay those of the ensemble, types come
    from its own sharpened predictions, also on sentences that a masked language model has augmented.
Assumes: that wrong and missing labels are fewer than right ones, and harder to learn; for the token head, that
    neighbouring entities have different types (the tag scheme is IO).
Needs: weak; augmentation needs an encoder from `lacuner pretrain`, or one with a masked-LM head of its own.
Costs: one training run per model, in parallel where there are cores, and 1.3 (tokens) to 2.3 (spans) more for stages 2
    and 3.
Departs from the authors: with every preset, labels and soft labels are renewed every epoch, not every few batches;
    `guard` also limits how many O labels are removed; positions in unsure spans are left out in every stage.
    Augmentation uses the encoder as it was pre-trained, with new sentences in each epoch, and only if its top-5
    accuracy on these texts is at least 60 %. Dropout removes the same features at all words of a sentence. With dev,
    each stage keeps its best epoch, and stage 3 keeps the distilled model if no epoch beats it
    (`ablation.keep_last=true`: its last); the authors have no dev and keep the last epoch. Where formula and code of
    the authors differ, this follows the code: a labeled token is always treated as an entity (Eq. 5 removes it); the
    type part of the distillation loss is not weighted by the entity probability (Eq. 6 weights it; so do we for spans);
    soft types are used where an entity is likely, and on augmented sentences only where both predictions agree (Eq. 9
    has all tokens). The preset `tokens` has learning rates for encoders of any size, a higher one for the head, dropout
    0.3, batches by number of words, and learning rates of 1 and 1/10 of stage 1 in stages 2 and 3, where the paper has
    1/3 and 1/60. With an encoder that is not a transformer, which includes the pre-trained `tiny-en` and `tiny-zh`, the
    preset is `spans`: the two classifiers score spans, not tokens, with three models, `q=0.1`, `tau=0.5` and no O left
    out.
Reference: Meng et al. (2021), "Distantly-supervised named entity recognition with noise-robust learning and language
    model augmented self-training" (RoSTER).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor

from lacuner.config import Config as BaseConfig
from lacuner.data import Document, Lost, Splits
from lacuner.losses.gce import entity_type_gce_loss
from lacuner.models.config import EntityTypeHeadConfig
from lacuner.models.encoders import names_transformer
from lacuner.models.heads.entity_type import split_entity_and_type
from lacuner.models.heads.span import SpanHead
from lacuner.models.inference import probabilities, score_parts
from lacuner.models.model import Model
from lacuner.models.tagger import Tagger
from lacuner.models.types import EntityTypeScores, SpanScores, Targets
from lacuner.pretraining.augmentation import MIN_TOP5, Augmenter, augment_sentences
from lacuner.techniques.distillation import distillation_step, entity_denominator, mean_probabilities, soft_label_set
from lacuner.techniques.label_removal import (
    Mask,
    keep_labels,
    leave_out,
    no_masks,
    removed_positions,
    write_removed_labels,
)
from lacuner.techniques.self_training import sharpen_types, type_mass
from lacuner.training.config import RecipeConfig, as_table, fill_in_preset
from lacuner.training.dataset import WeakTrainingSet, keep_rows, weak_training_set
from lacuner.training.parallel import train_members
from lacuner.training.run_folder import Run
from lacuner.training.stage import Selection, cached_rows, load_stage, new_model, train_stage
from lacuner.training.steps import Step, loss_step

NEEDS = ("weak",)
GROUP = "recommended"
PAPER = "Meng et al., 2021"
STREAMS = True

_TOKENS = {"head": {"kind": "entity_type"}, "models": 5, "q": 0.7, "tau": 0.7, "guard": 0.9, "drop_unlabeled": 0.5}
PRESETS: dict[str, dict[str, Any]] = {
    "tokens": _TOKENS,
    # all that the paper states for RoBERTa: 3e-5, 1e-5 and 5e-7 in the three stages, for the head as for the encoder
    "paper": {
        **_TOKENS,
        "head": {"kind": "entity_type", "dropout": 0.1},
        "train": {"learning_rate": 3e-5, "head_learning_rate": 3e-5, "batch_size": 32},
        "ablation": {"ensemble_rate": 1 / 3, "self_rate": 1 / 60},
    },
    # tuned with `tiny` on the dev data of Wikigold, BC5CDR and the demo corpus. Entities are a few per cent of all
    # spans: they are learned late, and with a larger q hardly at all. If the model rejects a type in a quarter of its
    # places, it has more likely not learned it yet.
    "spans": {
        "head": {"kind": "span", "threshold": "dev"},
        "models": 3,
        "q": 0.1,
        "tau": 0.5,
        "guard": 0.25,
        "drop_unlabeled": 0.0,
    },
}


class Ablation(BaseConfig):
    """Switches and constants that only experiments change."""

    removal: bool = True
    """Label removal in stage 1."""
    ensemble: bool = True
    """Stage 2; without it there is one noise-robust model, which is self-trained."""
    self_training: bool = True
    """Stage 3."""
    augmentation: bool = True
    """Augmented sentences in stage 3, if the encoder has a masked-LM head."""
    ensemble_rate: float = Field(1.0, gt=0)
    """Learning rates of stage 2, relative to stage 1."""
    self_rate: float = Field(0.1, gt=0)
    """Learning rates of stage 3, relative to stage 1."""
    keep_last: bool = False
    """Whether stage 3 keeps its last epoch, as without dev; dev then only measures every epoch."""
    confident: float = Field(0.8, ge=0, le=1)
    """Minimum entity probability for a position's type to be used in self-training."""
    augment_rate: float = Field(0.15, gt=0, lt=1)
    """Share of the words that augmentation may replace."""
    least_top5: float = Field(MIN_TOP5, ge=0, le=1)
    """Minimum top-5 accuracy of the masked language model for augmentation."""


class Config(RecipeConfig):
    """Settings of `roster`; `train` applies to stage 1."""

    RENAMED: ClassVar[Mapping[str, str]] = {
        **{name: f"ablation.{name}" for name in Ablation.model_fields},
        "weigh_types": "span heads weight types by the entity probability, token heads do not",
    }
    PRESET_FIELDS: ClassVar[frozenset[str]] = frozenset(PRESETS["paper"]) | {"preset"}

    preset: Literal["tokens", "paper", "spans"] = "spans"
    """Defaults: `tokens` (for a Hugging Face encoder), `spans` (for any other), or `paper`: `tokens` with the paper's
    learning rates, dropout and batch size, which are for a large encoder."""
    head: EntityTypeHeadConfig = EntityTypeHeadConfig()  # replaced by that of the preset
    models: int = Field(3, ge=1)
    """Number of noise-robust models (the paper's K): 5 for tokens, 3 for spans."""
    q: float = Field(0.1, ge=0, le=1)
    """Generalised cross-entropy: 0 is cross-entropy, 1 the most robust. 0.7 for tokens, 0.1 for spans."""
    tau: float = Field(0.5, ge=0, lt=1)
    """Minimum probability of a label for it to be kept: 0.7 for tokens, 0.5 for spans."""
    removal_after: int = Field(1, ge=1)
    """Number of warm-up epochs before label removal starts."""
    guard: float = Field(0.25, gt=0, le=1)
    """Largest share of a type's labels to remove; if more would be, none is. 0.9 for tokens, 0.25 for spans."""
    drop_unlabeled: float = Field(0.0, ge=0, lt=1)
    """Share of unlabeled positions that a model is not trained on, drawn anew for each: 0.5 for tokens, 0 for spans."""
    ensemble_epochs: int | None = Field(None, ge=1)
    """Epochs of stage 2; by default those of `train`, twice as many for spans."""
    self_epochs: int | None = Field(None, ge=1)
    """Epochs of stage 3; by default a third of those of `train`."""
    ablation: Ablation = Ablation()
    """Switches and constants that only experiments change."""

    @model_validator(mode="before")
    @classmethod
    def _fill_in_preset(cls, values: Any) -> Any:
        return apply_preset(values) if isinstance(values, dict) else values

    def matching_defaults(self) -> Config:
        return Config(preset=self.preset)


def apply_preset(values: Mapping[str, Any]) -> dict[str, Any]:
    """Add the values of the preset, which follows from the head or the encoder unless it is named."""
    preset, head = values.get("preset"), as_table(values.get("head"))
    if preset is None and isinstance(head, dict) and "kind" in head:
        preset = "spans" if head["kind"] == "span" else "tokens"
    if preset is None:
        preset = "tokens" if _is_transformer(values.get("encoder", {})) else "spans"
    if preset not in PRESETS:
        return dict(values)  # validation will name the mistake
    return fill_in_preset(PRESETS[preset], {**values, "preset": preset})


def _is_transformer(encoder: Any) -> bool:
    name = encoder.get("name") if isinstance(encoder, dict) else getattr(encoder, "name", "")
    return isinstance(name, str) and names_transformer(name)


class Task(NamedTuple):
    """What all stages share."""

    docs: Sequence[Document]
    dev: Sequence[Document] | None
    weak: WeakTrainingSet
    config: Config
    run: Run


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Train on `splits.weak` in the three stages of the paper."""
    docs, lost, ablation = splits.weak or (), Lost(), config.ablation
    model = new_model(config, docs, run)
    config = _with_width(config, model)
    task = Task(docs, splits.dev, weak_training_set(model, docs, lost), config, run)
    count = config.models if ablation.ensemble else 1
    run.log(f"roster: training on {len(docs):,} documents, {count} noise-robust models first: {lost}")
    augmenter = None
    if ablation.augmentation and ablation.self_training:
        sentences = task.weak.as_complete.sentences
        augmenter = augment_sentences(config.encoder, sentences, ablation.least_top5, run.log)

    # stage 1: noise-robust models
    stages = {number: f"robust/{number}" for number in range(1, count + 1)}
    run.plan(dict.fromkeys(stages.values(), config.train.epochs) | _later_epochs(config))
    train_members("roster", splits, config, run, stages, partial(train_robust, task))
    robust_models, removed = zip(*(_load_robust(task, name) for name in stages.values()), strict=True)
    count_removed = write_removed_labels(run.folder, docs, task.weak.as_complete, removed)
    if ablation.removal:
        run.log(f"roster: label removal left out {count_removed:,} spans in at least one epoch (removed.jsonl)")
    parts = mean_probabilities(robust_models, task.weak.as_complete.features)
    ensemble_probs = keep_rows(task.weak.as_complete, [run.identity, "ensemble"], parts)["probs"]

    # stage 2: distil the ensemble
    student = _distil(task, model, ensemble_probs) if ablation.ensemble else robust_models[0]

    # stage 3: self-training
    if ablation.self_training:
        _self_train(task, student, ensemble_probs, augmenter)
    return Tagger(student)


def _with_width(config: Config, model: Model) -> Config:
    """The settings with the width of spans that was chosen from the documents: it is chosen once."""
    if not isinstance(model.head, SpanHead):
        return config
    return config.model_copy(update={"head": config.head.model_copy(update={"width": model.head.widths})})


def _later_epochs(config: Config) -> dict[str, int]:
    """Number of epochs of stages 2 and 3, if they are trained."""
    epochs, factor = config.train.epochs, 2 if config.head.kind == "span" else 1
    stages = {"ensemble": config.ensemble_epochs or factor * epochs} if config.ablation.ensemble else {}
    return stages | ({"self_training": config.self_epochs or ceil(epochs / 3)} if config.ablation.self_training else {})


def train_member(splits: Splits, config: Config, run: Run, number: int) -> None:
    """Train one noise-robust model in a process of its own."""
    docs = splits.weak or ()
    weak = weak_training_set(new_model(config, docs, run), docs, Lost())
    train_robust(Task(docs, splits.dev, weak, config, run), number)


def train_robust(task: Task, number: int) -> None:
    """Stage 1: one model with generalised cross-entropy; after each epoch, labels that it rejects are removed."""
    name, config, run = f"robust/{number}", task.config, task.run
    model = new_model(config, task.docs, run, name)
    targets = replace(task.weak.as_complete.targets, known=_known_to(task, name))
    data = replace(task.weak.as_complete, model=model, targets=targets)
    step = loss_step(data, partial(_gce_loss, q=config.q), known=_is_counted)

    def make_step(epoch: int) -> Step:
        if config.ablation.removal and epoch >= config.removal_after:
            stage = f"{name}/removed/{epoch}"
            kept = cached_rows(run, data, stage, lambda: keep_labels(model, task.weak, config.tau, config.guard))
            targets.weight = kept["kept"]
        return step

    train_stage(data, make_step, config.train, run, Selection(task.dev, config.head.threshold), name)


def _known_to(task: Task, name: str) -> Tensor:
    """The positions that this model sees: of the unlabeled ones, a random share is left out."""
    return leave_out(task.weak, task.config.drop_unlabeled, task.run.seed_for(name, "dropped"))


def _is_counted(targets: Targets) -> Tensor:
    """Positions whose entity loss counts: labeled ones, and unlabeled ones that were not removed."""
    return targets.known & ((targets.labels > 0) | (targets.weight > 0))


def _gce_loss(scores: EntityTypeScores | SpanScores, targets: Targets, q: float) -> Tensor:
    """Mean entity loss over counted positions plus mean type loss over labeled ones, times the number of words."""
    joint = split_entity_and_type(scores)
    entity, types = entity_type_gce_loss(joint, targets, q)
    typed = (targets.known & (targets.labels > 0) & (targets.weight > 0)).sum()
    words = scores.mask.sum() if scores.mask.dim() == 2 else scores.mask[..., 0].sum()
    total = entity.sum() / entity_denominator(_is_counted(targets).sum(), words) + types.sum() / typed.clamp(min=1)
    return total * float(words)


def _load_robust(task: Task, name: str) -> tuple[Model, dict[int, Mask]]:
    """A finished noise-robust model, and which positions it had removed, by epoch."""
    config, run, data = task.config, task.run, task.weak.as_complete
    model = new_model(config, task.docs, run, name)
    rows, known = load_stage(run, name, model) or [], _known_to(task, name)
    removed: dict[int, Mask] = {}
    for epoch in [row["epoch"] for row in rows if config.ablation.removal and row["epoch"] >= config.removal_after]:
        removed[epoch] = partial(
            removed_positions, known, cached_rows(run, data, f"{name}/removed/{epoch}", no_masks)["kept"]
        )
    return model, removed


def _distil(task: Task, student: Model, ensemble_probs: Tensor) -> Model:
    """Stage 2: train a new model on the mean probabilities of the ensemble."""
    config, spans = task.config, task.config.head.kind == "span"
    data = soft_label_set(task.weak.as_complete, student, ensemble_probs, weight_types=spans)
    settings = config.train.resolve(student, data.features).scale_learning_rates(config.ablation.ensemble_rate)
    settings = settings.with_epochs(_later_epochs(config)["ensemble"])
    selection = Selection(task.dev, config.head.threshold)
    train_stage(data, lambda _: distillation_step(data), settings, task.run, selection, "ensemble")
    return student


def _self_train(task: Task, model: Model, ensemble_probs: Tensor, augmenter: Augmenter | None) -> None:
    """Stage 3: types come from the model's own predictions, sharpened in each epoch; entities from the ensemble.

    Until `sharpen_types` has made soft labels of a batch, `targets.probs` has the entity probability, then the types'.
    """
    config, ablation = task.config, task.config.ablation
    data = soft_label_set(task.weak.as_complete, model, ensemble_probs)

    def predictions() -> Iterator[dict[str, np.ndarray]]:
        for words, probs in score_parts(model, data.features, probabilities):
            entity_prob = 1 - probs[..., 0]
            confident = (entity_prob >= ablation.confident) & data.targets.known[words]
            entity = (1 - ensemble_probs[words][..., :1]).clamp(min=1e-6)
            types = probs[..., 1:] / entity_prob.clamp(min=1e-9).unsqueeze(-1)
            yield {"entity_and_types": torch.cat([entity, types], dim=-1).numpy(), "counted": confident.numpy()}

    def make_step(epoch: int) -> Step:
        rows = cached_rows(task.run, data, f"self_training/{epoch}", predictions)
        data.targets.probs, data.targets.weight = rows["entity_and_types"], rows["counted"]
        mass = type_mass(rows["entity_and_types"], rows["counted"])
        augmented = None if augmenter is None else model.encoder.prepare(augmenter.draw(ablation.augment_rate))
        return distillation_step(data, augmented, partial(sharpen_types, mass))

    settings = config.train.resolve(model, data.features).scale_learning_rates(ablation.self_rate)
    settings = settings.with_epochs(_later_epochs(config)["self_training"])
    selection = Selection(task.dev, config.head.threshold, "last" if ablation.keep_last else "best or start")
    train_stage(data, make_step, settings, task.run, selection, "self_training")
