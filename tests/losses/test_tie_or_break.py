"""Tie or break against NumPy, its gradient against differences, and silence where nothing is known."""

import numpy as np
import pytest
import torch

from lacuner.data import Lost
from lacuner.losses.tie_or_break import chunk_ends, tie_or_break_loss
from lacuner.models.heads.tie_or_break import TieOrBreakHead
from lacuner.models.types import Annotation, Targets, TieOrBreakScores

CLASSES = 3
CORPUS = [
    Annotation(5, [(0, 2, "PER"), (2, 3, "LOC")], unsure=[(4, 5, "")], complete=True),
    Annotation(6, [(1, 4, "LOC")], unsure=[(0, 1, "")], complete=True),
    Annotation(1, [(0, 1, "PER")], complete=True),
    Annotation(4, [(1, 2, "LOC")]),
]


def example():
    torch.manual_seed(0)
    targets = TieOrBreakHead(8, ("LOC", "PER")).targets(CORPUS, Lost()).collate(range(len(CORPUS)))
    mask = (torch.arange(6) < torch.tensor([a.length for a in CORPUS])[:, None]).unsqueeze(-1).expand(-1, -1, 2)
    logits = torch.randn(len(CORPUS), 6, 1 + 2 * CLASSES, dtype=torch.float64, requires_grad=True)
    weight = torch.rand(targets.labels.shape, dtype=torch.float64) + 0.1
    return logits, mask, Targets(targets.labels, targets.known & mask, weight)


def reference(logits, targets):
    labels, known = targets.labels.numpy(), targets.known.numpy()
    losses = np.zeros(labels.shape)
    for b, i in np.ndindex(labels.shape[:2]):
        if known[b, i, 0]:
            p = 1 / (1 + np.exp(-logits[b, i, 0]))
            losses[b, i, 0] = -np.log(p if labels[b, i, 0] else 1 - p)
        if known[b, i, 1]:
            end = i
            while end + 1 < CORPUS[b].length and labels[b, end + 1, 0]:
                end += 1
            z = logits[b, i, 1 : 1 + CLASSES] + logits[b, end, 1 + CLASSES :]
            losses[b, i, 1] = np.log(np.exp(z).sum()) - z[labels[b, i, 1]]
    return losses * targets.weight.numpy()


def test_targets_are_gaps_and_chunks():
    _, _, targets = example()
    ties = [[0, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0] * 6, [0] * 6]
    assert targets.labels[..., 0].tolist() == ties
    known_gaps = [[0, 1, 1, 1, 0, 0], [0, 0, 1, 1, 1, 1], [0] * 6, [0] * 6]
    assert targets.known[..., 0].int().tolist() == known_gaps, "gaps beside unsure and unknown words are unknown"
    chunks = [[(0, 2), (2, 1), (3, 0)], [(1, 1), (4, 0), (5, 0)], [(0, 2)], [(1, 1)]]
    known = targets.known[..., 1]
    got = [[(i, int(targets.labels[b, i, 1])) for i in known[b].nonzero().flatten().tolist()] for b in range(4)]
    assert got == chunks


def test_equals_numpy():
    logits, mask, targets = example()
    losses = tie_or_break_loss(TieOrBreakScores(logits, mask), targets)
    np.testing.assert_allclose(losses.detach().numpy(), reference(logits.detach().numpy(), targets), atol=1e-12)


def test_gradient():
    logits, mask, targets = example()
    assert torch.autograd.gradcheck(lambda x: tie_or_break_loss(TieOrBreakScores(x, mask), targets), (logits,))


def test_unsure_words_and_padding_have_no_gradient_even_where_scores_are_not_numbers():
    logits, mask, targets = example()
    counted = mask[..., 0].clone()
    counted[0, 4] = counted[1, 0] = False  # unsure
    values = logits.detach().masked_fill(~counted.unsqueeze(-1), float("nan")).requires_grad_()
    tie_or_break_loss(TieOrBreakScores(values, mask), targets).sum().backward()
    assert (values.grad[~counted] == 0).all() and (values.grad[0, :4] != 0).any(-1).all()


def test_soft_labels_are_refused():
    logits, mask, targets = example()
    soft = Targets(targets.labels, targets.known, targets.weight, torch.ones(*targets.labels.shape, 2))
    with pytest.raises(ValueError, match="soft labels"):
        tie_or_break_loss(TieOrBreakScores(logits, mask), soft)


def test_chunk_ends_of_random_ties():
    tied = torch.rand(20, 9, generator=torch.Generator().manual_seed(1)) < 0.5
    for b, i in np.ndindex(20, 9):
        end = i
        while end + 1 < 9 and tied[b, end + 1]:
            end += 1
        assert chunk_ends(tied)[b, i] == end
