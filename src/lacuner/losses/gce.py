"""Generalised cross entropy: between the two losses that believe every label and that believe none very much."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from lacuner.models.types import EntityTypeScores, Targets


def gce(logs: Tensor, q: float) -> Tensor:
    """`(1 - p^q) / q` of log probabilities `log p`; with `q = 0` it is cross entropy, with `q = 1` it is `1 - p`.

    What it does: a label that the model thinks impossible has a loss of `1 / q` and a gradient of nearly nothing, where
        cross entropy would pull without end.
    Assumes: that labels which the model cannot be brought to believe are wrong.
    Departs from the authors: computed from logarithms, so that no small `q` loses digits.
    Reference: Zhang and Sabuncu (2018), "Generalized cross entropy loss for training deep neural networks with noisy
        labels".
    """
    return -logs if q == 0 else -torch.expm1(q * logs) / q


def entity_type_gce_loss(scores: EntityTypeScores, targets: Targets, q: float) -> tuple[Tensor, Tensor]:
    """The loss of the entity head at all known words, and of the type head at the labelled ones: unreduced.

    What it does: generalised cross entropy of both heads. A word's weight counts at the entity head if it is O, at the
        type head if it is labelled: that a labelled word is an entity is never doubted.
    Assumes: that weak labels are wrong in their type, or missing, but seldom where there is no entity at all.
    Departs from the authors: in nothing; what their code does with weights differs from their formula, and this is the
        code's way.
    Reference: Meng et al. (2021), "Distantly-supervised named entity recognition with noise-robust learning and
        language model augmented self-training" (RoSTER).
    """
    at = (targets.known & scores.mask).nonzero(as_tuple=True)
    labels, weight = targets.labels[at], targets.weight[at]
    labelled = labels > 0
    inside = functional.logsigmoid(torch.where(labelled, scores.entity[at], -scores.entity[at]))
    entity = gce(inside, q) * torch.where(labelled, torch.ones_like(weight), weight)
    here = tuple(index[labelled] for index in at)
    logs = scores.types[here].log_softmax(dim=-1).gather(1, labels[labelled].unsqueeze(1) - 1).squeeze(1)
    empty = entity.new_zeros(targets.labels.shape)
    return empty.index_put(at, entity), empty.index_put(here, gce(logs, q) * weight[labelled])
