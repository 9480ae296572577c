"""The shares of a batch, put together, are the batch: for every head, and for batches smaller than the processes."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch

import lacuner
from lacuner.data import Lost
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.models.heads import HEADS, build_head
from lacuner.models.model import Model
from lacuner.training import data_parallel
from lacuner.training.data_parallel import score_batch, share_of
from lacuner.training.dataset import training_set
from lacuner.training.steps import loss_step
from tests.demo_corpus import demo_corpus

DOCS = demo_corpus().train[:7]
LABELS = sorted({span.label for doc in DOCS for span in doc.spans})
KINDS = list(HEADS)


def pretend(monkeypatch: pytest.MonkeyPatch, rank: int, processes: int) -> None:
    """Be one of several processes that never hears of the others: sums are its own part."""
    monkeypatch.setattr(data_parallel, "process_rank", lambda: rank)
    monkeypatch.setattr(data_parallel, "process_count", lambda: processes)
    monkeypatch.setattr(data_parallel, "is_first", lambda: rank == 0)
    monkeypatch.setattr(data_parallel, "sum_over_processes", lambda tensor: tensor)


@pytest.mark.parametrize("sentences", [7, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_shares_add_up_to_the_batch(kind: str, sentences: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"token", "crf", "span", "entity_type"} <= set(KINDS)
    torch.manual_seed(0)
    encoder = TinyEncoder(TinyConfig(width=32, layers=1, rows=512, dropout=0, feature_dropout=0, word_dropout=0))
    width = {"widths": 3} if kind == "span" else {}
    model = Model(encoder, build_head({"kind": kind, "labels": LABELS, "dropout": 0, **width}, encoder.width))
    data, indices = training_set(model, DOCS, Lost()), np.arange(sentences)
    whole = score_batch(model, data.features, indices)
    parts = []
    for rank in range(3):
        pretend(monkeypatch, rank, 3)
        parts.append(score_batch(model, data.features, indices))
    # the mask of tie or break has gaps and chunks, its logits have not
    real = whole.mask.any(dim=-1) if kind == "tie_or_break" else whole.mask
    for field in fields(whole):
        expected, shares = getattr(whole, field.name), [getattr(part, field.name) for part in parts]
        if field.name in data_parallel._WITHOUT_BATCH:
            assert all(torch.equal(share, expected) for share in shares), field.name
            continue
        assert all(share.shape == expected.shape and share.dtype == expected.dtype for share in shares), field.name
        total = torch.stack([share.float() for share in shares]).sum(dim=0)
        assert torch.allclose(total[real], expected[real].float(), atol=1e-5), field.name
    assert sum(int(part.mask.sum()) for part in parts) == int(whole.mask.sum())


def test_a_process_without_a_sentence_has_no_influence(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = TinyEncoder(TinyConfig(width=32, layers=1, rows=512))
    model = Model(encoder, build_head({"kind": "crf", "labels": LABELS}, encoder.width))
    data = training_set(model, DOCS, Lost())
    pretend(monkeypatch, 1, 2)
    share = share_of(np.array([3]))
    assert share.indices.tolist() == [3] and share.counts == 0
    loss_step(data)(np.array([3])).total.backward()  # type: ignore[no-untyped-call]
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    assert gradients and not any(gradient.any() for gradient in gradients)


def test_every_step_divides_its_work() -> None:
    """A step that scores the whole batch in each process would have its gradient counted once per process."""
    source = Path(lacuner.__file__).parent
    steps = [file for file in source.rglob("*.py") if "StepLoss(" in file.read_text(encoding="utf-8")]
    assert len(steps) >= 3
    for file in steps:
        text = file.read_text(encoding="utf-8")
        assert "score_batch(" in text or "share_of(" in text, file.name
