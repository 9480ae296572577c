"""NRCES loss: cross-entropy that is annealed into a bounded loss on unlabeled spans."""

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from lacuner.models.types import SpanScores, Targets

Sigmoid = Literal["bounded", "printed", "margin"]
Part = Literal["ce", "faded", "both"]


def nrces_loss(
    scores: SpanScores,
    targets: Targets,
    beta: float,
    sigmoid: Sigmoid = "printed",
    positives: Part = "ce",
    negatives: Part = "faded",
) -> Tensor:
    """One number per span, in the shape of `targets.labels`; 0 where the label is unknown.

    What it does: labeled spans have cross-entropy (`ce`), other known spans `beta * CE + (1 - beta) * S` (`faded`)
        with a bounded S: `sigma(z_O)` (`printed`), `1 - sigma(z_O)` (`bounded`) or `1 - sigma(z_O - logsumexp of the
        types) = 1 - p_O` (`margin`). The last two stop pushing confident entities towards O; `printed` lowers O where
        the model is uncertain.
    Assumes: labels are right; among unlabeled spans the model learns the common cases before the mistakes.
    Departs from the authors: `printed` is their formula; the other two have the sign that their text describes. Without
        dev and at argmax, with most labels missing, `printed` was far better (benchmarks/NOTEBOOK.md). `both` is the
        sum of `ce` and `faded` (an ablation); for a labeled span S uses the logit of its label instead of O's.
    Reference: Kang et al. (2022), "A noise-robust loss for unlabeled entity problem in named entity recognition".

    >>> logits = torch.tensor([[[[0.0, 9.0]]]])  # a span that looks like an entity, and has no label
    >>> mask = torch.ones(1, 1, 1, dtype=torch.bool)
    >>> targets = Targets(torch.zeros(1, 1, 1, dtype=torch.long), mask, torch.ones(1, 1, 1))
    >>> [round(nrces_loss(SpanScores(logits, mask), targets, beta, "margin").item(), 2) for beta in (1.0, 0.0)]
    [9.0, 1.0]
    """
    at = (targets.known & scores.mask).nonzero(as_tuple=True)
    logits, labels = scores.logits[at], targets.labels[at]
    plain = functional.cross_entropy(logits, labels, reduction="none")
    annealed = beta * plain + (1 - beta) * _bounded(logits, labels, plain, sigmoid) if beta < 1 else plain
    parts = {"ce": plain, "faded": annealed, "both": plain + annealed}
    losses = torch.where(labels > 0, parts[positives], parts[negatives])
    return losses.new_zeros(targets.labels.shape).index_put(at, losses * targets.weight[at])


def _bounded(logits: Tensor, labels: Tensor, plain: Tensor, sigmoid: Sigmoid) -> Tensor:
    if sigmoid == "margin":
        return -torch.expm1(-plain)
    own = logits.gather(1, labels.unsqueeze(1)).squeeze(1)
    return torch.sigmoid(-own) if sigmoid == "bounded" else torch.sigmoid(own)
