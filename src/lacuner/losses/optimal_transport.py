"""Optimal transport with entropy: which prototype each word belongs to, if each prototype must get its share."""

import torch
from torch import Tensor

CLOSED = 1e4
"""Cost of a prototype of another class."""


def sinkhorn(similarities: Tensor, shares: Tensor, epsilon: float = 0.05, steps: int = 50) -> Tensor:
    """The plan that carries every word to prototypes, each of which receives its share: `[words, prototypes]`.

    What it does: Sinkhorn's algorithm in the log domain, with the cost `-similarities`. Rows of the plan sum to
        `1 / words`, columns to `shares` `[prototypes]`, which sum to 1. A share of 0 closes a prototype. The last step
        fits the rows, so that they are exact.
    Assumes: nothing.
    Departs from the authors: nothing to depart from.
    Reference: Cuturi (2013), "Sinkhorn distances: lightspeed computation of optimal transport".

    >>> plan = sinkhorn(torch.tensor([[1.0, 0.9], [0.9, 0.0]]), torch.tensor([0.5, 0.5]))
    >>> plan.argmax(dim=1).tolist()  # both prefer the first prototype, but it must not have both
    [1, 0]
    """
    words = similarities.shape[0]
    kernel, column = similarities / epsilon, shares.log()
    row_logs, column_logs = similarities.new_zeros(words), torch.zeros_like(shares)
    for _ in range(steps):
        column_logs = column - (kernel + row_logs.unsqueeze(1)).logsumexp(dim=0)
        row_logs = -(kernel + column_logs).logsumexp(dim=1)
    return (kernel + column_logs + row_logs.unsqueeze(1)).exp() / max(words, 1)


def assign_prototypes(
    similarities: Tensor, labels: Tensor, certain: Tensor, prototypes: int, missing: float, epsilon: float = 0.05
) -> Tensor:
    """The number of the prototype that each word is assigned to `[words]`: denoised optimal transport.

    What it does: words with a certain class are carried to the prototypes of their class, each of which gets as many.
        The other words, which are unlabeled, are carried to all prototypes: those of O share `1 - missing` of them,
        those of the types share `missing`. A word is assigned to the prototype that receives most of it. So an
        unlabeled word that is carried to the prototype of a type is probably part of an unlabeled entity.
    Assumes: about a share `missing` of the batch's unlabeled words belongs to entities.
    Departs from the authors: the plan for the labeled words is computed for all types at once, which is the same.
    Reference: Wu et al. (2023), "MProto: multi-prototype network with denoised optimal transport for distantly
        supervised named entity recognition".

    Arguments: `similarities` `[words, classes * prototypes]`, class by class, O first; `labels`, `certain` `[words]`.

    >>> near = torch.tensor([[0.9, 0.0], [0.8, 0.1], [0.1, 0.8], [0.5, 0.6]])  # one prototype for O, one for a type
    >>> labels = torch.tensor([0, 0, 0, 1])
    >>> assign_prototypes(near, labels, labels > 0, prototypes=1, missing=0.34).tolist()
    [0, 0, 1, 1]
    """
    columns = similarities.shape[1]
    class_of = torch.arange(columns, device=similarities.device) // prototypes
    assigned = torch.zeros_like(labels)
    if certain.any():
        own = labels[certain].unsqueeze(1) == class_of
        shares = own.sum(dim=0) / (prototypes * len(own))
        plan = sinkhorn(similarities[certain].masked_fill(~own, -CLOSED), shares.to(similarities.dtype), epsilon)
        assigned[certain] = plan.masked_fill(~own, -1).argmax(dim=1)
    if not certain.all():
        shares = similarities.new_full((columns,), missing / max(columns - prototypes, 1))
        shares[:prototypes] = (1 - missing) / prototypes
        assigned[~certain] = sinkhorn(similarities[~certain], shares, epsilon).argmax(dim=1)
    return assigned
