"""`lacuner recipes --for`, and `lacuner train` without a recipe."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from lacuner.corpus import write
from lacuner.noise import Noise, corrupt
from lacuner.techniques.hidden_entries import OperatingPoint, write_operating_point
from tests.cli.conftest import Run
from tests.demo_corpus import demo_corpus


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    demo = demo_corpus()
    write(corrupt(demo.train[:300], Noise(drop=0.4)), tmp_path / "weak.jsonl")
    write(demo.train[300:400], tmp_path / "gold.jsonl")
    write(demo.dev[:200], tmp_path / "dev.jsonl")
    (tmp_path / "bare.jsonl").write_text('{"text": "nothing"}\n')
    (tmp_path / "empty.jsonl").write_text("")
    return tmp_path


def test_advice_for_people(run: Run, corpora: Path) -> None:
    write(corrupt(demo_corpus().train[:1000], Noise(drop=0.4)), corpora / "weak.jsonl")
    out = run("recipes", "--for", "weak.jsonl", "--dev", "dev.jsonl").stdout
    assert "1,000 documents" in out and "estimated missing entities" in out and "some mentions of all names" in out
    assert "\nensemble\n" in out and "of the entities have no label" in out
    assert out.splitlines()[-1] == "lacuner train --recipe ensemble --weak weak.jsonl --dev dev.jsonl --out run"


def test_advice_as_json_and_the_command_runs(run: Run, corpora: Path) -> None:
    done = run("recipes", "--for", "weak.jsonl", "--gold", "gold.jsonl", "--dev", "dev.jsonl", "--json")
    found = json.loads(done.stdout)
    assert found["recipe"] == "needle" and found["reasons"] and found["seen"]["gold"]["documents"] == 100
    assert found["seen"]["missing"] == pytest.approx(0.4, abs=0.1)
    alone = json.loads(run("recipes", "--for", "weak.jsonl", "--words", "space", "--json").stdout)
    command = shlex.split(alone["command"])
    assert command[:2] == ["lacuner", "train"] and command[-4:] == ["--words", "space", "--out", "run"]
    run(*command[1:], "--set", "train.epochs=1")
    assert (corpora / "run" / "model").is_dir()
    write_operating_point(OperatingPoint(0.5, missing=9, new=9, recall=0.4, f1=0.8, labels_f1=0.7), corpora / "run")
    again = run(*command[1:], "--set", "train.epochs=1", "--json")
    assert json.loads(again.stdout)["estimate"]["f1"] == 0.8


def test_train_takes_the_advice(run: Run, corpora: Path) -> None:
    args = ["--weak", "weak.jsonl", "--dev", "dev.jsonl", "--out", "run", "--set", "train.epochs=1", "--json"]
    done = run("train", *args)
    assert json.loads(done.stdout)["recipe"] == "ensemble"
    assert "auto: the recipe is ensemble" in done.stderr
    assert "already finished" in run("train", *args, "--recipe", "auto").stderr
    assert "already finished" in run("train", *args, "--recipe", "ensemble").stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["recipes", "--for", "bare.jsonl"], "no labeled spans"),
        (["recipes", "--for", "empty.jsonl"], "no labeled spans"),
        (["recipes", "--for", "bare.jsonl", "--dev", "dev.jsonl"], "no labeled spans"),
        (["recipes", "--dev", "dev.jsonl"], "needs --for WEAK or --gold"),
        (["recipes", "trust", "--for", "weak.jsonl"], "and no recipe name"),
        (["recipes", "--for", "nowhere.jsonl"], "there is no such file"),
        (["train", "--out", "r"], "recipe `auto` needs --weak or --gold"),
        (["train", "--weak", "bare.jsonl", "--out", "r"], "no labeled spans"),
        (["train", "--weak", "weak.jsonl", "--out", "r", "--set", "frequent=9"], "auto chose the recipe"),
    ],
)
def test_wrong_input_is_one_sentence(run: Run, corpora: Path, args: list[str], words: str) -> None:
    assert words in run(*args, status=2).stderr.strip().splitlines()[-1]


def test_the_list_says_how_to_choose(run: Run) -> None:
    assert "lacuner recipes --for WEAK" in run("recipes").stdout
