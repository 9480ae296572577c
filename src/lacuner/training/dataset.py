"""Documents made ready for a model, once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from lacuner.data import Document, Lost
from lacuner.evaluate.scores import Count, count_exact
from lacuner.evaluate.threshold import tune_threshold
from lacuner.models.model import Model
from lacuner.models.tagger import Tagger, assemble
from lacuner.models.targets import CorpusTargets
from lacuner.models.types import Batch, Features, HasThreshold, Targets
from lacuner.models.windows import Sentences, cut_sentences


@dataclass(frozen=True)
class TrainingSet:
    """Sentences with their features and targets. A recipe may overwrite the targets' tensors between epochs."""

    model: Model
    sentences: Sentences
    features: Features
    targets: CorpusTargets

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
    lost.count("word too long to be read to its end", features.truncated)
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
        return list(assemble(docs, sentences, tagger.decode(features), tagger.labels))

    def scored() -> Count:
        if not choose_threshold:
            return count_exact(docs, found())
        assert isinstance(model.head, HasThreshold)
        model.head.threshold = LOOSE
        # spans are taken by probability, so that those above a threshold are the same whatever lies below it
        model.head.threshold, count = tune_threshold(docs, found())
        return count

    return scored


@dataclass(frozen=True)
class Believed:
    """Weak data as if it were complete, and what is O there only because nobody labelled it."""

    data: TrainingSet
    plain: np.ndarray
    """Words of the row that are taken for O: not those of complete documents or of what was ruled out."""

    @property
    def labelled(self) -> np.ndarray:
        """Words of the row that are part of a label."""
        found: np.ndarray = (self.data.targets.known & (self.data.targets.labels > 0)).numpy()
        return found


def believed_set(model: Model, docs: Sequence[Document], lost: Lost) -> Believed:
    """Weak documents made ready for a model of words; `lost` has what it cannot learn."""
    data = training_set(model, docs, lost)
    whole = [replace(annotation, complete=True) for annotation in data.sentences.annotations]
    targets = model.head.targets(whole, Lost())
    plain = (targets.known & (targets.labels == 0) & ~data.targets.known).numpy()
    return Believed(replace(data, sentences=replace(data.sentences, annotations=whole), targets=targets), plain)


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
