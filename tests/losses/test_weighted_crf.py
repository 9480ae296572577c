"""The weighted likelihood against brute force over all tag sequences, and its limits."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch

from lacuner.losses.crf import crf_loss
from lacuner.losses.weighted_crf import weighted_crf_loss
from lacuner.models.heads.crf import IMPOSSIBLE, tag_marginals, viterbi
from lacuner.models.tag_sets import TagSet
from lacuner.models.types import CRFScores, Targets

LENGTHS = (4, 1, 3)


def example(scheme="BIO", seed=0, share=0.4):
    torch.manual_seed(seed)
    tags = TagSet(("X",), scheme)
    follows, first, last = (torch.from_numpy(array) for array in tags.allowed())
    size, words = len(tags), max(LENGTHS)
    mask = torch.arange(words) < torch.tensor(LENGTHS)[:, None]

    def draw(*shape):
        return torch.randn(*shape, dtype=torch.float64)

    scores = CRFScores(
        draw(len(LENGTHS), words, size),
        draw(size, size).masked_fill(~follows, IMPOSSIBLE),
        draw(size).masked_fill(~first, IMPOSSIBLE),
        draw(size).masked_fill(~last, IMPOSSIBLE),
        mask,
    )
    labels = viterbi(CRFScores(draw(*scores.logits.shape), scores.transitions, scores.start, scores.end, mask))
    probs = draw(*scores.logits.shape).softmax(-1)
    known = torch.rand(labels.shape) < share
    return scores, Targets(labels, known, torch.ones(labels.shape, dtype=torch.float64), probs)


def paths_of(scores, b):
    """Every sequence of a sentence with its probability."""
    length, size = LENGTHS[b], scores.logits.shape[-1]
    values = {}
    for path in product(range(size), repeat=length):
        total = scores.start[path[0]] + scores.end[path[-1]]
        total = total + sum(scores.logits[b, t, tag] for t, tag in enumerate(path))
        values[path] = float(total + sum(scores.transitions[a, c] for a, c in pairwise(path)))
    highest = max(values.values())
    weights = {path: np.exp(value - highest) for path, value in values.items()}
    return {path: weight / sum(weights.values()) for path, weight in weights.items()}


@pytest.mark.parametrize("scheme", ["IO", "BIO", "BIOES"])
def test_equals_brute_force(scheme):
    scores, targets = example(scheme)
    got = weighted_crf_loss(scores, targets)
    for b, length in enumerate(LENGTHS):
        total = 0.0
        for path, probability in paths_of(scores, b).items():
            known = [bool(targets.known[b, t]) for t in range(length)]
            if all(path[t] == int(targets.labels[b, t]) for t in range(length) if known[t]):
                free = [float(targets.probs[b, t, path[t]]) for t in range(length) if not known[t]]
                total += probability * float(np.prod(free))
        assert float(got[b]) == pytest.approx(-np.log(total), abs=1e-9)


def test_marginals_equal_brute_force():
    scores, targets = example()
    got = tag_marginals(scores, targets)
    for b, length in enumerate(LENGTHS):
        want = np.zeros((length, scores.logits.shape[-1]))
        for path, probability in paths_of(scores, b).items():
            if all(path[t] == int(targets.labels[b, t]) for t in range(length) if targets.known[b, t]):
                for t in range(length):
                    want[t, path[t]] += probability
        np.testing.assert_allclose(got[b, :length].numpy(), want / want.sum(-1, keepdims=True), atol=1e-9)
    assert (got[~scores.mask] == 0).all()


def test_all_weight_on_one_sequence_is_the_crf():
    scores, targets = example()
    hard = torch.nn.functional.one_hot(targets.labels, scores.logits.shape[-1]).double()
    completed = Targets(targets.labels, torch.ones_like(targets.known), targets.weight)
    got = weighted_crf_loss(scores, Targets(targets.labels, targets.known, targets.weight, hard))
    assert torch.allclose(got, crf_loss(scores, completed), atol=1e-9)


def test_no_weights_are_the_partial_crf():
    scores, targets = example()
    partial = Targets(targets.labels, targets.known, targets.weight)
    got = weighted_crf_loss(scores, Targets(*vars_of(partial), torch.zeros_like(targets.probs)))
    assert torch.allclose(got, crf_loss(scores, partial), atol=1e-9)


def vars_of(targets):
    return targets.labels, targets.known, targets.weight


def test_gradient_and_silence_of_padding():
    scores, targets = example()
    possible = scores.transitions > IMPOSSIBLE / 2

    def loss(logits, transitions):
        blocked = transitions.masked_fill(~possible, IMPOSSIBLE)
        return weighted_crf_loss(CRFScores(logits, blocked, scores.start, scores.end, scores.mask), targets)

    inputs = scores.logits.clone().requires_grad_(), scores.transitions.masked_fill(~possible, 0.0).requires_grad_()
    assert torch.autograd.gradcheck(loss, inputs)
    loss(*inputs).sum().backward()
    assert (inputs[0].grad[~scores.mask] == 0).all() and (inputs[0].grad[scores.mask] != 0).any()


def test_a_sentence_of_which_nothing_is_said_has_no_gradient():
    scores, targets = example(share=0.0)
    probs = targets.probs.clone()
    probs[0] = 0
    logits = scores.logits.clone().requires_grad_()
    asked = CRFScores(logits, scores.transitions, scores.start, scores.end, scores.mask)
    weighted_crf_loss(asked, Targets(*vars_of(targets), probs)).sum().backward()
    assert (logits.grad[0] == 0).all() and (logits.grad[1] != 0).any()


def test_it_needs_weights():
    scores, targets = example()
    with pytest.raises(ValueError, match="distribution"):
        weighted_crf_loss(scores, Targets(*vars_of(targets)))
