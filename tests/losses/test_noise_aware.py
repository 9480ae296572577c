"""The noise-aware loss against NumPy and the probabilities of all sequences, and where it must stay finite."""

import numpy as np
import pytest
import torch

from lacuner.losses.crf import crf_loss
from lacuner.losses.noise_aware import noise_aware_loss, unlikelihood
from lacuner.models.heads.crf import IMPOSSIBLE
from lacuner.models.types import CRFScores, Targets
from tests.losses.test_weighted_crf import LENGTHS, example, paths_of

CONFIDENCE = torch.tensor([0.3, 0.95, 0.6], dtype=torch.float64)


def known_example(scheme="BIO", share=1.0):
    scores, targets = example(scheme, share=share)
    return scores, Targets(targets.labels, targets.known, targets.weight)


def probability(scores, targets, b):
    """Of all sequences of a sentence that agree with what is known."""
    known = [t for t in range(LENGTHS[b]) if targets.known[b, t]]
    fits = [p for path, p in paths_of(scores, b).items() if all(path[t] == int(targets.labels[b, t]) for t in known)]
    return sum(fits)


@pytest.mark.parametrize("scheme", ["IO", "BIO", "BIOES"])
@pytest.mark.parametrize("share", [1.0, 0.5])
def test_equals_brute_force(scheme, share):
    scores, targets = known_example(scheme, share)
    got = noise_aware_loss(scores, targets, CONFIDENCE)
    for b in range(len(LENGTHS)):
        if targets.known[b, : LENGTHS[b]].any():
            p, sure = probability(scores, targets, b), float(CONFIDENCE[b])
            assert float(got[b]) == pytest.approx(-sure * np.log(p) - (1 - sure) * np.log(1 - p), rel=1e-7)
        else:
            assert float(got[b]) == 0


def test_gold_is_untouched_by_unlikelihood(monkeypatch):
    scores, targets = known_example()
    sure = torch.tensor([1.0, 1.0, 0.4], dtype=torch.float64)
    got, plain = noise_aware_loss(scores, targets, sure), crf_loss(scores, targets)
    assert torch.equal(got[:2], plain[:2]) and got[2] != plain[2]
    asked = []
    monkeypatch.setattr("lacuner.losses.noise_aware.unlikelihood", lambda loss: asked.append(len(loss)) or loss)
    noise_aware_loss(scores, targets, sure)
    assert asked == [1]


@pytest.mark.parametrize("loss", [1e-12, 1e-6, 1e-3, 0.5, np.log(2), 0.7, 5.0, 40.0, 700.0])
def test_unlikelihood_keeps_its_digits(loss):
    want = -np.log(-np.expm1(-loss)) if loss < 1 else -np.log1p(-np.exp(-loss))
    assert float(unlikelihood(torch.tensor(loss, dtype=torch.float64))) == pytest.approx(want, rel=1e-3, abs=1e-14)
    single = float(unlikelihood(torch.tensor(loss, dtype=torch.float32)))
    least = loss + np.finfo(np.float32).eps  # what a single number can tell from 0 is what the loss counts as, at least
    want = -np.log(-np.expm1(-least)) if loss < 1 else want
    assert single == pytest.approx(max(want, 0), rel=1e-2, abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_nothing_is_infinite(dtype):
    losses = torch.tensor([-1e-5, 0.0, 1e-30, 1e-8, 1.0, 1e4], dtype=dtype, requires_grad=True)
    found = unlikelihood(losses)
    found.sum().backward()
    assert torch.isfinite(found).all() and torch.isfinite(losses.grad).all()
    assert (found >= 0).all() and (found.diff() <= 0).all(), "the likelier the labels, the more is against them"
    assert losses.grad[0] == 0 and losses.grad[1] < -1e5 and losses.grad[-1] == 0


def test_gradient():
    scores, targets = known_example(share=0.6)
    possible = scores.transitions > IMPOSSIBLE / 2

    def loss(logits, transitions):
        blocked = transitions.masked_fill(~possible, IMPOSSIBLE)
        return noise_aware_loss(CRFScores(logits, blocked, scores.start, scores.end, scores.mask), targets, CONFIDENCE)

    inputs = scores.logits.clone().requires_grad_(), scores.transitions.masked_fill(~possible, 0.0).requires_grad_()
    assert torch.autograd.gradcheck(loss, inputs)
    loss(*inputs).sum().backward()
    assert (inputs[0].grad[~scores.mask] == 0).all() and (inputs[0].grad[scores.mask] != 0).any()


@pytest.mark.parametrize("margin", [12.0, 16.0, 20.0])
def test_a_long_sentence_that_the_model_is_sure_of_has_the_right_gradient(margin):
    """In single precision the sums over 60 words are too coarse for 1 - P, and the gradient would be noise."""
    made = torch.Generator().manual_seed(1)
    labels = torch.randint(0, 5, (1, 60), generator=made)
    logits = torch.rand(1, 60, 5, generator=made) + margin * torch.nn.functional.one_hot(labels, 5)
    targets = Targets(labels, torch.ones(1, 60, dtype=torch.bool), torch.ones(1, 60))
    gradients = []
    for dtype in (torch.float32, torch.float64):
        asked, zero = logits.to(dtype, copy=True).requires_grad_(), torch.zeros(5, dtype=dtype)
        scores = CRFScores(asked, zero.repeat(5, 1), zero, zero, targets.known)
        noise_aware_loss(scores, targets, torch.tensor([0.9])).sum().backward()
        gradients.append(asked.grad.double())
    assert torch.allclose(*gradients, rtol=1e-3, atol=1e-7) and gradients[0].norm() > 1e-4


def test_a_sentence_of_which_nothing_is_known_teaches_nothing():
    scores, targets = known_example()
    targets.known[0] = False
    logits = scores.logits.clone().requires_grad_()
    asked = CRFScores(logits, scores.transitions, scores.start, scores.end, scores.mask)
    found = noise_aware_loss(asked, targets, CONFIDENCE)
    found.sum().backward()
    assert found[0] == 0 and (logits.grad[0] == 0).all() and (logits.grad[2] != 0).any()


def test_the_least_loss_is_where_the_probability_is_the_confidence():
    """One word, two tags: the gradient changes its sign at P = C."""
    for logit, sign in ((-2.0, -1), (float(np.log(0.6 / 0.4)), 0), (3.0, 1)):
        x = torch.tensor(logit, dtype=torch.float64, requires_grad=True)
        logits = torch.stack([x * 0, x]).view(1, 1, 2)
        zero = torch.zeros(2, dtype=torch.float64)
        scores = CRFScores(logits, zero.repeat(2, 1), zero, zero, torch.ones(1, 1, dtype=torch.bool))
        targets = Targets(torch.ones(1, 1, dtype=torch.long), scores.mask, torch.ones(1, 1))
        noise_aware_loss(scores, targets, torch.tensor([0.6], dtype=torch.float64)).sum().backward()
        assert abs(float(x.grad)) < 1e-9 if sign == 0 else float(x.grad) * sign > 0.01
