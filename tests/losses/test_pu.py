"""The risk of positive and unlabeled words against NumPy, its gradient, and what it is in expectation."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lacuner.losses.pu import pu_risk
from lacuner.models.types import Targets, TokenScores


def example(seed=0):
    torch.manual_seed(seed)
    logits = torch.randn(3, 6, 4, dtype=torch.float64, requires_grad=True)
    mask, known = torch.rand(3, 6) < 0.8, torch.rand(3, 6) < 0.7
    targets = Targets(torch.randint(0, 4, (3, 6)), known, torch.ones(3, 6, dtype=torch.float64))
    return logits, mask, targets, torch.tensor([1.5, 3.0, 1.0], dtype=torch.float64)


def reference(logits, counted, labels, ratio, positive, beta, base="mae"):
    probs = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    words = np.argwhere(counted)
    risks = []
    for c in (1, 2, 3):
        right, wrong = (1 - probs, probs) if base == "mae" else (-np.log(probs), -np.log(1 - probs))
        missed = sum(right[b, t, c] for b, t in words if labels[b, t] == c) / len(words)
        as_negative = sum(wrong[b, t, c] for b, t in words if labels[b, t] == c) / len(words)
        unlabeled = sum(wrong[b, t, c] for b, t in words) / len(words)
        risks.append(positive * ratio[c - 1] * missed + max(beta, unlabeled - ratio[c - 1] * as_negative))
    return risks


@pytest.mark.parametrize("base", ["mae", "ce"])
@pytest.mark.parametrize("beta", [-9.0, 0.0, 0.1])
def test_equals_numpy(beta, base):
    logits, mask, targets, ratio = example()
    got = pu_risk(TokenScores(logits, mask), targets, ratio, 2.0, beta, base)
    counted = (targets.known & mask).numpy()
    want = reference(logits.detach().numpy(), counted, targets.labels.numpy(), ratio.numpy(), 2.0, beta, base)
    np.testing.assert_allclose(got.detach().numpy(), want, atol=1e-12)


def test_the_risk_of_unlabeled_words_is_never_below_beta():
    _, mask, targets, _ = example()
    sure = torch.nn.functional.one_hot(targets.labels, 4) * 50.0
    risk = pu_risk(TokenScores(sure, mask), targets, torch.full((3,), 5.0), 1.0, 0.0)
    assert (risk >= 0).all() and (pu_risk(TokenScores(sure, mask), targets, torch.full((3,), 5.0), 1.0, -9.0) < 0).all()


@pytest.mark.parametrize("base", ["mae", "ce"])
def test_gradient(base):
    logits, mask, targets, ratio = example()
    assert torch.autograd.gradcheck(lambda x: pu_risk(TokenScores(x, mask), targets, ratio, 2.0, -9.0, base), (logits,))


def test_a_labeled_word_that_is_surely_o_is_pulled_back_by_cross_entropy_alone():
    """Why `mae` can end without entities: after the first steps nearly all words are surely O, and stay so."""
    pulls = []
    for base in ("mae", "ce"):
        logits = torch.tensor([[[12.0, -12.0]]]).requires_grad_()
        one = torch.ones(1, 1, dtype=torch.bool)
        targets = Targets(torch.ones(1, 1, dtype=torch.long), one, torch.ones(1, 1))
        pu_risk(TokenScores(logits, one), targets, torch.ones(1), 10.0, 0.0, base).sum().backward()
        pulls.append(-float(logits.grad[0, 0, 1]))
    assert pulls[0] < 1e-8 and pulls[1] > 1


def test_cross_entropy_is_finite_where_probabilities_round_to_one():
    logits = torch.tensor([[[0.0, 500.0], [500.0, 0.0]]]).requires_grad_()
    known = torch.ones(1, 2, dtype=torch.bool)
    targets = Targets(torch.zeros(1, 2, dtype=torch.long), known, torch.ones(1, 2))
    risk = pu_risk(TokenScores(logits, known), targets, torch.ones(1), 10.0, 0.0, "ce")
    risk.sum().backward()
    assert risk.isfinite().all() and logits.grad.isfinite().all()


@pytest.mark.parametrize("base", ["mae", "ce"])
def test_unknown_and_padding_have_no_gradient_even_where_scores_are_not_numbers(base):
    logits, mask, targets, ratio = example()
    counted = targets.known & mask
    values = logits.detach().masked_fill(~counted.unsqueeze(-1), float("nan")).requires_grad_()
    pu_risk(TokenScores(values, mask), targets, ratio, 1.0, 0.0, base).sum().backward()
    assert (values.grad[~counted] == 0).all() and (values.grad[counted] != 0).any(-1).all()


def test_nothing_known_is_a_loss_of_zero():
    logits, mask, targets, ratio = example()
    nothing = Targets(targets.labels, torch.zeros_like(targets.known), targets.weight)
    assert (pu_risk(TokenScores(logits, mask), nothing, ratio) == 0).all()


def test_with_the_true_ratio_it_is_the_supervised_risk_in_expectation():
    rng, words, kept = np.random.default_rng(0), 200_000, 0.4
    truth = rng.choice(3, words, p=[0.7, 0.2, 0.1])
    logits = torch.from_numpy(rng.normal(size=(1, words, 3)) + 1.5 * np.eye(3)[truth])
    weak = np.where(rng.random(words) < kept, truth, 0)
    everything = torch.ones(1, words, dtype=torch.bool)
    targets = Targets(torch.from_numpy(weak)[None], everything, torch.ones(1, words))
    got = pu_risk(TokenScores(logits, everything), targets, torch.full((2,), 1 / kept), 1.0, -torch.inf)
    probs = logits[0].softmax(-1).numpy()[:, 1:]
    is_class = np.eye(3)[truth][:, 1:]
    supervised = (is_class * (1 - probs) + (1 - is_class) * probs).mean(0)
    np.testing.assert_allclose(got.numpy(), supervised, atol=0.004)
    trusting = pu_risk(TokenScores(logits, everything), targets, torch.ones(2), 1.0, -torch.inf)
    assert (abs(trusting.numpy() - supervised) > 0.01).all()


def test_soft_labels_are_refused():
    logits, mask, targets, ratio = example()
    with pytest.raises(ValueError, match="soft"):
        pu_risk(TokenScores(logits, mask), replace(targets, probs=torch.zeros(3, 6, 4)), ratio)
