"""The expected entity ratio against brute force over all tag sequences, its gradient, and its margin."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch

from lacuner.losses.entity_ratio import entity_ratio_loss, expected_entity_ratio
from lacuner.models.types import CRFScores


def example(seed: int = 0) -> CRFScores:
    torch.manual_seed(seed)
    logits = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True] * 4, [True, True, True, False]])
    transitions, start, end = (torch.randn(*size, dtype=torch.float64) for size in ((3, 3), (3,), (3,)))
    return CRFScores(logits, transitions.requires_grad_(), start, end, mask)


def reference(scores: CRFScores) -> float:
    logits, transitions = scores.logits.detach().numpy(), scores.transitions.detach().numpy()
    start, end = scores.start.numpy(), scores.end.numpy()
    entities = 0.0
    for sentence, length in enumerate(scores.mask.sum(dim=1).tolist()):
        weights, counts = [], []
        for tags in product(range(3), repeat=length):
            score = start[tags[0]] + end[tags[-1]] + sum(logits[sentence, t, tag] for t, tag in enumerate(tags))
            score += sum(transitions[a, b] for a, b in pairwise(tags))
            weights.append(np.exp(score))
            counts.append(sum(tag > 0 for tag in tags))
        entities += float(np.dot(weights, counts) / sum(weights))
    return entities / int(scores.mask.sum())


@pytest.mark.parametrize("seed", range(3))
def test_equals_the_sum_over_all_sequences(seed: int) -> None:
    scores = example(seed)
    assert expected_entity_ratio(scores).item() == pytest.approx(reference(scores), abs=1e-12)


def test_the_gradient_is_right() -> None:
    scores = example()

    def ratio(logits: torch.Tensor, transitions: torch.Tensor) -> torch.Tensor:
        return expected_entity_ratio(CRFScores(logits, transitions, scores.start, scores.end, scores.mask))

    assert torch.autograd.gradcheck(ratio, (scores.logits, scores.transitions))


def test_within_the_margin_there_is_no_loss_and_no_gradient() -> None:
    scores = example()
    ratio = expected_entity_ratio(scores).item()
    assert entity_ratio_loss(scores, ratio + 0.1, 0.04).item() == pytest.approx(0.06)
    assert entity_ratio_loss(scores, ratio - 0.1, 0.04).item() == pytest.approx(0.06)
    inside = entity_ratio_loss(scores, ratio + 0.1, 0.11)
    (gradient,) = torch.autograd.grad(inside, scores.logits)
    assert inside.item() == 0 and not gradient.any()


def test_padding_has_no_gradient() -> None:
    scores = example()
    (gradient,) = torch.autograd.grad(entity_ratio_loss(scores, 0.1, 0.0), scores.logits)
    assert not gradient[1, 3].any() and gradient[0].any()
