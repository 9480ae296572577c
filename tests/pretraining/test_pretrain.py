"""Pre-training: it learns, ends in the same bytes after a kill, sees no labels, and other recipes start from it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from lacuner.config import load_config
from lacuner.data import Document, Span, Splits
from lacuner.errors import ConfigError, TrainingError
from lacuner.models.config import EncoderConfig
from lacuner.models.encoders import open_encoder
from lacuner.models.storage import load_model
from lacuner.pretraining.masked_lm import build_vocabulary, open_masked_model
from lacuner.pretraining.pretrain import PretrainConfig, pretrain
from lacuner.recipes import RECIPES
from lacuner.trainer.train import train
from lacuner.training import loop
from tests.demo_corpus import demo_corpus
from tests.recipes.check_recipe import weights

DOCS = demo_corpus().train[:120]
QUICK = ["train.epochs=2", "train.budget=256", "held_out=0.2"]


def config(*settings: str) -> PretrainConfig:
    return load_config(PretrainConfig, settings=[*QUICK, *settings])


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.mark.integration
@pytest.mark.parametrize("encoder", ["tiny", "lstm"])
def test_it_learns_to_predict_masked_words(encoder: str, tmp_path: Path) -> None:
    done = pretrain(DOCS, tmp_path / "run", config(f"encoder.name={encoder}", "train.epochs=4"))
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    perplexities = [row["dev"]["perplexity"] for row in rows]
    assert len(rows) == 4 and perplexities[-1] < 0.8 * perplexities[0]
    assert all(0 <= row["dev"]["top1"] <= row["dev"]["top5"] <= 1 for row in rows)
    assert done.held_out["perplexity"] == min(perplexities) and done.held_out["top5"] > 0.1
    kept = load_model(tmp_path / "run")
    assert kept.head.top5 == done.held_out["top5"]
    again = pretrain(DOCS, tmp_path / "run", config(f"encoder.name={encoder}", "train.epochs=4"))
    assert again.held_out["top5"] == done.held_out["top5"]


def test_labels_and_the_order_of_documents_decide_nothing(tmp_path: Path) -> None:
    pretrain(DOCS, tmp_path / "a", config())
    other = [replace(doc, spans=(), rejected=(Span(0, 1, ""),), complete=True) for doc in reversed(DOCS)]
    pretrain(other, tmp_path / "b", config())
    pretrain(DOCS, tmp_path / "c", config(), seed=2)
    assert weights(tmp_path / "a") == weights(tmp_path / "b") != weights(tmp_path / "c")


def test_a_killed_run_ends_in_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = config("train.checkpoint_seconds=0")
    pretrain(DOCS, tmp_path / "whole", settings)
    update, left = loop._Trainer._update, 9

    def dying(self, *args):
        nonlocal left
        left -= 1
        if not left:
            raise KeyboardInterrupt
        return update(self, *args)

    monkeypatch.setattr(loop._Trainer, "_update", dying)
    with pytest.raises(KeyboardInterrupt):
        pretrain(DOCS, tmp_path / "killed", settings)
    logged: list[str] = []
    pretrain(DOCS, tmp_path / "killed", settings, log=logged.append)
    assert any("resuming" in line for line in logged)
    assert weights(tmp_path / "whole") == weights(tmp_path / "killed")


def test_recipes_start_from_it(tmp_path: Path) -> None:
    pretrain(DOCS, tmp_path / "run", config())
    kept = load_model(tmp_path / "run")
    name = f"run:{tmp_path / 'run'}"
    encoder = open_encoder(EncoderConfig(name=name), ())
    assert all(torch.equal(a, b) for a, b in zip(encoder.parameters(), kept.encoder.parameters(), strict=True))
    settings = load_config(
        RECIPES["trust"].Config, settings=[f'encoder.name="{name}"', "train.epochs=1", "head.kind=token"]
    )
    trained = train("trust", Splits(weak=DOCS[:20]), tmp_path / "trust", settings)
    assert trained.tagger.labels
    model = open_masked_model(EncoderConfig(name=name))
    assert model is not None and model.head.labels == kept.head.labels
    assert open_masked_model(EncoderConfig(name=f"run:{tmp_path / 'trust'}")) is None
    assert open_masked_model(EncoderConfig()) is None
    more = pretrain(DOCS, tmp_path / "more", config(f'encoder.name="{name}"', "train.epochs=1"))
    assert more.model.head.labels == kept.head.labels


def test_the_vocabulary() -> None:
    text = ["b", "a", "c", "d"], np.array([2, 2, 1, 3])
    assert build_vocabulary(*text, 1, 10) == ["d", "a", "b", "c"]
    assert build_vocabulary(*text, 2, 2) == ["d", "a"]
    with pytest.raises(TrainingError, match="there is nothing to predict"):
        build_vocabulary(*text, 3, 10)


TOO_FEW = "at least two different texts in each corpus, one to train on and one to hold out: documents has fewer"


@pytest.mark.parametrize(
    ("docs", "words"),
    [
        ([], TOO_FEW),
        ([Document("1", "alone and alone")], TOO_FEW),
        ([Document("1", "  "), Document("2", "one one")], TOO_FEW),
        ([Document("1", "one two"), Document("2", "three four")], "there is nothing to predict"),
    ],
)
def test_too_little_text_is_an_error(docs: list[Document], words: str, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=words):
        pretrain(docs, tmp_path / "run", config())


def test_a_run_of_names_has_no_encoder(tmp_path: Path) -> None:
    train("dictionary", Splits(weak=DOCS[:20]), tmp_path / "names")
    with pytest.raises(ConfigError, match="has no encoder"):
        pretrain(DOCS, tmp_path / "run", config(f'encoder.name="run:{tmp_path / "names"}"'))
