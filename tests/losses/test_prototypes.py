"""Optimal transport and the prototype loss, against NumPy; marginals; gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lacuner.losses.optimal_transport import assign_prototypes, sinkhorn
from lacuner.losses.prototypes import prototype_loss
from lacuner.models.types import PrototypeScores, Targets


def reference_plan(similarities: np.ndarray, shares: np.ndarray, epsilon: float, steps: int) -> np.ndarray:
    """Sinkhorn's algorithm with plain scaling vectors."""
    kernel = np.exp(similarities / epsilon)
    rows, u = np.full(len(kernel), 1 / len(kernel)), np.ones(len(kernel))
    for _ in range(steps):
        v = shares / (kernel.T @ u)
        u = rows / (kernel @ v)
    return np.asarray(u[:, None] * kernel * v)


def cosines(words: int, prototypes: int) -> torch.Tensor:
    return torch.rand(words, prototypes, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 2 - 1


def test_the_plan_equals_a_reference_and_has_the_marginals() -> None:
    similarities, shares = cosines(40, 6), torch.tensor([0.3, 0.3, 0.3, 0.05, 0.05, 0.0]).double()
    plan = sinkhorn(similarities, shares, epsilon=0.2, steps=200)
    assert np.allclose(plan.numpy(), reference_plan(similarities.numpy(), shares.numpy(), 0.2, 200), atol=1e-9)
    assert torch.allclose(plan.sum(dim=1), torch.full((40,), 1 / 40).double())
    assert torch.allclose(plan.sum(dim=0), shares, atol=1e-6)


def test_a_small_epsilon_neither_overflows_nor_misses_the_marginals() -> None:
    plan = sinkhorn(cosines(300, 15).float(), torch.full((15,), 1 / 15))
    assert plan.isfinite().all() and torch.allclose(plan.sum(dim=1), torch.full((300,), 1 / 300), rtol=1e-3)
    assert (plan.sum(dim=0) - 1 / 15).abs().max() < 0.01


def test_labeled_words_stay_in_their_class_evenly_and_unlabeled_ones_leave_o_at_the_given_share() -> None:
    similarities = cosines(600, 9).float()
    labels = torch.arange(600) % 3
    labels[300:] = 0
    certain = labels > 0
    certain[:30] = True  # ruled out, some of them
    assigned = assign_prototypes(similarities, labels, certain, prototypes=3, missing=0.1)
    assert torch.equal((assigned // 3)[certain], labels[certain])
    counts = torch.bincount(assigned[labels == 1], minlength=9)[3:6]
    assert counts.min() > 0.7 * counts.max(), "the prototypes of a class share its words"
    share = float((assigned[~certain] >= 3).float().mean())
    assert 0.07 < share < 0.13
    everything = assign_prototypes(similarities, labels, certain, prototypes=3, missing=0.0)
    assert (everything[~certain] < 3).all()


def test_batches_without_one_kind_of_words() -> None:
    similarities = cosines(5, 4).float()
    ones, none = torch.ones(5).long(), torch.zeros(5, dtype=torch.bool)
    assert (assign_prototypes(similarities, ones, ~none, 2, 0.1) >= 2).all()
    assert len(assign_prototypes(similarities, 0 * ones, none, 2, 0.1)) == 5
    assert len(assign_prototypes(similarities[:0], ones[:0], none[:0], 2, 0.1)) == 0


def batch() -> tuple[torch.Tensor, Targets, torch.Tensor]:
    generator = torch.Generator().manual_seed(2)
    similarities = (torch.rand(2, 4, 6, generator=generator, dtype=torch.float64) * 2 - 1).requires_grad_()
    known = torch.tensor([[True, False, True, True], [True, True, False, False]])
    labels = torch.randint(0, 2, (2, 4), generator=generator)
    weight = torch.rand(2, 4, generator=generator).double()
    return similarities, Targets(labels, known, weight), torch.randint(0, 6, (2, 4), generator=generator)


def loss_of(similarities: torch.Tensor, targets: Targets, assigned: torch.Tensor) -> torch.Tensor:
    mask = torch.ones(2, 4, dtype=torch.bool)
    return prototype_loss(PrototypeScores(similarities, similarities, similarities, mask), targets, assigned, 3.0, 0.5)


def test_the_loss_equals_a_reference() -> None:
    similarities, targets, assigned = batch()
    losses, values = loss_of(similarities, targets, assigned).detach().numpy(), similarities.detach().numpy()
    for at in np.ndindex(2, 4):
        cosine = values[at][int(assigned[at])]
        near = np.log(np.exp(3 * values[at]).sum()) - 3 * cosine
        expected = float(targets.weight[at]) * (near + 0.5 * (1 - cosine) ** 2) if bool(targets.known[at]) else 0.0
        assert losses[at] == pytest.approx(expected)


def test_gradient() -> None:
    similarities, targets, assigned = batch()
    assert torch.autograd.gradcheck(lambda values: loss_of(values, targets, assigned), (similarities,))
    loss_of(similarities, targets, assigned).sum().backward()
    assert similarities.grad is not None
    assert (similarities.grad[~targets.known] == 0).all() and (similarities.grad[targets.known] != 0).all()


def test_soft_labels_are_refused() -> None:
    similarities, targets, assigned = batch()
    soft = Targets(targets.labels, targets.known, targets.weight, torch.ones(2, 4, 2))
    with pytest.raises(ValueError, match="soft labels"):
        loss_of(similarities, soft, assigned)
