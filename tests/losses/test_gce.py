"""Generalised cross-entropy against NumPy, its limits, its gradient, its weights."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lacuner.losses.gce import entity_type_gce_loss, gce
from lacuner.models.heads.entity_type import joint_log_probs
from lacuner.models.types import EntityTypeScores, Targets


def example(seed=0):
    torch.manual_seed(seed)
    entity = torch.randn(3, 6, dtype=torch.float64, requires_grad=True)
    types = torch.randn(3, 6, 3, dtype=torch.float64, requires_grad=True)
    mask, known = torch.rand(3, 6) < 0.8, torch.rand(3, 6) < 0.8
    weight = (torch.rand(3, 6) < 0.6).double() * 1.5
    return entity, types, mask, Targets(torch.randint(0, 4, (3, 6)), known, weight)


def losses(entity, types, mask, targets, q=0.7):
    return entity_type_gce_loss(EntityTypeScores(entity, types, joint_log_probs(entity, types), mask), targets, q)


def reference(entity, types, counted, labels, weight, q):
    first, second = np.zeros(labels.shape), np.zeros(labels.shape)
    for at in zip(*np.nonzero(counted), strict=True):
        inside = 1 / (1 + np.exp(-entity[at]))
        p = inside if labels[at] else 1 - inside
        first[at] = (1 - p**q) / q * (1 if labels[at] else weight[at])
        if labels[at]:
            t = np.exp(types[at]) / np.exp(types[at]).sum()
            second[at] = (1 - t[labels[at] - 1] ** q) / q * weight[at]
    return first, second


@pytest.mark.parametrize("q", [0.1, 0.7, 1.0])
def test_equals_numpy(q):
    entity, types, mask, targets = example()
    got = losses(entity, types, mask, targets, q)
    counted = (targets.known & mask).numpy()
    arrays = [tensor.detach().numpy() for tensor in (entity, types)]
    want = reference(*arrays, counted, targets.labels.numpy(), targets.weight.numpy(), q)
    for mine, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), theirs, atol=1e-12)


def test_the_limits():
    p = torch.tensor([1e-6, 0.01, 0.3, 0.9, 1.0], dtype=torch.float64)
    torch.testing.assert_close(gce(p.log(), 0), -p.log(), atol=0, rtol=0)
    torch.testing.assert_close(gce(p.log(), 1e-9), -p.log(), atol=1e-6, rtol=0)
    torch.testing.assert_close(gce(p.log(), 1), 1 - p, atol=1e-12, rtol=0)
    torch.testing.assert_close(gce(torch.tensor(-1e4), 0.5), torch.tensor(2.0))


def test_a_hopeless_label_pulls_less_than_in_cross_entropy():
    pulls = []
    for q in (0.0, 0.7):
        logit = torch.tensor(-8.0, requires_grad=True)
        gce(torch.nn.functional.logsigmoid(logit), q).backward()
        pulls.append(-float(logit.grad))
    assert pulls[0] > 0.99 and 0 < pulls[1] < 0.01


@pytest.mark.parametrize("q", [0.0, 0.7])
def test_gradient(q):
    entity, types, mask, targets = example()
    assert torch.autograd.gradcheck(lambda x, y: losses(x, y, mask, targets, q), (entity, types))


def test_unknown_and_padding_have_no_gradient_even_where_scores_are_not_numbers():
    entity, types, mask, targets = example()
    counted = targets.known & mask
    x = entity.detach().masked_fill(~counted, float("nan")).requires_grad_()
    y = types.detach().masked_fill(~(counted & (targets.labels > 0)).unsqueeze(-1), float("nan")).requires_grad_()
    sum(loss.sum() for loss in losses(x, y, mask, targets)).backward()
    assert (x.grad[~counted] == 0).all() and not x.grad.isnan().any() and not y.grad.isnan().any()


def test_weights_remove_gaps_from_one_head_and_wrong_types_from_the_other():
    entity, types, mask, targets = example()
    gone = Targets(targets.labels, targets.known, torch.zeros(3, 6, dtype=torch.float64))
    first, second = losses(entity, types, mask, gone)
    labeled = targets.known & mask & (targets.labels > 0)
    assert labeled.any() and (first[labeled] > 0).all() and (first[~labeled] == 0).all() and (second == 0).all()


def test_no_labeled_word_is_no_special_case():
    entity, types, mask, targets = example()
    first, second = losses(entity, types, mask, Targets(targets.labels * 0, targets.known, targets.weight))
    assert first.sum() > 0 and (second == 0).all()


def test_soft_labels_are_refused():
    entity, types, mask, targets = example()
    with pytest.raises(ValueError, match="soft"):
        losses(entity, types, mask, replace(targets, probs=torch.zeros(3, 6, 4)))
