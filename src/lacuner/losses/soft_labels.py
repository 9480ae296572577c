"""Soft labels for entity and type: what one model thinks, another learns."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from lacuner.models.types import EntityTypeScores, Targets


def entity_type_soft_loss(scores: EntityTypeScores, targets: Targets) -> tuple[Tensor, Tensor]:
    """The loss of the entity head and of the type head against `targets.probs` (O, then the types): unreduced.

    What it does: binary cross entropy of the entity head against `1 - P(O)`; KL of the type head from the rest, made to
        sum to 1. A word's weight counts at the type head alone.
    Assumes: that the probabilities are worth learning, not only their argmax.
    Departs from the authors: in nothing; see the recipe for which words have a weight.
    Reference: Meng et al. (2021), "Distantly-supervised named entity recognition with noise-robust learning and
        language model augmented self-training" (RoSTER).
    """
    assert targets.probs is not None
    at = (targets.known & scores.mask).nonzero(as_tuple=True)
    probs = targets.probs[at]
    entity = functional.binary_cross_entropy_with_logits(scores.entity[at], 1 - probs[:, 0], reduction="none")
    wanted = probs[:, 1:] / probs[:, 1:].sum(dim=-1, keepdim=True).clamp(min=1e-9)
    types = (torch.special.xlogy(wanted, wanted) - wanted * scores.types[at].log_softmax(dim=-1)).sum(dim=-1)
    empty = entity.new_zeros(targets.labels.shape)
    return empty.index_put(at, entity), empty.index_put(at, types * targets.weight[at])
