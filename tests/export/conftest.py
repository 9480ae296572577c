"""Small taggers with random weights that predict many spans, and texts of every kind."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import strategies as st

from lacuner.annotate import Entry
from lacuner.data import Document
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.models.gazetteer import TaggerGazetteer
from lacuner.models.heads import build_head
from lacuner.models.model import Model
from lacuner.models.storage import save
from lacuner.models.tagger import Tagger

LABELS = ["LOC", "PER"]
TEXTS = [
    "Mara Teel left Halden.",
    "",
    "   \n\t ",
    "The ship ROSE of Halden-upon-Wye sailed to İstanbul, straße 12; naïve cafés!",
    "玛拉在哈尔登买了3台机器。Mara读书。",
    "can't won't U.S.A. $5.00 e\u0301tude 👩\u200d🔬 a_b x\u00ady \u200b\u2028 end",
    "word " * 300 + "Halden",
]
GAZETTEER = TaggerGazetteer([Entry("Halden", "LOC"), Entry("Mara Teel", "PER"), Entry("读书", "LOC")])

texts = st.one_of(
    st.text(max_size=60),
    st.lists(
        st.sampled_from(["Mara", "Halden-upon", "玛拉", "can't", "U.S.", "5%", "é", "\xad", "！", "a_b"]), max_size=12
    ).map(" ".join),
)
"""Arbitrary Unicode, and texts that have entities."""


def make_tagger(head: str, gazetteer: bool = False, **settings: Any) -> Tagger:
    """A tagger with random weights that are large enough to predict entities everywhere."""
    torch.manual_seed(3)
    encoder = TinyEncoder(TinyConfig(width=16, layers=2, rows=512, feature=8, heads=2))
    torch.nn.init.normal_(encoder.attention.output.weight)
    model = Model(encoder, build_head({"kind": head, "labels": LABELS, **settings}, encoder.width))
    with torch.no_grad():
        for parameter in model.head.parameters():
            parameter.normal_(std=0.7)
        if head in ("token", "crf"):
            model.head.output.bias[0] = -6.0  # otherwise nearly everything is O
        if head == "entity_type":
            model.head.entity.bias[0] = 1.0
    model.eval()
    return Tagger(model, GAZETTEER if gazetteer else None)


def spans_of(tagger: Tagger, texts: list[str]) -> list[list[tuple[int, int, str]]]:
    """Start, end and label of the predictions."""
    docs = tagger.predict([Document(str(number), text) for number, text in enumerate(texts)])
    return [[span.key for span in doc.spans] for doc in docs]


@pytest.fixture(scope="session")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Tagger], Path]:
    """Save a tagger as a model folder."""

    def write(tagger: Tagger) -> Path:
        folder = tmp_path_factory.mktemp("model")
        save(tagger, folder)
        return folder

    return write


needs_entry_point = pytest.mark.skipif(
    "lacuner" not in entry_points(group="spacy_factories").names,
    reason="lacuner is installed without its entry point for spaCy: pip install -e . --no-deps",
)
