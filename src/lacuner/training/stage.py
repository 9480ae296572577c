"""TODO docstring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lacuner.data import Document, Lost
from lacuner.errors import TrainingError
from lacuner.models.config import MAX_SPAN_WIDTH, EncoderConfig, HeadConfig
from lacuner.models.encoders import open_encoder
from lacuner.models.heads import build_head
from lacuner.models.model import Model
from lacuner.models.tagger import Tagger
from lacuner.models.targets import choose_span_width
from lacuner.models.types import HasThreshold
from lacuner.models.windows import cut_sentences
from lacuner.training.config import HasPlainSettings, resolved
from lacuner.training.dataset import SpanSet, TrainingSet, dev_scorer, span_set, training_set
from lacuner.training.loop import MakeStep, fit
from lacuner.training.run_folder import Run
from lacuner.training.steps import believe


def new_model(
    encoder: EncoderConfig, head: HeadConfig, docs: Sequence[Document], run: Run, name: str = "model"
) -> Model:
    """A model with fresh weights for the labels of these documents; the weights depend on run, seed and name alone."""
    labels = sorted({span.label for doc in docs for span in doc.spans})
    if not labels:
        raise TrainingError("there is no labelled span in the training data: nothing can be learned from it")
    torch.manual_seed(run.seed_for("weights", name))
    made = open_encoder(encoder, docs)
    settings: dict[str, Any] = {"kind": head.kind, "labels": labels, "dropout": head.dropout}
    if head.kind == "span":
        width = head.width or min(choose_span_width(cut_sentences(docs, made, Lost()).annotations), MAX_SPAN_WIDTH)
        settings |= {"widths": width, "variant": head.variant}
    elif head.kind != "entity_type":
        settings |= {"scheme": head.scheme, "angle": head.angle}
    return Model(made, build_head(settings, made.width))


class Learned(NamedTuple):
    """A tagger, and what was measured in each epoch."""

    tagger: Tagger
    rows: list[dict[str, Any]]

    @property
    def f1(self) -> float:
        """That of the best epoch on dev; 0 without dev."""
        return max((row["dev"]["f1"] for row in self.rows if "dev" in row), default=0.0)


def learn_in_stage(
    data: TrainingSet,
    make_step: MakeStep,
    config: HasPlainSettings,
    run: Run,
    dev: Sequence[Document] | None,
    name: str = "train",
    start_counts: bool = False,
) -> Learned:
    """One training in one stage; a span head has its threshold afterwards."""
    model, head = data.model, data.model.head
    threshold = config.head.threshold if isinstance(head, HasThreshold) else None
    scored = dev_scorer(model, dev, choose_threshold=threshold == "dev")
    if isinstance(head, HasThreshold) and isinstance(threshold, float):
        head.threshold = threshold
    with run.stage(name) as stage:
        settings = resolved(config.train, model, data.features)
        rows = fit(model, data.features, make_step, settings, stage, scored, start_counts)
    if isinstance(head, HasThreshold) and threshold == "dev" and scored is not None:
        scored()  # that of the weights that were kept
        run.say(f"{name}: on dev a threshold of {head.threshold:.3f} is best")
    return Learned(Tagger(model), rows)


def learn(docs: Sequence[Document], dev: Sequence[Document] | None, config: HasPlainSettings, run: Run) -> Tagger:
    """One training, believing whatever the documents say is known."""
    lost = Lost()
    data = training_set(new_model(config.encoder, config.head, docs, run), docs, lost)
    run.say(f"learning from {len(docs):,} documents: {lost}")
    step = believe(data)
    return learn_in_stage(data, lambda _: step, config, run, dev).tagger


def once(run: Run, name: str, compute: Callable[[], dict[str, Tensor]]) -> dict[str, Tensor]:
    """Tensors that are computed once in a run.

    What an epoch learns from is finished before the epoch begins, so that a run that was killed in the middle of it
    never asks a model that is half through it.
    """
    with run.stage(name) as stage:
        if not stage.finished:
            stage.finish(compute(), {})
    with run.stage(name) as stage:
        return stage.tensors


def new_span_set(config: HasPlainSettings, docs: Sequence[Document], run: Run, name: str = "model") -> SpanSet:
    """Documents ready for a model with fresh weights."""
    lost = Lost()
    spans = span_set(new_model(config.encoder, config.head, docs, run, name), docs, lost)
    run.say(f"learning from {len(docs):,} documents: {lost}")
    return spans


def best_on_dev(values: Sequence[float], learn: Callable[[float, str], Learned], setting: str, run: Run) -> Tagger:
    """Learn once with each value of a setting, in a stage of its own, and keep the best on dev, of equals the first."""
    tried = {value: learn(value, f"{setting}{value:g}") for value in dict.fromkeys(values)}
    run.say("dev F1 " + ", ".join(f"{each.f1:.3f} with {setting} = {value:g}" for value, each in tried.items()))
    return max(tried.values(), key=lambda each: each.f1).tagger
