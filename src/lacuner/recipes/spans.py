"""What the span recipes share: labelled spans, and those that might be drawn as negatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from lacuner.models.model import Model
from lacuner.models.tagger import Tagger
from lacuner.models.targets import CorpusTargets
from lacuner.recipes.parts import HasPlainSettings, HeadConfig, Learned, new_model
from lacuner.training.data import TrainingSet, training_set
from lacuner.training.run import Run
from lacuner.types import Document, Lost


class SpanHeadConfig(HeadConfig):
    """The head of a recipe that is about spans."""

    kind: Literal["span"] = "span"
    threshold: Annotated[float, Field(gt=0, lt=1)] | Literal["argmax", "dev"] = "dev"
    """How probable a label must be for a span to be found, be it less probable than none; `argmax`: more probable than
    none; `dev`: what is best on dev, if there is any. What learned from few negatives finds too much, what learned from
    gaps too little, and this mends much of both."""


@dataclass(frozen=True)
class SpanSet:
    """Sentences with what is known of their spans, and the spans of which nobody said anything.

    Spans that touch an unsure one are neither. Of a complete document all spans are known.
    """

    data: TrainingSet
    open: CorpusTargets
    """`known` says here: may be drawn."""
    words: Tensor
    """How many words each sentence has; of a window those that it owns."""

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
    words = torch.tensor([window.own_end - window.own_start for window in data.sentences.windows])
    return SpanSet(data, believed, words)


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
