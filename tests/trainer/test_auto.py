"""`auto`: it trains the advised recipe, logs why, and resumes what it started."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from lacuner.advice import Advice, DataProfile, advise
from lacuner.advice.profile import size_of
from lacuner.api import train as train_by_api
from lacuner.data import Document, Splits
from lacuner.errors import ConfigError, TrainingError
from lacuner.models.config import EncoderConfig
from lacuner.models.encoders import open_encoder
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.models.heads import build_head
from lacuner.models.model import Model
from lacuner.models.storage import save
from lacuner.models.tagger import Tagger
from lacuner.noise import Noise, corrupt
from lacuner.trainer import auto
from lacuner.trainer.auto import AUTO, AutoSettings
from lacuner.trainer.train import load_recipe_config, train
from lacuner.training import loop
from lacuner.training.config import RecipeConfig
from lacuner.training.run_folder import stored_identity
from tests.demo_corpus import demo_corpus
from tests.recipes.check_recipe import weights

DEMO = demo_corpus()
WEAK = list(corrupt(DEMO.train[:150], Noise(drop=0.3)))
DEV = DEMO.dev[:100]
QUICK = ("train.epochs=2", "train.budget=256")


def run(folder: Path, *settings: str, **data: Any) -> tuple[dict[str, Any], list[str]]:
    """Train by auto: what `run.json` has, and what was said."""
    torch.set_num_threads(1)
    said: list[str] = []
    given = data or {"weak": WEAK, "dev": DEV}
    train(AUTO, Splits(**given), folder, AutoSettings(settings=(*QUICK, *settings)), log=said.append)
    return json.loads((folder / "run.json").read_text())["identity"], said


@pytest.mark.integration
def test_it_trains_what_it_advises_and_says_why(tmp_path: Path) -> None:
    identity, said = run(tmp_path / "auto")
    assert identity["recipe"] == identity["why"]["recipe"] == "ensemble"
    assert "auto: the recipe is ensemble" in said
    assert all(f"  {reason}" in said for reason in identity["why"]["reasons"])
    assert "of the entities have no label" in identity["why"]["reasons"][0]
    config = load_recipe_config("ensemble", ["weak"], settings=QUICK)
    train("ensemble", Splits(weak=WEAK, dev=DEV), tmp_path / "named", config)
    assert weights(tmp_path / "auto") == weights(tmp_path / "named")


def test_advised_settings_are_taken_and_can_be_overruled(tmp_path: Path) -> None:
    complete = list(DEMO.train[:150])
    identity, said = run(tmp_path / "a", weak=complete, dev=DEV)
    assert (identity["recipe"], identity["config"]["head"]["threshold"]) == ("trust", "dev")
    assert "auto: the recipe is trust head.threshold=dev" in said
    identity, said = run(tmp_path / "b", "head.threshold=0.3", weak=complete, dev=DEV)
    assert identity["config"]["head"]["threshold"] == 0.3 and "auto: the recipe is trust" in said
    identity, said = run(tmp_path / "c", "head.kind=token", weak=complete, dev=DEV)
    assert identity["config"]["head"] == {**identity["config"]["head"], "kind": "token", "threshold": "argmax"}
    assert "auto: the recipe is trust" in said
    assert any("conflicts with your settings and is ignored" in line for line in said)


def test_a_file_overrules_advised_settings_too(tmp_path: Path) -> None:
    advice = Advice(recipe="trust", settings=("head.threshold=dev",), reasons=("So.",))
    file = tmp_path / "settings.toml"
    for text, threshold in (("[head]\nthreshold = 'argmax'\n", "argmax"), ("[head]\ndropout = 0.1\n", "dev")):
        file.write_text(text)
        config: Any = auto._build_config(advice, AutoSettings(file=file))[0]
        assert config.head.threshold == threshold
    assert config.head.dropout == 0.1


def test_settings_that_do_not_fit_are_one_sentence(tmp_path: Path) -> None:
    sentence = "there is no setting 'sampler'.* \\(auto chose the recipe ensemble; name another with --recipe if "
    with pytest.raises(ConfigError, match=sentence):
        run(tmp_path / "r", "sampler=weighted")
    with pytest.raises(ConfigError, match=r"head\.kind.*auto chose the recipe ensemble"):
        run(tmp_path / "r", "head.kind=token")
    assert not (tmp_path / "r").exists()


@pytest.mark.integration
def test_a_killed_run_resumes_to_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path / "whole", "train.checkpoint_seconds=0")
    left = 5

    def update(self: Any, *args: Any, then: Any = loop._Trainer._update) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            raise KeyboardInterrupt
        return then(self, *args)

    monkeypatch.setattr(loop._Trainer, "_update", update)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "killed", "train.checkpoint_seconds=0")
    monkeypatch.undo()
    run(tmp_path / "killed", "train.checkpoint_seconds=0")
    for name in ("run.json", "metrics.jsonl", "label_issues.jsonl", "model/model.safetensors"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "killed" / name).read_bytes(), name


@pytest.mark.integration
def test_a_run_resumes_with_the_recipe_it_was_started_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = run(tmp_path / "r")
    monkeypatch.setattr(auto, "advise", lambda *_: Advice(recipe="trust", reasons=("The rules have changed.",)))
    again, said = run(tmp_path / "r")
    assert again == first and "this run is already finished" in said and "auto: the recipe is ensemble" in said
    other, _ = run(tmp_path / "other")
    assert other["recipe"] == "trust"
    with pytest.raises(ConfigError, match=r"this folder holds another run \(data\.weak\.documents is 150"):
        run(tmp_path / "r", weak=WEAK[:-1], dev=DEV)


@pytest.mark.integration
def test_gold_that_comes_later_is_not_passed_over(tmp_path: Path) -> None:
    run(tmp_path / "r")
    with pytest.raises(ConfigError, match=r"started without --gold; with it the recipe would be needle"):
        run(tmp_path / "r", gold=DEMO.dev[100:250], weak=WEAK, dev=DEV)
    few = DEMO.dev[100:105]
    assert "this run is already finished" in run(tmp_path / "r", gold=few, weak=WEAK, dev=DEV)[1], "too little to learn"


@pytest.mark.integration
def test_why_it_was_chosen_does_not_make_it_another_run(tmp_path: Path) -> None:
    config = load_recipe_config("ensemble", ["weak"], settings=QUICK)
    run(tmp_path / "auto")
    said: list[str] = []
    train("ensemble", Splits(weak=WEAK, dev=DEV), tmp_path / "auto", config, log=said.append)
    assert "this run is already finished" in said
    train("ensemble", Splits(weak=WEAK, dev=DEV), tmp_path / "named", config)
    identity, said = run(tmp_path / "named")
    assert "this run is already finished" in said and "why" not in identity


@pytest.mark.parametrize("why", ["[]", '{"recipe": 3}', '{"recipe": "magic", "reasons": []}', '"x"', "null"])
def test_invalid_recorded_advice_is_ignored(tmp_path: Path, why: str) -> None:
    (tmp_path / "run.json").write_text('{"identity": {"recipe": "magic", "why": ' + why + "}}")
    with pytest.raises(ConfigError, match="this folder holds another run"):
        run(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", '{"identity": []}', '{"identity": 1}'])
def test_a_broken_description_is_no_traceback(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    assert stored_identity(tmp_path) is None


def test_the_encoder_has_a_say(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('[encoder]\nname = "hf:x"\n', encoding="utf-8")
    for asked, name in (
        (AutoSettings(), "auto"),
        (AutoSettings(settings=('encoder.name="hf:some"', "train.epochs=2")), "hf:some"),
        (AutoSettings(file=tmp_path / "c.toml"), "hf:x"),
        (AutoSettings(settings=("train.epochs=2",)), "auto"),
    ):
        assert auto.auto_encoder_name(asked) == name


@pytest.mark.parametrize("pretrained", [False, True])
def test_a_run_whose_encoder_comes_from_pretraining_counts_as_pretrained(pretrained: bool, tmp_path: Path) -> None:
    encoder: Any = TinyEncoder(TinyConfig(pretrained=pretrained))
    for number in range(2):  # the second run begins with the encoder of the first
        head = build_head({"kind": "span", "labels": ["LOC"], "widths": 2}, encoder.width)
        save(Tagger(Model(encoder, head)), tmp_path / str(number))
        name = f"run:{tmp_path / str(number)}"
        assert auto.names_pretrained(name, Splits(weak=WEAK)) is pretrained
        encoder = open_encoder(EncoderConfig(name=name), WEAK)
    wrong = DataProfile(weak=size_of(WEAK), dev=size_of(DEV), reference="dev", missing_rate=0.5, precision=0.5)
    assert advise(wrong, auto.names_pretrained(name, Splits(weak=WEAK))).recipe == (
        "roster" if pretrained else "ensemble"
    )


@pytest.mark.integration
def test_reviewed_documents_are_gold(tmp_path: Path) -> None:
    """Complete documents among the weak ones: gold if there are enough of them, weak documents otherwise."""
    reviewed = [*DEMO.train[:40], *WEAK[40:]]
    identity, said = run(tmp_path / "many", weak=reviewed)
    assert identity["recipe"] == "needle"
    assert {role: data["documents"] for role, data in identity["data"].items()} == {"weak": 110, "gold": 40}
    assert run(tmp_path / "many", weak=reviewed)[0] == identity
    identity, said = run(tmp_path / "few", "models=1", weak=[*DEMO.train[:5], *WEAK[5:]])
    assert identity["recipe"] == "ensemble" and identity["data"]["weak"]["documents"] == 150
    assert not any("ignoring" in line for line in said)


def test_gold_alone_is_supervised(tmp_path: Path) -> None:
    identity, _ = run(tmp_path, gold=DEMO.train[:30])
    assert identity["recipe"] == "supervised"


@pytest.mark.parametrize("weak", [[], [Document("1", "nothing"), Document("2", "")]])
def test_nothing_to_learn_from(tmp_path: Path, weak: list[Document]) -> None:
    with pytest.raises(TrainingError, match="no labeled spans"):
        run(tmp_path / "r", weak=weak)
    assert not (tmp_path / "r").exists()


def test_what_it_needs() -> None:
    with pytest.raises(ConfigError, match="recipe `auto` needs --weak or --gold"):
        load_recipe_config(AUTO, ["dev"])
    assert isinstance(load_recipe_config(AUTO, ["weak"]), AutoSettings)


def test_settings_that_nobody_can_read_are_refused_before_any_data_is_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a setting is written key=value"):
        load_recipe_config(AUTO, ["weak"], settings=["train.epochs"])
    with pytest.raises(ConfigError, match=r"none\.toml: cannot read this file"):
        load_recipe_config(AUTO, ["weak"], tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("a = = b")
    with pytest.raises(ConfigError, match=r"bad\.toml: this is not TOML"):
        load_recipe_config(AUTO, ["weak"], tmp_path / "bad.toml")


def test_a_finished_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"name the recipe, or pass AutoSettings\("):
        train(AUTO, Splits(weak=WEAK), tmp_path, RecipeConfig())


@pytest.mark.integration
def test_it_is_the_default_of_the_function(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    said: list[str] = []
    tagger = train_by_api(out=tmp_path / "r", weak=WEAK, settings=QUICK, progress=said.append)
    assert tagger.labels and "auto: the recipe is ensemble" in said
