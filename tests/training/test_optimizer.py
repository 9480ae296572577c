"""Sparse updates of large tables: the rule is Adam's, and rows outside the batch stay untouched."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from lacuner.models.encoders import tiny
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.models.heads import build_head
from lacuner.models.model import Model
from lacuner.training.optimizer import (
    LazyAdam,
    clip_gradients,
    gradients_of,
    make_optimizers,
    optimizer_tensors,
    restore_optimizer,
)

BATCHES = ([1, 4, 4], [0, 4], [2, 3, 1])


def table() -> nn.Parameter:
    torch.manual_seed(0)
    return nn.Parameter(torch.randn(6, 3))


def train(parameter: nn.Parameter, optimizer: torch.optim.Optimizer) -> None:
    for rows in BATCHES:
        optimizer.zero_grad()
        functional.embedding(torch.tensor(rows), parameter, sparse=True).square().sum().backward()
        optimizer.step()


def test_it_agrees_with_sparse_adam() -> None:
    ours, theirs = table(), table()
    train(ours, LazyAdam([{"params": [ours], "lr": 0.1}]))
    train(theirs, torch.optim.SparseAdam([theirs], lr=0.1))
    torch.testing.assert_close(ours, theirs)
    assert torch.equal(ours[5], table()[5]) and not torch.equal(ours[4], table()[4])


def model(rows: int) -> Model:
    torch.manual_seed(0)
    encoder = TinyEncoder(TinyConfig(rows=rows, width=16, feature=4, heads=2))
    return Model(encoder, build_head({"kind": "token", "labels": ["A"]}, encoder.width)).eval()


def backward(model: Model) -> None:
    features = model.encoder.prepare([["Mara", "left", "Halden"], ["Halden"]])
    model(model.encoder.collate(features, [0, 1])).logits.square().sum().backward()


def test_a_large_table_has_the_same_gradient_as_a_small_one(monkeypatch: pytest.MonkeyPatch) -> None:
    dense = model(64)
    backward(dense)
    monkeypatch.setattr(tiny, "SPARSE_ROWS", 64)
    sparse = model(64)
    backward(sparse)
    assert sparse.encoder.table.grad.is_sparse
    torch.testing.assert_close(sparse.encoder.table.grad.to_dense(), dense.encoder.table.grad)
    for a, b in zip(gradients_of(sparse.head.parameters()), gradients_of(dense.head.parameters()), strict=True):
        torch.testing.assert_close(a, b)
    clip_gradients(gradients_of(sparse.parameters()), 0.5)
    norm = nn.utils.clip_grad_norm_(dense.parameters(), 0.5)
    assert norm > 0.5
    torch.testing.assert_close(sparse.encoder.table.grad.to_dense(), dense.encoder.table.grad)


def test_the_state_of_both_optimisers_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiny, "SPARSE_ROWS", 64)
    first = model(64)
    optimizers = make_optimizers(first, 0.1, 0.1, 0.01)
    assert len(optimizers.parts) == 2
    backward(first)
    optimizers.step()
    second = model(64)
    second.load_state_dict(first.state_dict())
    others = make_optimizers(second, 0.1, 0.1, 0.01)
    restore_optimizer(others, optimizer_tensors(optimizers))
    for trained, optimizer in ((first, optimizers), (second, others)):
        optimizer.zero_grad()
        backward(trained)
        optimizer.step()
    pairs = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
