"""Batched inference over a prepared corpus: the one forward pass that prediction, self-training and audits share."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from lacuner.mapped import release_pages
from lacuner.models.model import AnyModel, Model
from lacuner.models.ragged import offsets_of, pad_rows
from lacuner.models.types import Features, HasFastForward

BUDGET = 2048
"""Words per inference batch, padding included."""
MAX_PADDING = 64
"""Words of padding that a sentence may add to a batch when documents are predicted; with more it opens a new batch."""
FAST_FROM = 2048
"""Number of words from which on an encoder's fast forward pass pays off: it must be prepared first."""
BLOCK = 1 << 18
"""Sentences that are sorted by length together; of a mapped corpus, about as many are in memory at a time."""

PART = 1 << 14
"""Sentences whose rows `score_parts` yields together."""

T = TypeVar("T")


def budget_batches(
    costs: np.ndarray, order: np.ndarray, budget: int, max_padding: int | None = None
) -> list[np.ndarray]:
    """Cut sentences, in the given order, into batches that fit the budget when padded to their longest sentence.

    A sentence also starts a new batch if all sentences before it would need more than `max_padding` together.

    >>> [batch.tolist() for batch in budget_batches(np.array([3, 1, 2]), np.array([1, 2, 0]), budget=4)]
    [[1, 2], [0]]
    >>> [batch.tolist() for batch in budget_batches(np.array([1, 1, 9]), np.arange(3), budget=99, max_padding=8)]
    [[0, 1], [2]]
    """
    most = budget if max_padding is None else max_padding
    batches, first, longest = [], 0, 0
    for i, cost in enumerate(costs[order].tolist()):
        padding = (cost - longest) * (i - first)
        if i > first and (max(longest, cost) * (i - first + 1) > budget or padding > most):
            batches.append(order[first:i])
            first, longest = i, 0
        longest = max(longest, cost)
    if first < len(order):
        batches.append(order[first:])
    return batches


def infer_batches(
    model: AnyModel,
    features: Features,
    compute: Callable[[np.ndarray], T],
    sentences: np.ndarray | None = None,
    max_padding: int | None = None,
) -> Iterator[tuple[np.ndarray, T]]:
    """Call `compute` on batches of sentence indices, in evaluation mode and without gradients.

    Sentences of similar length share a batch (see `budget_batches`); a large corpus is read block by block. Only
    `sentences` are visited, if given. Yields each batch of indices with its result; afterwards the model is back in the
    mode that it was in.
    """
    sentences = np.arange(len(features)) if sentences is None else sentences
    was_training = model.training
    model.eval()
    try:
        for start in range(0, len(sentences), BLOCK):
            block = sentences[start : start + BLOCK]
            order = block[np.argsort(features.costs[block], kind="stable")]
            for indices in budget_batches(features.costs, order, BUDGET, max_padding):
                with torch.no_grad():  # not inference mode: CRF marginals are gradients
                    result = compute(indices)
                yield indices, result
            release_pages()
    finally:
        model.train(was_training)


def score_batches(
    model: Model, features: Features, extract: Callable[[Any], T], sentences: np.ndarray | None = None
) -> Iterator[tuple[np.ndarray, T]]:
    """`infer_batches` with the model's own forward pass: `extract` takes what is needed from the head's scores."""
    device = next(model.parameters()).device

    def compute(indices: np.ndarray) -> T:
        return extract(model(model.encoder.collate(features, indices).to(device)))

    return infer_batches(model, features, compute, sentences)


def predict_batches(model: Model, features: Features, extract: Callable[[Any], T]) -> Iterator[tuple[np.ndarray, T]]:
    """`score_batches`, faster for large corpora: with the encoder's forward pass for prediction, if it has one."""
    encoder, on_cpu = model.encoder, next(model.parameters()).device.type == "cpu"
    if features.lengths.sum() < FAST_FROM or not (on_cpu and isinstance(encoder, HasFastForward)):
        return score_batches(model, features, extract)
    was_training = model.training
    model.eval()  # what is prepared here must not contain dropout
    with torch.no_grad():
        forward = encoder.fast_forward(features)
    model.train(was_training)

    def compute(indices: np.ndarray) -> T:
        return extract(model.head(*forward(indices)))

    return infer_batches(model, features, compute, max_padding=MAX_PADDING)


def score_corpus(
    model: Model, features: Features, extract: Callable[[Any], Tensor], sentences: np.ndarray | None = None
) -> Tensor:
    """What `extract` takes from the scores of every word of a corpus: `[words, ...]`, zeros for skipped sentences."""
    return join_batches(score_batches(model, features, extract, sentences), features.lengths)


def score_parts(model: Model, features: Features, extract: Callable[[Any], Tensor]) -> Iterator[tuple[slice, Tensor]]:
    """`score_corpus` for a corpus that may be larger than memory: ranges of words, each with its rows."""
    offsets = offsets_of(features.lengths)
    for start in range(0, max(len(features), 1), PART):
        sentences = np.arange(start, min(start + PART, len(features)))
        batches = score_batches(model, features, extract, sentences)
        rows = join_batches(((indices - start, values) for indices, values in batches), features.lengths[sentences])
        yield slice(int(offsets[start]), int(offsets[start + len(sentences)])), rows


def join_batches(batches: Iterable[tuple[np.ndarray, Tensor]], lengths: np.ndarray) -> Tensor:
    """Put results of padded batches `[batch, words, ...]` into one row of all words of a corpus, `[words, ...]`."""
    offsets = offsets_of(lengths)
    row: Tensor | None = None
    for indices, values in batches:
        values = values.float().cpu()
        if row is None:
            row = torch.zeros(int(offsets[-1]), *values.shape[2:])
        positions, real = (torch.from_numpy(array) for array in pad_rows(offsets, indices))
        row[positions[real]] = values[real]
    return torch.zeros(0) if row is None else row


def probabilities(scores: Any) -> Tensor:
    """Softmax over the classes: tags, or O and the entity types."""
    probs: Tensor = scores.logits.softmax(dim=-1)
    return probs
