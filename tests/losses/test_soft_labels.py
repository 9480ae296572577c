"""Soft labels of entity and type against NumPy, the gradient, and when they are zero."""

import numpy as np
import torch

from lacuner.losses.soft_labels import entity_type_soft_loss
from lacuner.models.heads.entity_type import joint_log_probs
from lacuner.models.types import EntityTypeScores, Targets


def example(seed=0):
    torch.manual_seed(seed)
    entity = torch.randn(2, 5, dtype=torch.float64, requires_grad=True)
    types = torch.randn(2, 5, 3, dtype=torch.float64, requires_grad=True)
    mask, known = torch.rand(2, 5) < 0.8, torch.rand(2, 5) < 0.8
    mask[0, :2], known[0, :2] = torch.tensor([True, False]), torch.tensor([False, True])  # unknown, and padding
    probs = torch.randn(2, 5, 4, dtype=torch.float64).softmax(-1)
    weight = torch.rand(2, 5, dtype=torch.float64)
    return entity, types, mask, Targets(torch.zeros(2, 5, dtype=torch.long), known, weight, probs)


def losses(entity, types, mask, targets):
    return entity_type_soft_loss(EntityTypeScores(entity, types, joint_log_probs(entity, types), mask), targets)


def test_equals_numpy():
    entity, types, mask, targets = example()
    first, second = (loss.detach().numpy() for loss in losses(entity, types, mask, targets))
    e, t, y = (tensor.detach().numpy() for tensor in (entity, types, targets.probs))
    counted = (targets.known & mask).numpy()
    for at in np.ndindex(counted.shape):
        if not counted[at]:
            assert first[at] == second[at] == 0
            continue
        s, p = 1 / (1 + np.exp(-e[at])), np.exp(t[at]) / np.exp(t[at]).sum()
        inside, wanted = 1 - y[at][0], y[at][1:] / y[at][1:].sum()
        np.testing.assert_allclose(first[at], -inside * np.log(s) - (1 - inside) * np.log(1 - s))
        np.testing.assert_allclose(second[at], targets.weight[at].item() * (wanted * np.log(wanted / p)).sum())


def test_gradient():
    entity, types, mask, targets = example()
    assert torch.autograd.gradcheck(lambda x, y: losses(x, y, mask, targets), (entity, types))


def test_unknown_and_padding_have_no_gradient_even_where_scores_are_not_numbers():
    entity, types, mask, targets = example()
    counted = targets.known & mask
    x = entity.detach().masked_fill(~counted, float("nan")).requires_grad_()
    y = types.detach().masked_fill(~counted.unsqueeze(-1), float("nan")).requires_grad_()
    sum(loss.sum() for loss in losses(x, y, mask, targets)).backward()
    assert (x.grad[~counted] == 0).all() and (y.grad[~counted] == 0).all() and not y.grad.isnan().any()


def test_types_that_agree_cost_nothing_even_where_the_teacher_rules_one_out():
    types = torch.tensor([[[5.0, 3.0, -1e9]]], dtype=torch.float64)
    mask = torch.ones(1, 1, dtype=torch.bool)
    probs = torch.cat([torch.tensor([[[0.5]]]), types.softmax(-1) * 0.5], dim=-1)
    targets = Targets(torch.zeros(1, 1, dtype=torch.long), mask, torch.ones(1, 1), probs)
    _, loss = losses(torch.zeros(1, 1, dtype=torch.float64), types, mask, targets)
    assert abs(float(loss)) < 1e-12
