"""Documents made ready for a model, once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from lacuner.evaluate.scores import Count, count_exact
from lacuner.evaluate.threshold import best_threshold
from lacuner.models.model import Model
from lacuner.models.sentences import Sentences, cut_sentences
from lacuner.models.tagger import Tagger, assemble
from lacuner.types import Batch, Document, Features, Lost, PackedTargets, Targets


@dataclass(frozen=True)
class TrainingSet:
    """Sentences with their features and targets. A recipe may overwrite the targets' tensors between epochs."""

    model: Model
    sentences: Sentences
    features: Features
    targets: PackedTargets

    def batch(self, indices: np.ndarray) -> tuple[Batch, Targets]:
        """Some sentences as tensors, where the model is."""
        device = next(self.model.parameters()).device
        targets = self.targets.collate(indices)
        if device.type != "cpu":
            targets = Targets(*[None if t is None else t.to(device) for t in _fields(targets)])  # type: ignore[arg-type]
        return self.model.encoder.collate(self.features, indices).to(device), targets


def _fields(targets: Targets) -> tuple[torch.Tensor | None, ...]:
    return targets.labels, targets.known, targets.weight, targets.probs


def training_set(model: Model, docs: Sequence[Document], lost: Lost) -> TrainingSet:
    """Cut, prepare and encode documents to learn from; `lost` has what the model cannot learn."""
    sentences = cut_sentences(docs, model.encoder, lost)
    features = model.encoder.prepare(sentences.words)
    lost.count("word too long to be read to its end", features.cut)
    return TrainingSet(model, sentences, features, model.head.targets(sentences.annotations, lost))


LOOSE = 0.0009
"""Spans that are less probable than this are not looked at when a threshold is chosen."""


def dev_scorer(
    model: Model, docs: Sequence[Document] | None, choose_threshold: bool = False
) -> Callable[[], Count] | None:
    """A function that scores the model as it now is on dev, which is prepared once; None without dev.

    If it is to choose the threshold of a span head, it leaves behind the best one in the head, and scores with that.
    """
    if not docs:
        return None
    tagger = Tagger(model)
    sentences = cut_sentences(docs, model.encoder)
    features = model.encoder.prepare(sentences.words)

    def found() -> list[Document]:
        return list(assemble(docs, sentences, tagger.find(features), tagger.labels))

    def scored() -> Count:
        if not choose_threshold:
            return count_exact(docs, found())
        model.head.threshold = LOOSE
        # spans are taken by probability, so that those above a threshold are the same whatever lies below it
        model.head.threshold, count = best_threshold(docs, found())
        return count

    return scored
