"""The loss of NRCES: cross entropy that fades into a sigmoid where nobody labelled anything."""

from __future__ import annotations

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
    sigmoid: Sigmoid = "margin",
    positives: Part = "ce",
    negatives: Part = "faded",
) -> Tensor:
    """One number a span, in the shape of `targets.labels`; 0 where nothing is known.

    What it does: labelled spans have cross entropy. The others have `beta * CE + (1 - beta) * S`, where S is bounded:
        `1 - sigma(z_O)` (`bounded`), `1 - sigma(z_O - logsumexp of the types) = 1 - p_O` (`margin`, which does not
        change when a constant is added to all scores), or `sigma(z_O)` (`printed`). A span of which the model is sure
        that it is an entity is pushed no more.
    Assumes: what is labelled is right; of the rest the model learns the common cases before the mistakes.
    Departs from the authors: `printed` is their formula, whose gradient pushes O down where O is the label; the other
        two mean what the text says. `margin` is the default because with `tiny` it lost least where nothing is missing
        and was no worse where most is, on the dev data of one corpus (benchmarks/nrces.toml has them all). For the
        ablations `positives` and `negatives` are `ce`, `faded` or the sum of `both`; for a labelled span S has the
        logit of its label instead of O's.
    Reference: Kang et al. (2022), "A noise-robust loss for unlabeled entity problem in named entity recognition".
    """
    at = (targets.known & scores.mask).nonzero(as_tuple=True)
    logits, labels = scores.logits[at], targets.labels[at]
    plain = functional.cross_entropy(logits, labels, reduction="none")
    faded = beta * plain + (1 - beta) * _bounded(logits, labels, plain, sigmoid) if beta < 1 else plain
    kinds = {"ce": plain, "faded": faded, "both": plain + faded}
    losses = torch.where(labels > 0, kinds[positives], kinds[negatives])
    empty = losses.new_zeros(targets.labels.shape)
    return empty.index_put(at, losses * targets.weight[at])


def _bounded(logits: Tensor, labels: Tensor, plain: Tensor, sigmoid: Sigmoid) -> Tensor:
    if sigmoid == "margin":
        return -torch.expm1(-plain)
    own = logits.gather(1, labels.unsqueeze(1)).squeeze(1)
    return torch.sigmoid(-own) if sigmoid == "bounded" else torch.sigmoid(own)
