"""Spans judged by models that have not learned from them: each part of the corpus by the model of the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from zlib import crc32

import numpy as np
import torch
from torch import Tensor

from lacuner.errors import TrainingError
from lacuner.models.model import Model
from lacuner.models.packing import pad_rows
from lacuner.models.tagger import BUDGET, budget_batches
from lacuner.recipes.spans import SpanSet
from lacuner.types import Document

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
        mine = np.flatnonzero(half_of[spans.data.sentences.document] == half)
        mine = mine[np.argsort(spans.data.features.costs[mine], kind="stable")]
        device = next(model.parameters()).device
        with torch.inference_mode():
            for indices in budget_batches(spans.data.features.costs, mine, BUDGET):
                batch = model.encoder.collate(spans.data.features, indices).to(device)
                positions, real = pad_rows(spans.open.offsets, indices)
                found[torch.from_numpy(positions[real])] = judge(model(batch).logits).cpu()[torch.from_numpy(real)]
    return found
