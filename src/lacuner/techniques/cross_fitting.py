"""Spans judged by models that have not learned from them: each part of the corpus by the model of the others."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from zlib import crc32

import numpy as np
import torch
from torch import Tensor

from lacuner.data import Document
from lacuner.errors import TrainingError
from lacuner.evaluate.calibration import exact_match, select_complete
from lacuner.models.inference import score_corpus
from lacuner.models.model import Model
from lacuner.models.storage import AnyTagger
from lacuner.techniques.label_completion import scored
from lacuner.training.dataset import SpanSet

Judge = Callable[[Tensor], Tensor]
"""From logits `[batch, words, widths, classes]` to a number a span."""


def cut(docs: Sequence[Document], count: int) -> np.ndarray:
    """Which part each document belongs to; copies of a text stay together."""
    part = np.array([crc32(doc.text.encode("utf-8", "surrogatepass")) % count for doc in docs])
    labelled = {int(its) for doc, its in zip(docs, part, strict=True) if doc.spans}
    if len(labelled) == 1:  # if there are none at all, the model will say so
        raise TrainingError("there are too few documents with labels to judge each part of them by the others")
    return part


def judged_by_halves(
    spans: SpanSet, docs: Sequence[Document], learn: Callable[[Sequence[Document], str], Model], judge: Judge
) -> Tensor:
    """A number for each span of the corpus, `[words of all sentences, widths]`, as `SpanSet.open` has them.

    `learn` trains a model with some of the documents under a name; its encoder must read as that of `spans` does.
    """
    found = torch.zeros(spans.open.known.shape)
    half_of = cut(docs, 2)
    for half in (0, 1):
        others = [doc for doc, its in zip(docs, half_of, strict=True) if its != half]
        model = learn(others, f"half{half}").eval()
        sentences = np.flatnonzero(half_of[spans.data.sentences.document] == half)
        found += score_corpus(model, spans.data.features, lambda scores: judge(scores.logits), sentences)
    return found


def parts_of(docs: Sequence[Document], parts: int) -> np.ndarray:
    """The part of each document, all of about the same size; copies of a text stay together."""
    texts = {doc.text for doc in docs}
    ranked = sorted(texts, key=lambda text: hashlib.blake2b(text.encode("utf-8", "surrogatepass")).digest())
    part = {text: rank % parts for rank, text in enumerate(ranked)}
    return np.array([part[doc.text] for doc in docs], dtype=np.int64)


Learn = Callable[[np.ndarray, str], AnyTagger | None]
"""A tagger that has learned from the documents of a mask, under a name; None if these say nothing."""


def held_out(gold: Sequence[Document], parts: int, learn: Learn, all_parts: bool) -> tuple[np.ndarray, np.ndarray]:
    """Scores of gold sentences by models that have not seen them, and whether they were right.

    Each part is judged by the model of all others; where there is enough gold, one part is enough.
    """
    part = parts_of(gold, parts)
    scores, right = [np.zeros(0)], [np.zeros(0, dtype=bool)]
    for number in range(parts if all_parts else 1):
        asked = select_complete([doc for doc, its in zip(gold, part.tolist(), strict=True) if its == number])
        tagger = learn(part != number, f"calibrate/{number + 1}") if asked else None
        if tagger is not None:
            found, sure = scored(tagger, asked)
            scores.append(sure)
            right.append(exact_match(asked, found))
    return np.concatenate(scores), np.concatenate(right)
