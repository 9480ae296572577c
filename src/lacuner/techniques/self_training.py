"""Self-training: pseudo-labels from a model's own, sharpened predictions."""

from torch import Tensor


def sharpen(probs: Tensor, counted: Tensor) -> Tensor:
    """Sharpen predicted probabilities into soft pseudo-labels without letting frequent classes absorb rare ones.

    `y_ij = (f_ij^2 / g_j) / sum_j' (f_ij'^2 / g_j')` with `g_j = sum_i f_ij` over the counted positions. `probs` is
    `[positions, classes]`; `counted` is a mask `[positions]`.

    >>> import torch
    >>> sharpen(torch.tensor([[0.8, 0.2], [0.6, 0.4]]), torch.tensor([True, True])).round(decimals=2)
    tensor([[0.8700, 0.1300],
            [0.4900, 0.5100]])
    """
    mass = probs[counted].sum(dim=0).clamp(min=1e-9)
    squared = probs.square() / mass
    return squared / squared.sum(dim=-1, keepdim=True).clamp(min=1e-30)
