"""Generalised cross-entropy: a loss between cross-entropy and mean absolute error, robust to wrong labels."""

import torch
from torch import Tensor
from torch.nn import functional

from lacuner.models.types import EntityTypeScores, Targets


def gce(log_probs: Tensor, q: float) -> Tensor:
    """`(1 - p^q) / q` of log probabilities `log p`: cross-entropy for `q = 0`, `1 - p` for `q = 1`.

    What it does: a label with a probability near 0 has a loss of `1 / q` and almost no gradient, where the gradient of
        cross-entropy would grow without limit.
    Assumes: labels whose probability stays low during training are wrong.
    Departs from the authors: computed from logarithms, which keeps precision for small `q`.
    Reference: Zhang and Sabuncu (2018), "Generalized cross entropy loss for training deep neural networks with noisy
        labels".

    >>> gce(torch.tensor([0.5, 1e-9]).log(), q=0.5)
    tensor([0.5858, 1.9999])
    """
    return -log_probs if q == 0 else -torch.expm1(q * log_probs) / q


def entity_type_gce_loss(scores: EntityTypeScores, targets: Targets, q: float) -> tuple[Tensor, Tensor]:
    """Losses of the entity classifier at all known words and of the type classifier at labeled words.

    What it does: generalised cross-entropy of both classifiers, each in the shape of `targets.labels`. The weight of an
        O counts in the entity loss, that of a labeled word in the type loss: that a labeled word is part of an entity
        is never questioned.
    Assumes: weak labels have wrong types or are missing, but seldom mark words outside entities.
    Departs from the authors: their Eq. 5 gives each word one weight for both classifiers; this follows their code. Soft
        labels are refused: the loss is defined for one label per word.
    Reference: Meng et al. (2021), "Distantly-supervised named entity recognition with noise-robust learning and
        language model augmented self-training" (RoSTER).

    >>> mask = torch.ones(1, 2, dtype=torch.bool)
    >>> scores = EntityTypeScores(torch.zeros(1, 2), torch.zeros(1, 2, 2), torch.zeros(1, 2, 3), mask)
    >>> targets = Targets(torch.tensor([[0, 1]]), mask, torch.ones(1, 2))  # O, then the first type
    >>> entity_type_gce_loss(scores, targets, q=1.0)
    (tensor([[0.5000, 0.5000]]), tensor([[0.0000, 0.5000]]))
    """
    if targets.probs is not None:
        raise ValueError("entity_type_gce_loss does not support soft labels")
    at = (targets.known & scores.mask).nonzero(as_tuple=True)
    labels, weight = targets.labels[at], targets.weight[at]
    labeled = labels > 0
    inside = functional.logsigmoid(torch.where(labeled, scores.entity[at], -scores.entity[at]))
    entity = gce(inside, q) * torch.where(labeled, torch.ones_like(weight), weight)
    at_labeled = tuple(index[labeled] for index in at)
    logs = scores.types[at_labeled].log_softmax(dim=-1).gather(1, labels[labeled].unsqueeze(1) - 1).squeeze(1)
    empty = entity.new_zeros(targets.labels.shape)
    return empty.index_put(at, entity), empty.index_put(at_labeled, gce(logs, q) * weight[labeled])
