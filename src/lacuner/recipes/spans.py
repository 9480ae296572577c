"""What the span recipes share: labelled spans, and those that might be drawn as negatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
from pydantic import Field
from torch import Tensor

from lacuner.evaluate.threshold import best_threshold
from lacuner.models.model import Model
from lacuner.models.tagger import Tagger
from lacuner.models.targets import CorpusTargets
from lacuner.recipes.parts import HasPlainSettings, HeadConfig, new_model, resolved
from lacuner.training.data import TrainingSet, dev_scorer, training_set
from lacuner.training.loop import MakeStep, fit
from lacuner.training.run import Row, Run
from lacuner.types import Document, Lost


class SpanHeadConfig(HeadConfig):
    """The head of a recipe that is about spans."""

    kind: Literal["span"] = "span"
    threshold: Annotated[float, Field(ge=0, le=1)] | Literal["dev"] = 0.0
    """How probable a span must be to be found, besides being more probable than none; `dev`: what is best on dev."""


@dataclass(frozen=True)
class SpanSet:
    """Sentences with what is known of their spans, and the spans of which nobody said anything.

    Spans that touch an unsure one are neither. Of a complete document all spans are known.
    """

    data: TrainingSet
    open: CorpusTargets
    """`known` says here: may be drawn."""

    @property
    def model(self) -> Model:
        return self.data.model

    def candidates(self, indices: np.ndarray, like: Tensor) -> Tensor:
        """Which spans of these sentences may be drawn, where `like` is."""
        return self.open.collate(indices).known.to(like.device)


def span_set(model: Model, docs: Sequence[Document], lost: Lost) -> SpanSet:
    """Make documents ready; `lost` has what the model cannot learn."""
    data = training_set(model, docs, lost)
    whole = [replace(annotation, complete=True) for annotation in data.sentences.annotations]
    believed = model.head.targets(whole, Lost())
    believed.known &= ~data.targets.known
    return SpanSet(data, believed)


def new_span_set(config: HasPlainSettings, docs: Sequence[Document], run: Run, name: str = "model") -> SpanSet:
    """Documents ready for a model with fresh weights."""
    lost = Lost()
    spans = span_set(new_model(config.encoder, config.head, docs, run, name), docs, lost)
    run.say(f"learning from {len(docs):,} documents: {lost}")
    return spans


def learn_spans(
    spans: SpanSet,
    make_step: MakeStep,
    config: HasPlainSettings,
    run: Run,
    dev: Sequence[Document] | None,
    name: str = "train",
) -> list[Row]:
    """Train in one stage, then settle the threshold."""
    model, features = spans.model, spans.data.features
    with run.stage(name) as stage:
        rows = fit(model, features, make_step, resolved(config.train, model, features), stage, dev_scorer(model, dev))
    threshold = config.head.threshold if isinstance(config.head, SpanHeadConfig) else 0.0
    if threshold != "dev":
        model.head.threshold = threshold
    elif dev is None:
        run.say(f"{name}: there is no dev data to choose a threshold with, so there is none")
    else:
        model.head.threshold, f1 = best_threshold(dev, Tagger(model).predict(dev))
        run.say(f"{name}: a threshold of {model.head.threshold:.3f} gives dev F1 {f1:.3f}")
    return rows
