"""A small corpus with known missing labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from lacuner.data import Document
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.models.heads import build_head
from lacuner.models.model import Model
from lacuner.noise import Noise, corrupt
from tests.demo_corpus import demo_corpus

Corpus = tuple[list[Document], list[Document]]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Waiting threads that spin would slow everybody down."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    """Weak and gold, the latter in another order."""
    gold = demo_corpus().train[:40]
    return list(corrupt(gold, Noise(drop=0.6))), [replace(doc) for doc in reversed(gold)]


def span_model(docs: Sequence[Document], widths: int = 10) -> Model:
    """A span model with random weights for the labels of documents."""
    torch.manual_seed(1)
    encoder = TinyEncoder(TinyConfig())
    labels = sorted({span.label for doc in docs for span in doc.spans})
    return Model(encoder, build_head({"kind": "span", "labels": labels, "widths": widths}, encoder.width))
