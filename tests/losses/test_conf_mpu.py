"""MPN and Conf-MPU risks against NumPy, their gradients, and what the confidence does."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lacuner.losses.conf_mpu import Base, conf_mpu_risk, mpn_risk
from lacuner.models.types import Targets, TokenScores

PRIOR = torch.tensor([0.1, 0.2, 0.05], dtype=torch.float64)


def example(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, Targets]:
    torch.manual_seed(seed)
    logits = torch.randn(3, 6, 4, dtype=torch.float64, requires_grad=True)
    mask, known = torch.rand(3, 6) < 0.8, torch.rand(3, 6) < 0.8
    probs = torch.randn(3, 6, 4, dtype=torch.float64).mul(2).softmax(dim=-1)
    return logits, mask, Targets(torch.randint(0, 4, (3, 6)), known, torch.ones(3, 6), probs)


def word_loss(probs: np.ndarray, label: int, base: Base) -> float:
    if base == "ce":
        return float(-np.log(probs[label]))
    onehot = np.eye(len(probs))[label]
    return float(np.abs(onehot - probs).mean())


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def words_of(logits: torch.Tensor, mask: torch.Tensor, targets: Targets) -> list[tuple[np.ndarray, int, float]]:
    assert targets.probs is not None
    probs = logits.detach().softmax(dim=-1).numpy()
    at = np.argwhere((mask & targets.known).numpy())
    return [(probs[b, t], int(targets.labels[b, t]), 1 - float(targets.probs[b, t, 0])) for b, t in at]


@pytest.mark.parametrize("base", ["mae", "ce"])
def test_mpn_equals_numpy(base: Base) -> None:
    logits, mask, targets = example()
    words = words_of(logits, mask, targets)
    want = (1 - float(PRIOR.sum())) * mean([word_loss(p, 0, base) for p, y, _ in words if y == 0])
    for c in (1, 2, 3):
        want += 7.0 * float(PRIOR[c - 1]) * mean([word_loss(p, c, base) for p, y, _ in words if y == c])
    assert mpn_risk(TokenScores(logits, mask), targets, PRIOR, 7.0, base).item() == pytest.approx(want)


@pytest.mark.parametrize("base", ["mae", "ce"])
@pytest.mark.parametrize("seed", range(3))
def test_conf_mpu_equals_numpy(base: Base, seed: int) -> None:
    logits, mask, targets = example(seed)
    words, eta = words_of(logits, mask, targets), 0.6
    negative = mean([word_loss(p, 0, base) for p, y, sure in words if y == 0 and sure <= eta])
    part = 0.0
    for c in (1, 2, 3):
        own = [(p, sure) for p, y, sure in words if y == c]
        found = mean([word_loss(p, 0, base) / sure for p, sure in own if sure > eta])
        part += float(PRIOR[c - 1]) * (
            found - mean([word_loss(p, 0, base) for p, _ in own]) + mean([word_loss(p, c, base) for p, _ in own])
        )
    got = conf_mpu_risk(TokenScores(logits, mask), targets, PRIOR, 7.0, base, eta)
    assert got.item() == pytest.approx(7.0 * max(part, 0.0) + negative)


@pytest.mark.parametrize("risk", [mpn_risk, conf_mpu_risk])
def test_the_gradient_is_right_and_zero_at_unknown_words(risk: object) -> None:
    logits, mask, targets = example()
    assert callable(risk)

    def value(inputs: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = risk(TokenScores(inputs, mask), targets, PRIOR)
        return result

    assert torch.autograd.gradcheck(value, (logits,))
    (gradient,) = torch.autograd.grad(value(logits), logits)
    assert not gradient[~(targets.known & mask)].any()


def test_an_unlabeled_word_that_is_probably_an_entity_is_no_negative() -> None:
    logits, mask, targets = example(1)
    assert targets.probs is not None
    unlabeled = (targets.known & mask & (targets.labels == 0)).nonzero()[0]
    probs = targets.probs.clone()
    probs[tuple(unlabeled)] = torch.tensor([0.1, 0.9, 0.0, 0.0], dtype=torch.float64)
    risk = conf_mpu_risk(TokenScores(logits, mask), replace(targets, probs=probs), PRIOR)
    (gradient,) = torch.autograd.grad(risk, logits)
    assert not gradient[tuple(unlabeled)].any()


def test_probabilities_are_needed() -> None:
    logits, mask, targets = example()
    with pytest.raises(ValueError, match="probabilities"):
        conf_mpu_risk(TokenScores(logits, mask), replace(targets, probs=None), PRIOR)
