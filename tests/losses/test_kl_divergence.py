"""The Kullback-Leibler divergence against NumPy, its gradient, its limits, and silence where nothing is known."""

import numpy as np
import pytest
import torch

from lacuner.losses.kl_divergence import kl_divergence
from lacuner.models.types import SpanScores, Targets, TokenScores

SHAPES = {"token": (TokenScores, (3, 5)), "span": (SpanScores, (2, 4, 3))}


def example(kind):
    make, shape = SHAPES[kind]
    torch.manual_seed(0)
    logits = torch.randn(*shape, 4, dtype=torch.float64, requires_grad=True)
    mask, known = torch.rand(shape) < 0.8, torch.rand(shape) < 0.6
    probs = torch.randn(*shape, 4, dtype=torch.float64).softmax(-1)
    probs.view(-1, 4)[0] = torch.tensor([1.0, 0, 0, 0])
    known.view(-1)[0] = mask.view(-1)[0] = True
    weight = torch.rand(shape, dtype=torch.float64)
    return make, logits, mask, Targets(torch.zeros(shape, dtype=torch.long), known, weight, probs)


@pytest.mark.parametrize("kind", sorted(SHAPES))
def test_equals_numpy(kind):
    make, logits, mask, targets = example(kind)
    z, y = logits.detach().numpy(), targets.probs.numpy()
    p = np.exp(z) / np.exp(z).sum(-1, keepdims=True)
    terms = np.where(y > 0, y * np.log(np.where(y > 0, y, 1) / p), 0)
    want = terms.sum(-1) * targets.weight.numpy() * (targets.known & mask).numpy()
    np.testing.assert_allclose(kl_divergence(make(logits, mask), targets).detach().numpy(), want, atol=1e-12)


@pytest.mark.parametrize("kind", sorted(SHAPES))
def test_gradient_and_silence(kind):
    make, logits, mask, targets = example(kind)
    assert torch.autograd.gradcheck(lambda x: kl_divergence(make(x, mask), targets), (logits,))
    counted = targets.known & mask
    values = logits.detach().masked_fill(~counted.unsqueeze(-1), float("nan")).requires_grad_()
    kl_divergence(make(values, mask), targets).sum().backward()
    assert (values.grad[~counted] == 0).all() and (values.grad[counted] != 0).any(-1).all()


def test_it_is_zero_where_the_model_agrees_and_positive_elsewhere():
    make, logits, mask, targets = example("token")
    same = Targets(targets.labels, targets.known, targets.weight, logits.detach().softmax(-1))
    torch.testing.assert_close(kl_divergence(make(logits, mask), same), torch.zeros(3, 5, dtype=torch.float64))
    assert (kl_divergence(make(logits, mask), targets)[targets.known & mask] > 0).all()
