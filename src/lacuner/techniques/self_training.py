"""Self-training: pseudo-labels from a model's own, sharpened predictions."""

from dataclasses import replace

import torch
from torch import Tensor

from lacuner.models.types import Targets
from lacuner.training.dataset import cut_range


def sharpen(probs: Tensor, counted: Tensor) -> Tensor:
    """Sharpen predicted probabilities into soft pseudo-labels without letting frequent classes absorb rare ones.

    `y_ij = (f_ij^2 / g_j) / sum_j' (f_ij'^2 / g_j')` with `g_j = sum_i f_ij` over the counted positions. `probs` is
    `[positions, classes]`; `counted` is a mask `[positions]`. For parts of a corpus: `class_mass`, `sharpen_by`.

    >>> import torch
    >>> sharpen(torch.tensor([[0.8, 0.2], [0.6, 0.4]]), torch.tensor([True, True])).round(decimals=2)
    tensor([[0.8700, 0.1300],
            [0.4900, 0.5100]])
    """
    return sharpen_by(class_mass(probs, counted), probs)


def class_mass(probs: Tensor, counted: Tensor) -> Tensor:
    """The sum of the probabilities of each class over the counted positions, `[classes]`: the `g` of `sharpen`.

    >>> import torch
    >>> class_mass(torch.tensor([[0.75, 0.25], [0.5, 0.5]]), torch.tensor([True, False]))
    tensor([0.7500, 0.2500])
    """
    return probs[counted].sum(dim=0)


def sharpen_by(mass: Tensor, probs: Tensor) -> Tensor:
    """Sharpened probabilities `[..., classes]` of some positions, given the mass of each class in the corpus.

    >>> import torch
    >>> sharpen_by(torch.ones(2), torch.tensor([0.8, 0.2])).round(decimals=2)
    tensor([0.9400, 0.0600])
    """
    squared = probs.square() / mass.clamp(min=1e-9)
    return squared / squared.sum(dim=-1, keepdim=True).clamp(min=1e-30)


def type_mass(entity_and_types: Tensor, counted: Tensor) -> Tensor:
    """The sum of the probabilities of each type over the counted positions of a corpus, `[types]`; read part by part.

    `entity_and_types` `[words, ..., 1 + types]` has the entity probability, then those of the types.
    """
    mass = torch.zeros(entity_and_types.shape[-1] - 1)
    for words in cut_range(len(counted)):
        mass = mass + class_mass(entity_and_types[words][..., 1:], counted[words])
    return mass


def sharpen_types(mass: Tensor, targets: Targets) -> Targets:
    """Targets with soft labels of O and the types, from `probs` with the entity probability, then those of the types.

    The types are sharpened, `mass` is what `type_mass` returned.
    """
    assert targets.probs is not None
    entity, types = targets.probs[..., :1], sharpen_by(mass.to(targets.probs.device), targets.probs[..., 1:])
    return replace(targets, probs=torch.cat([1 - entity, entity * types], dim=-1))
