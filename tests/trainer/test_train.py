"""From settings and documents to a run: what is refused, what is said, and what makes it another run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from lacuner.config import load_config
from lacuner.data import Splits
from lacuner.errors import ConfigError, ModelFileError
from lacuner.models import encoders
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.models.lookup import LookupTagger
from lacuner.models.storage import save
from lacuner.recipes import RECIPES
from lacuner.trainer.train import train
from lacuner.training import stage
from tests.demo_corpus import demo_corpus

DEMO = demo_corpus()
GOLD = DEMO.train[:20]


def run(folder: Path, *settings: str, dev: bool = True, seed: int = 1) -> list[str]:
    """Train, and return what was said."""
    torch.set_num_threads(1)
    config = load_config(RECIPES["supervised"].Config, settings=["train.epochs=1", "train.budget=512", *settings])
    said: list[str] = []
    train("supervised", Splits(gold=GOLD, dev=DEMO.dev[:5] if dev else None), folder, config, seed, said.append)
    return said


@pytest.mark.parametrize(
    ("recipe", "settings", "words"),
    [
        ("trust", ["head.scheme=IO"], "head.scheme=IO has no effect together with head.kind=span"),
        ("trust", ["head.angle=true"], "head.angle=True has no effect together with head.kind=span"),
        ("trust", ["head.kind=token", "head.variant=product"], "head.variant=product .* head.kind=token"),
        ("partial", ["head.width=3"], "head.width=3 has no effect together with head.kind=crf"),
        ("nrces", ["head.scheme=BIOES"], "head.scheme=BIOES has no effect together with head.kind=span"),
        ("trust", ["encoder.vectors=x.txt"], "encoder.vectors=x.txt .* encoder.name=auto: it is for lstm"),
        ("trust", ["encoder.frozen=2", "encoder.name=lstm"], "encoder.frozen=2 .* encoder.name=lstm: it is for hf"),
        ("trust", ["encoder.pooling=mean", "encoder.name=run:x"], "encoder.pooling=mean .* encoder.name=run:x"),
        ("trust", ["encoder.checkpointing=true"], "encoder.checkpointing=True .* encoder.name=auto"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(recipe: str, settings: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load_config(RECIPES[recipe].Config, settings=settings)


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_settings_of_a_recipe_do_not_contradict_each_other(recipe: str) -> None:
    assert load_config(RECIPES[recipe].Config)


def test_patience_without_dev_is_said(tmp_path: Path) -> None:
    sentence = "train.patience has no effect without --dev: all epochs will run"
    assert sentence in run(tmp_path / "without", "train.patience=1", dev=False)
    assert sentence not in run(tmp_path / "with", "train.patience=1")
    assert sentence not in run(tmp_path / "neither", dev=False)


def test_other_vectors_are_another_run(tmp_path: Path) -> None:
    vectors = tmp_path / "vectors.txt"
    settings = ("encoder.name=lstm", f"encoder.vectors={vectors}")
    with pytest.raises(
        ConfigError, match=r"vectors\.txt: cannot read the file of setting encoder\.vectors: No such file"
    ):
        run(tmp_path / "r", *settings)
    vectors.write_text("the 0.5 0.5\n")
    run(tmp_path / "r", *settings)
    assert "this run is already finished" in run(tmp_path / "r", *settings)
    vectors.write_text("the 0.5 0.6\n")
    with pytest.raises(ConfigError, match=r"this folder holds another run \(contents\.encoder\.vectors is '"):
        run(tmp_path / "r", *settings)


def test_another_encoder_of_the_same_name_is_another_run(tmp_path: Path) -> None:
    name = f"encoder.name=run:{tmp_path / 'first'}"
    with pytest.raises(ModelFileError, match="there is no such folder"):
        run(tmp_path / "r", name)
    run(tmp_path / "first")
    run(tmp_path / "r", name)
    assert "this run is already finished" in run(tmp_path / "r", name)
    shutil.move(tmp_path / "first", tmp_path / "moved")
    run(tmp_path / "first", seed=2)
    with pytest.raises(ConfigError, match=r"this folder holds another run \(contents\.encoder\.name is '"):
        run(tmp_path / "r", name)


def test_a_run_without_an_encoder_gives_none(tmp_path: Path) -> None:
    save(LookupTagger({"Rome": "LOC"}), tmp_path / "names")
    with pytest.raises(ConfigError, match="has no encoder"):
        run(tmp_path / "r", f"encoder.name=run:{tmp_path / 'names'}")


def test_a_pretrained_encoder_is_known_by_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Library:
        """Stands in for the module that imports transformers, which takes seconds."""

        files = "one"

        def fingerprint(self, place: str) -> str:
            return f"{place} of {self.files}"

    library = Library()
    monkeypatch.setattr(encoders, "_huggingface", lambda: library)
    monkeypatch.setattr(stage, "open_encoder", lambda config, docs: TinyEncoder(TinyConfig()))
    run(tmp_path / "r", "encoder.name=hf:place")
    library.files = "two"
    with pytest.raises(ConfigError, match=r"contents\.encoder\.name is 'place of one' there and 'place of two' here"):
        run(tmp_path / "r", "encoder.name=hf:place")
