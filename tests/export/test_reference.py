"""The reference decoder of ONNX exports computes what lacuner computes: windows, features, and spans of every head."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lacuner.export.onnx_folder import _head_settings, write_program
from lacuner.export.reference import crf, lstm, spans, tags, tiny
from lacuner.export.reference.tagger import cut_windows, make_batches
from lacuner.models.encoders.lstm import lstm_from_words
from lacuner.models.windows import Window
from lacuner.models.windows import cut_windows as cut_in_lacuner
from tests.export.conftest import make_tagger

HEADS = {
    "token": (tags, {}),
    "token BIOES": (tags, {"scheme": "BIOES", "non_entity": True}),
    "token IO": (tags, {"scheme": "IO"}),
    "crf": (crf, {}),
    "crf BIOES": (crf, {"scheme": "BIOES", "non_entity": True}),
    "entity_type": (tags, {}),
    "span": (spans, {"widths": 3}),
    "span product": (spans, {"widths": 5, "variant": "product", "threshold": 0.3}),
}
ALLOWED = {"numpy", "onnxruntime", "regex", "tokenizers"}


@given(st.lists(st.integers(1, 9), max_size=60), st.integers(2, 20), st.integers(0, 8))
def test_windows(costs: list[int], size: int, overlap: int) -> None:
    overlap = min(overlap, size - 1)
    windows, _ = cut_in_lacuner(costs, size, overlap)
    assert [Window(*window) for window in cut_windows(costs, size, overlap)] == windows


@given(st.lists(st.integers(1, 30), max_size=40), st.integers(1, 60))
def test_batches_contain_every_sentence_once_and_fit(costs: list[int], budget: int) -> None:
    batches = make_batches(costs, budget)
    assert sorted(i for batch in batches for i in batch) == list(range(len(costs)))
    assert all(len(batch) == 1 or len(batch) * max(costs[i] for i in batch) <= budget for batch in batches)


def test_tiny_features() -> None:
    encoder = make_tagger("token").model.encoder
    sentences = [["Mara", "国", "國", "x" * 200, "é"], ["Mara"], ["12.5", "Mara"]]
    batch = encoder.collate(encoder.prepare(sentences), range(3))
    feed = tiny.WordFeatures({"rows": encoder.settings.rows}, Path()).feed(sentences)
    assert (feed["mask"] == batch.mask.numpy()).all()
    assert (feed["words"] == batch.tensors["words"].numpy()).all()
    assert (feed["ids"] == batch.tensors["ids"].numpy()).all()
    assert (np.cumsum(feed["sizes"]) - feed["sizes"] == batch.tensors["bags"].numpy()).all()
    assert (feed["bags"] == np.repeat(np.arange(len(feed["sizes"])), feed["sizes"])).all()


@pytest.mark.parametrize("name", HEADS)
@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), words=st.integers(1, 12))
def test_heads(name: str, seed: int, words: int) -> None:
    module, options = HEADS[name]
    head = make_tagger(name.split(maxsplit=1)[0], **options).model.head
    vectors = torch.randn(1, words, 16, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        scores = head(vectors, torch.ones(1, words, dtype=torch.bool))
        expected = head.decode(scores)
        values = scores.logits if module is crf else scores.logits.softmax(dim=-1)
    found = sorted(module.decode(values[0].numpy(), _head_settings(head)))
    assert [span[:3] for span in found] == list(zip(*(c.tolist() for c in expected[1:4]), strict=True))
    np.testing.assert_allclose([span[3] for span in found], expected.score, atol=2e-5)


@pytest.mark.parametrize("head", ["span", "crf", "token"])
def test_the_program_needs_neither_torch_nor_lacuner(head: str) -> None:
    model = make_tagger(head).model
    tree = ast.parse(write_program(model.encoder, model.head))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module.partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= ALLOWED | sys.stdlib_module_names
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert len(defined) == len(set(defined)) >= 8


def test_lstm_features() -> None:
    encoder = lstm_from_words([["Mara", "left", "Halden"]])
    sentences = [["Mara", "国", "x" * 40, "Halden"], ["left"], ["Left", "Mara"]]
    batch = encoder.collate(encoder.prepare(sentences), range(3))
    settings = {"words": encoder.settings.words, "characters": encoder.settings.characters}
    feed = lstm.WordFeatures(settings, Path()).feed(sentences)
    assert (feed["mask"] == batch.mask.numpy()).all()
    assert (feed["words"] == batch.tensors["words"].numpy())[feed["mask"]].all()
    own, theirs = feed["spelling"][feed["distinct"]], batch.tensors["spelling"][batch.tensors["distinct"]].numpy()
    assert (own == theirs)[feed["mask"]].all()


def test_an_lstm_is_no_subword_encoder() -> None:
    """The protocol of sub-word encoders must not let other encoders pass as such."""
    from lacuner.models.types import SubwordEncoder

    assert not isinstance(lstm_from_words([["Mara"]]), SubwordEncoder)
