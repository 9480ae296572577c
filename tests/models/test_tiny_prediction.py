"""The forward pass for prediction gives the vectors of the ordinary one, whatever the sizes and the sentences."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lacuner.models.encoders import tiny_prediction
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.models.heads import build_head
from lacuner.models.inference import FAST_FROM, predict_batches, score_batches
from lacuner.models.model import Model
from lacuner.models.types import DecodedSpans

SENTENCES = st.lists(st.lists(st.text(min_size=1, max_size=6), max_size=9), min_size=1, max_size=5)
SMALL = TinyConfig(width=16, rows=64, feature=8, layers=3, heads=2)


def encoder_of(config: TinyConfig) -> TinyEncoder:
    """Random weights everywhere: those that start as zeros would hide mistakes."""
    torch.manual_seed(0)
    encoder = TinyEncoder(config).eval()
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.normal_(std=0.3)
    return encoder


def check(encoder: TinyEncoder, sentences: list[list[str]]) -> None:
    features = encoder.prepare(sentences)
    indices = np.arange(len(sentences))[::-1].copy()
    batch = encoder.collate(features, indices)
    with torch.no_grad():
        expected = encoder(batch)
    for onednn in (False, True):  # both on any processor
        with pytest.MonkeyPatch.context() as patch, torch.no_grad():
            patch.setattr(tiny_prediction, "ONEDNN", onednn)
            vectors, mask = tiny_prediction.fast_forward(encoder, features)(indices)
        assert torch.equal(mask, batch.mask)
        assert torch.allclose(vectors[mask], expected[mask], atol=1e-5)


@settings(max_examples=60, deadline=None)
@given(SENTENCES)
def test_vectors_are_those_of_the_ordinary_forward_pass(sentences: list[list[str]]) -> None:
    check(encoder_of(SMALL), sentences)


@pytest.mark.parametrize(
    "config",
    [
        TinyConfig(layers=1),
        TinyConfig(heads=0),
        TinyConfig(layers=2, width=12, heads=3, feature=5),
        TinyConfig(rows=64),  # wide enough for oneDNN: torch computes small images itself
    ],
)
def test_any_size(config: TinyConfig) -> None:
    check(encoder_of(config), [["Mara", "left", "Halden"], [], ["Halden"], ["Mara", "left", "Halden", "."]])


def test_many_distinct_words_have_a_table_per_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiny_prediction, "MAX_TABLE", 2)
    check(encoder_of(SMALL), [["Mara", "left", "Halden"], ["She", "left", "."], []])


@pytest.mark.parametrize("kind", ["span", "token", "crf", "entity_type"])
def test_heads_predict_the_same_spans(kind: str) -> None:
    encoder = encoder_of(SMALL)
    model = Model(encoder, build_head({"kind": kind, "labels": ["LOC", "PER"]}, encoder.width))
    with torch.no_grad():
        for name, parameter in model.head.named_parameters():
            parameter.normal_(mean=1.0 if "bias" in name else 0.0)
    features = encoder.prepare([[f"{i % n}{n}" for i in range(n)] for n in range(1, 80)])
    assert features.lengths.sum() > FAST_FROM

    def spans_of(batches: Iterator[tuple[np.ndarray, DecodedSpans]]) -> list[tuple[int, ...]]:
        columns = [(indices[spans.sentence], *spans[1:4]) for indices, spans in batches]
        return sorted(row for batch in columns for row in zip(*(column.tolist() for column in batch), strict=True))

    fast = spans_of(predict_batches(model, features, model.head.decode))
    assert fast == spans_of(score_batches(model, features, model.head.decode))
    assert fast


def test_a_model_in_training_mode_predicts_without_dropout() -> None:
    """Word tables were once prepared in the mode that the model was in: after training, F1 was 2 points lower."""
    encoder = encoder_of(SMALL)
    model = Model(encoder, build_head({"kind": "token", "labels": ["LOC"]}, encoder.width))
    features = encoder.prepare([["Mara", "left", "Halden"]] * FAST_FROM)

    def logits() -> torch.Tensor:
        return torch.cat([values.flatten() for _, values in predict_batches(model, features, lambda s: s.logits)])

    expected = logits()
    model.train()
    assert torch.equal(logits(), expected) and model.training
