"""The squared error against NumPy, and its silence where nothing is known."""

import numpy as np
import pytest
import torch

from lacuner.losses.mse import squared_error
from lacuner.models.types import Targets, TokenScores


def example():
    torch.manual_seed(3)
    logits = torch.randn(2, 4, 3, dtype=torch.float64)
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    known = torch.rand(2, 4) < 0.6
    known[0, 0] = True
    weight = torch.rand(2, 4, dtype=torch.float64)
    return TokenScores(logits, mask), Targets(torch.randint(0, 3, (2, 4)), known, weight)


@pytest.mark.parametrize("soft", [False, True])
def test_equals_numpy(soft):
    scores, targets = example()
    probs = torch.randn(2, 4, 3, dtype=torch.float64).softmax(-1)
    if soft:
        targets = Targets(targets.labels, targets.known, targets.weight, probs)
    p = np.exp(scores.logits.numpy())
    p /= p.sum(-1, keepdims=True)
    y = probs.numpy() if soft else np.eye(3)[targets.labels.numpy()]
    want = ((p - y) ** 2).sum(-1) * targets.weight.numpy() * (targets.known & scores.mask).numpy()
    np.testing.assert_allclose(squared_error(scores, targets).numpy(), want, atol=1e-12)


def test_gradient_and_silence():
    scores, targets = example()
    logits = scores.logits.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: squared_error(TokenScores(x, scores.mask), targets), logits)
    squared_error(TokenScores(logits, scores.mask), targets).sum().backward()
    there = targets.known & scores.mask
    assert (logits.grad[~there] == 0).all() and (logits.grad[there] != 0).any()


def test_a_wrong_label_costs_no_more_than_two():
    sure = TokenScores(torch.tensor([[[100.0, -100.0]]]), torch.ones(1, 1, dtype=torch.bool))
    targets = Targets(torch.ones(1, 1, dtype=torch.long), sure.mask, torch.ones(1, 1))
    assert float(squared_error(sure, targets)) == pytest.approx(2.0)
