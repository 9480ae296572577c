"""Tokens removed by two-step learning: figures, table and the command."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from lacuner.audit.filtered_tokens import SHARES, FilteredTokens, audit_filtered_tokens, removal_curve, removal_figures
from lacuner.cli.main import app
from lacuner.config import load_config
from lacuner.corpus import write
from lacuner.data import Splits
from lacuner.noise import Noise, corrupt
from lacuner.recipes import two_step
from lacuner.reporting.svg import figure_svg
from lacuner.trainer.train import train
from tests.demo_corpus import demo_corpus


@pytest.fixture
def judged() -> FilteredTokens:
    rng = np.random.default_rng(0)
    missing = rng.random(400) < 0.2
    values = rng.normal(size=(3, 400)) - 2 * missing
    return FilteredTokens(np.arange(1, 4), values, values[2] < -1, missing)


def test_removal_curve_equals_sorting_by_o_value(judged: FilteredTokens) -> None:
    rows = list(removal_curve({"a": judged, "b": judged}))
    assert len(rows) == 2 * len(SHARES) and [row[0] for row in rows] == ["a"] * len(SHARES) + ["b"] * len(SHARES)
    for _, share, precision, recall in rows:
        order = np.argsort(judged.values[2], kind="stable")[: int(np.ceil(round(share * 400, 9)))]
        assert precision == pytest.approx(judged.missing[order].mean())
        assert recall == pytest.approx(judged.missing[order].sum() / judged.missing.sum())


def test_figures_are_valid_svg_and_reproducible(judged: FilteredTokens) -> None:
    nothing = FilteredTokens(np.array([3]), np.zeros((1, 0)), np.zeros(0, dtype=bool), np.zeros(0, dtype=bool))
    last = FilteredTokens(judged.epochs[2:], judged.values[2:], judged.removed, judged.missing)
    drawn = removal_figures({"<one> & $two$": judged, "empty": nothing, "asked once": last})
    assert [picture.name for picture in drawn] == ["o-values", "removed-words"]
    for picture in drawn:
        text = figure_svg(picture)
        assert ElementTree.fromstring(text).tag.endswith("svg") and text == figure_svg(picture)


def test_the_command(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    gold = demo_corpus().train[:20]
    config = load_config(two_step.Config, settings=["train.epochs=1", "explore=1", "remove=0.1"])
    train("two_step", Splits(weak=list(corrupt(gold, Noise(drop=0.5)))), tmp_path / "run", config)
    write(gold, tmp_path / "gold.jsonl")
    command = ["audit", "removed", str(tmp_path / "run"), "--gold", str(tmp_path / "gold.jsonl")]
    shown = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "out")])
    assert shown.exit_code == 0 and "removed" in shown.stdout
    assert {file.name for file in (tmp_path / "out").iterdir()} == {"o-values.svg", "removed-words.svg"}
    found = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    [numbers] = found["runs"].values()
    judged = audit_filtered_tokens(tmp_path / "run", gold)
    assert numbers == judged.as_json() and numbers["removed"] > 0
    assert [row["share"] for row in found["shares"]] == pytest.approx(list(SHARES))
