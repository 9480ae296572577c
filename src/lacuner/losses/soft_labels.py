"""Soft labels for the entity and type classifiers: knowledge distillation and self-training."""

import torch
from torch import Tensor
from torch.nn import functional

from lacuner.models.types import EntityTypeScores, Targets


def entity_type_soft_loss(scores: EntityTypeScores, targets: Targets) -> tuple[Tensor, Tensor]:
    """Losses of the entity and of the type classifier against `targets.probs` (O, then the types), each unreduced.

    What it does: binary cross-entropy of the entity classifier against `1 - P(O)`; KL divergence of the type classifier
        from the types' probabilities, normalised to sum to 1. A word's weight counts in the type loss only.
    Assumes: the teacher's probabilities carry more information than its argmax.
    Departs from the authors: in Eq. 6 the type part has the weight `1 - P(O)` of the teacher; their code has none. Here
        the recipe decides, by `targets.weight`.
    Reference: Meng et al. (2021), "Distantly-supervised named entity recognition with noise-robust learning and
        language model augmented self-training" (RoSTER).

    >>> mask = torch.ones(1, 1, dtype=torch.bool)
    >>> scores = EntityTypeScores(torch.zeros(1, 1), torch.zeros(1, 1, 2), torch.zeros(1, 1, 3), mask)
    >>> probs = torch.tensor([[[0.5, 0.25, 0.25]]])  # what the model predicts, too: the KL divergence is 0
    >>> entity_type_soft_loss(scores, Targets(mask.long(), mask, torch.ones(1, 1), probs))
    (tensor([[0.6931]]), tensor([[0.]]))
    """
    assert targets.probs is not None
    at = (targets.known & scores.mask).nonzero(as_tuple=True)
    probs = targets.probs[at]
    entity = functional.binary_cross_entropy_with_logits(scores.entity[at], 1 - probs[:, 0], reduction="none")
    teacher = probs[:, 1:] / probs[:, 1:].sum(dim=-1, keepdim=True).clamp(min=1e-9)
    types = (torch.special.xlogy(teacher, teacher) - teacher * scores.types[at].log_softmax(dim=-1)).sum(dim=-1)
    empty = entity.new_zeros(targets.labels.shape)
    return empty.index_put(at, entity), empty.index_put(at, types * targets.weight[at])
