"""Documents made ready for a model, once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from lacuner.evaluate import Evaluation, score
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


def dev_scorer(model: Model, docs: Sequence[Document] | None) -> Callable[[], Evaluation] | None:
    """A function that scores the model as it now is on dev, which is prepared once; None without dev."""
    if not docs:
        return None
    tagger = Tagger(model)
    sentences = cut_sentences(docs, model.encoder)
    features = model.encoder.prepare(sentences.words)

    def scored() -> Evaluation:
        return score(docs, assemble(docs, sentences, tagger.find(features), tagger.labels))

    return scored
