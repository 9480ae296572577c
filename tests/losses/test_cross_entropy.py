"""Cross-entropy against NumPy, its gradient against differences, and silence where nothing is known."""

import numpy as np
import pytest
import torch

from lacuner.losses.cross_entropy import cross_entropy
from lacuner.models.types import SpanScores, Targets, TokenScores

SHAPES = {"token": (TokenScores, (3, 5)), "span": (SpanScores, (2, 4, 3))}


def example(kind, soft, seed=0):
    make, shape = SHAPES[kind]
    torch.manual_seed(seed)
    logits = torch.randn(*shape, 4, dtype=torch.float64, requires_grad=True)
    mask, known = torch.rand(shape) < 0.8, torch.rand(shape) < 0.6
    probs = torch.randn(*shape, 4, dtype=torch.float64).softmax(-1) if soft else None
    targets = Targets(torch.randint(0, 4, shape), known, torch.rand(shape, dtype=torch.float64), probs)
    return make, logits, mask, targets


def reference(logits, mask, targets):
    shifted = logits - logits.max(-1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    aim = np.eye(logits.shape[-1])[targets.labels.numpy()] if targets.probs is None else targets.probs.numpy()
    losses = -(aim * logs).sum(-1) * targets.weight.numpy()
    return np.where(targets.known.numpy() & mask.numpy(), losses, 0)


@pytest.mark.parametrize("kind", sorted(SHAPES))
@pytest.mark.parametrize("soft", [False, True])
def test_equals_numpy(kind, soft):
    make, logits, mask, targets = example(kind, soft)
    losses = cross_entropy(make(logits, mask), targets)
    assert losses.shape == targets.labels.shape
    np.testing.assert_allclose(losses.detach().numpy(), reference(logits.detach().numpy(), mask, targets), atol=1e-12)


@pytest.mark.parametrize("kind", sorted(SHAPES))
@pytest.mark.parametrize("soft", [False, True])
def test_gradient(kind, soft):
    make, logits, mask, targets = example(kind, soft)
    assert torch.autograd.gradcheck(lambda x: cross_entropy(make(x, mask), targets), (logits,))


@pytest.mark.parametrize("kind", sorted(SHAPES))
def test_unknown_and_padding_have_no_gradient_even_where_scores_are_not_numbers(kind):
    make, logits, mask, targets = example(kind, False)
    counted = targets.known & mask
    assert 0 < counted.sum() < counted.numel()
    values = logits.detach().masked_fill(~counted.unsqueeze(-1), float("nan")).requires_grad_()
    cross_entropy(make(values, mask), targets).sum().backward()
    assert (values.grad[~counted] == 0).all()
    assert (values.grad[counted] != 0).any(-1).all()


def test_nothing_known_is_a_loss_of_zero_that_can_be_differentiated():
    make, logits, mask, targets = example("token", False)
    nothing = Targets(targets.labels, torch.zeros_like(targets.known), targets.weight)
    loss = cross_entropy(make(logits, mask), nothing).sum()
    loss.backward()
    assert loss == 0 and (logits.grad == 0).all()
