"""Prototype loss: each word is drawn to the prototype that it is assigned to."""

from torch import Tensor
from torch.nn import functional

from lacuner.models.types import PrototypeScores, Targets


def prototype_loss(
    scores: PrototypeScores, targets: Targets, assigned: Tensor, scale: float = 1.0, compactness: float = 0.05
) -> Tensor:
    """Cross-entropy over all prototypes, and the distance to the assigned one: one number per word `[batch, words]`.

    What it does: `-log softmax(scale * cosines)` at the assigned prototype, plus `compactness * (1 - cosine)^2`, times
        the weight. `assigned` `[batch, words]` is read where the label is known.
    Assumes: the assignment is right.
    Departs from the authors: `scale`, which they leave at 1. Soft labels are refused: a word has one prototype.
    Reference: Wu et al. (2023), "MProto: multi-prototype network with denoised optimal transport for distantly
        supervised named entity recognition".

    >>> import torch
    >>> mask = torch.ones(1, 1, dtype=torch.bool)
    >>> scores = PrototypeScores(torch.tensor([[[1.0, 1.0]]]), torch.zeros(1, 1, 2), torch.zeros(1, 1, 2), mask)
    >>> prototype_loss(scores, Targets(torch.zeros(1, 1), mask, torch.ones(1, 1)), torch.zeros(1, 1).long())  # log 2
    tensor([[0.6931]])
    """
    if targets.probs is not None:
        raise ValueError("prototype_loss does not support soft labels")
    at = (targets.known & scores.mask).nonzero(as_tuple=True)
    similarities, prototype = scores.similarities[at], assigned[at]
    near = functional.cross_entropy(scale * similarities, prototype, reduction="none")
    cosine = similarities.gather(1, prototype.unsqueeze(1)).squeeze(1)
    losses = near + compactness * (1 - cosine) ** 2
    return losses.new_zeros(targets.labels.shape).index_put(at, losses * targets.weight[at])
