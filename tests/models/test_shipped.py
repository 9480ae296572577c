"""Shipped encoders: they load fast, are what their cards say, and `auto` takes the one for the language."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import torch

from lacuner.config import load_config
from lacuner.data import Document, Splits
from lacuner.models.config import EncoderConfig
from lacuner.models.encoders import encoder_fingerprint, is_pretrained, is_transformer, open_encoder
from lacuner.models.encoders.auto import choose_encoder
from lacuner.models.encoders.shipped import SHIPPED, shipped_folder
from lacuner.models.encoders.tiny import BASE, TinyEncoder
from lacuner.models.heads import build_masked_head
from lacuner.models.model import MaskedLanguageModel
from lacuner.models.storage import load, load_model, save
from lacuner.pretraining.masked_lm import open_masked_model
from lacuner.recipes import RECIPES
from lacuner.trainer.train import train
from tests.demo_corpus import demo_corpus

pytestmark = pytest.mark.shipped
MAX_MEGABYTES = 24

every = pytest.mark.parametrize("name", ["tiny-en", "tiny-zh"])


def test_both_are_there() -> None:
    assert SHIPPED == ("tiny-en", "tiny-zh")


@every
def test_the_files_are_small_and_those_of_the_card(name: str) -> None:
    folder = shipped_folder(name)
    assert sum(file.stat().st_size for file in folder.iterdir()) < MAX_MEGABYTES * 1e6
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert json.loads((folder / "config.json").read_text(encoding="utf-8"))["files"]["model.safetensors"] == digest
    assert digest in card and "CC BY" in card and f"build_encoders.py {name}" in card


@every
def test_it_opens_as_a_pretrained_encoder(name: str) -> None:
    config = EncoderConfig(name=name)
    assert is_pretrained(config) and not is_transformer(config) and encoder_fingerprint(name)
    encoder = open_encoder(config, ())
    assert isinstance(encoder, TinyEncoder) and encoder.is_pretrained and encoder.sparse_table is not None
    model = open_masked_model(config)
    assert model is not None and model.head.top5 is not None and model.head.top5 > 0.4


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("The mill in Halden was built by the Teel family in 1897.", "tiny-en"),
        ("玛拉在哈尔登买了三台机器，价格是5000元。", "tiny-zh"),
        ("瑪拉在哈爾登買了三台機器。", "tiny-zh"),
        ("Die Mühle in Halden wurde 1897 von der Familie Teel gebaut.", "tiny"),
        ("マーラはハルデンで機械を買った。", "tiny"),
        ("Мельница построена в 1897 году.", "tiny"),
        ("", "tiny"),
    ],
)
def test_auto_looks_at_the_language(text: str, name: str) -> None:
    choice = choose_encoder([Document("1", text)])
    assert choice.name == name and f"encoder: {name}" in choice.reason


def test_a_recipe_starts_from_it_and_the_saved_tagger_needs_nothing_else(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    docs = demo_corpus().train[:30]
    logged: list[str] = []
    settings = load_config(RECIPES["trust"].Config, settings=["train.epochs=1"])
    trained = train("trust", Splits(weak=docs), tmp_path / "run", settings, log=logged.append)
    assert any("encoder: tiny-en" in line for line in logged)
    assert trained.run.identity["config"]["encoder"]["name"] == "tiny-en"
    assert "encoder.name" in trained.run.identity["contents"], "other weights under this name are another run"
    text = "Mara Teel left Halden."
    assert load(tmp_path / "run")(text).spans == trained.tagger(text).spans
    saved = json.loads((tmp_path / "run" / "model" / "config.json").read_text(encoding="utf-8"))["encoder"]
    assert saved["pretrained"] is True and saved["rows"] == BASE.rows


def test_compact_weights_are_close_and_a_quarter_of_the_size(tmp_path: Path) -> None:
    torch.manual_seed(0)
    encoder = TinyEncoder(BASE)
    head = build_masked_head({"kind": "masked_words", "labels": ["a", "b", "c"]}, encoder.width)
    model = MaskedLanguageModel(encoder, head)
    table = encoder.table.detach().clone()
    save(model, tmp_path / "compact", compact=True)
    assert (tmp_path / "compact" / "model.safetensors").stat().st_size < 0.3 * 4 * table.numel()
    again = load_model(tmp_path / "compact")
    error = (again.encoder.table.detach() - table).abs().amax(dim=1) / table.abs().amax(dim=1)
    assert float(error.max()) <= 0.5 / 127 + 1e-6
    assert torch.equal(again.encoder.table, encoder.table), "the model itself has the rounded weights"
