"""Cross-fitting: out-of-fold scores, from models that were not trained on the documents they score."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lacuner.data import Document
from lacuner.errors import TrainingError
from lacuner.models.inference import score_corpus
from lacuner.models.model import Model
from lacuner.training.dataset import TrainingSet, assign_folds


def out_of_fold_scores(
    docs: Sequence[Document],
    data: TrainingSet,
    train: Callable[[Sequence[Document], str], Model],
    extract: Callable[[Any], Tensor],
    folds: int = 2,
) -> Tensor:
    """Score every position of a corpus with the model of the other folds: `[words, ...]`.

    Args:
        docs: the documents of `data`.
        data: the prepared corpus; the trained models must use the same kind of encoder.
        train: trains a model on some documents, under a stage name.
        extract: takes the value per position from the head's scores, `[batch, words, ...]`.
        folds: number of folds.
    """
    fold_of = assign_folds(docs, folds)
    if len({int(fold) for doc, fold in zip(docs, fold_of, strict=True) if doc.spans}) == 1:
        raise TrainingError("there are too few documents with labels for cross-fitting: all of them fall into one fold")
    total = torch.zeros(())
    for fold in range(folds):
        model = train([doc for doc, other in zip(docs, fold_of, strict=True) if other != fold], f"half{fold}")
        sentences = np.flatnonzero(fold_of[data.sentences.document] == fold)
        total = total + score_corpus(model, data.features, extract, sentences)
    return total
