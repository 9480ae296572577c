"""NRCES against NumPy, its gradient against differences, its limits, and silence where nothing is known."""

import numpy as np
import pytest
import torch

from lacuner.losses.cross_entropy import cross_entropy
from lacuner.losses.nrces import nrces_loss
from lacuner.models.types import SpanScores, Targets

SHAPE = (2, 4, 3)
SIGMOIDS = ["bounded", "printed", "margin"]


def example(seed=0):
    torch.manual_seed(seed)
    logits = torch.randn(*SHAPE, 4, dtype=torch.float64, requires_grad=True)
    mask, known = torch.rand(SHAPE) < 0.8, torch.rand(SHAPE) < 0.6
    labels = torch.randint(0, 4, SHAPE) * (torch.rand(SHAPE) < 0.5)
    return logits, mask, Targets(labels, known, torch.rand(SHAPE, dtype=torch.float64))


def sigma(x):
    return 1 / (1 + np.exp(-x))


def reference(logits, mask, targets, beta, sigmoid, positives, negatives):
    losses = np.zeros(SHAPE)
    for at in np.ndindex(SHAPE):
        if not (targets.known[at] and mask[at]):
            continue
        z, label = logits[at], int(targets.labels[at])
        ce = -z[label] + np.log(np.exp(z).sum())
        others = np.log(sum(np.exp(z[c]) for c in range(4) if c != label))
        s = {"bounded": 1 - sigma(z[label]), "printed": sigma(z[label]), "margin": 1 - sigma(z[label] - others)}[
            sigmoid
        ]
        faded = beta * ce + (1 - beta) * s
        losses[at] = {"ce": ce, "faded": faded, "both": ce + faded}[positives if label else negatives]
        losses[at] *= float(targets.weight[at])
    return losses


@pytest.mark.parametrize("sigmoid", SIGMOIDS)
@pytest.mark.parametrize(
    ("positives", "negatives"), [("ce", "faded"), ("faded", "faded"), ("both", "ce"), ("ce", "both")]
)
def test_equals_numpy(sigmoid, positives, negatives):
    logits, mask, targets = example()
    losses = nrces_loss(SpanScores(logits, mask), targets, 0.3, sigmoid, positives, negatives)
    expected = reference(logits.detach().numpy(), mask, targets, 0.3, sigmoid, positives, negatives)
    np.testing.assert_allclose(losses.detach().numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("sigmoid", SIGMOIDS)
def test_gradient(sigmoid):
    logits, mask, targets = example()
    assert torch.autograd.gradcheck(lambda x: nrces_loss(SpanScores(x, mask), targets, 0.3, sigmoid), (logits,))


def test_with_beta_one_it_is_cross_entropy():
    logits, mask, targets = example()
    scores = SpanScores(logits, mask)
    assert torch.equal(nrces_loss(scores, targets, 1.0), cross_entropy(scores, targets))


@pytest.mark.parametrize("sigmoid", ["bounded", "margin"])
def test_a_sure_entity_is_pushed_no_more(sigmoid):
    """An unlabeled span that looks like an entity: cross-entropy keeps pushing it to O, the bounded loss does not."""
    sizes = []
    for beta in (1.0, 0.0):
        logits = torch.tensor([-12.0, 12.0]).view(1, 1, 1, 2).requires_grad_()
        one = torch.ones(1, 1, 1)
        targets = Targets(torch.zeros(1, 1, 1, dtype=torch.long), one.bool(), one)
        nrces_loss(SpanScores(logits, one.bool()), targets, beta, sigmoid).sum().backward()
        assert logits.grad[..., 0] <= 0, "O is pushed up, if at all"
        sizes.append(float(logits.grad.abs().max()))
    assert sizes[0] > 0.9 and sizes[1] < 1e-4


def test_unknown_and_padding_have_no_gradient_even_where_scores_are_not_numbers():
    logits, mask, targets = example()
    counted = targets.known & mask
    values = logits.detach().masked_fill(~counted.unsqueeze(-1), float("nan")).requires_grad_()
    nrces_loss(SpanScores(values, mask), targets, 0.5).sum().backward()
    assert (values.grad[~counted] == 0).all()
    assert (values.grad[counted] != 0).any(-1).all()
