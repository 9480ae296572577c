"""Completed labels compared with gold: counts, figures and the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from lacuner.audit.completion import audit_completion, completion_figures, completion_rows
from lacuner.cli.main import app
from lacuner.config import load_config
from lacuner.corpus import write
from lacuner.data import Document, Span, Splits
from lacuner.errors import CorpusError, ModelFileError
from lacuner.evaluate.calibration import calibrate
from lacuner.recipes import needle
from lacuner.reporting.svg import figure_svg
from lacuner.techniques.label_completion import complete_all, write_completed, write_confidence
from lacuner.trainer.train import train
from tests.demo_corpus import demo_corpus


def doc(number: int, *spans: Span, complete: bool | None = True) -> Document:
    return Document(str(number), f"aa bb cc dd {number}", spans=spans, complete=complete)


A, B, C = Span(0, 2, "X"), Span(3, 5, "X"), Span(6, 8, "Y")
B_LONG = Span(3, 8, "X")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    weak = [doc(1, A, complete=False), doc(2, B, complete=False), doc(3, A, complete=False), doc(9, A, complete=False)]
    pseudo = [doc(1, C), doc(2, B_LONG), doc(3), doc(9)]
    done = complete_all(weak, pseudo, np.ones(4))
    write_completed(tmp_path, [], done, np.array([0.9, 0.4, 0.3, 0.8]))
    return tmp_path


def test_fixed_and_broken_entities_are_counted(folder: Path) -> None:
    gold = [doc(1, A, C), doc(2, B), doc(3, B), doc(4, A)]
    [(number, judged)] = audit_completion(folder, gold).items()
    assert number == 1 and judged.documents == 3 and judged.without_gold == 1
    assert judged.changes == {"fixed": 1, "broken": 1, "spoiled": 1, "mended": 0}
    assert judged.per_type == {
        "X": {"fixed": 0, "broken": 1, "spoiled": 1, "mended": 0},
        "Y": {"fixed": 1, "broken": 0, "spoiled": 0, "mended": 0},
    }
    assert (judged.weak.correct, judged.weak.predicted, judged.weak.gold) == (2, 3, 4)
    assert (judged.completed.correct, judged.completed.predicted, judged.completed.gold) == (2, 4, 4)
    assert judged.correct.tolist() == [True, False, False] and judged.confidence.tolist() == [0.9, 0.4, 0.3]
    mended = audit_completion(folder, [doc(2, Span(3, 8, "X"))])[1]
    assert mended.changes == {"fixed": 1, "broken": 0, "spoiled": 0, "mended": 1}
    assert json.loads(json.dumps(judged.as_json()))["fixed"] == 1 and completion_rows({"r": judged})[0][:2] == (
        "r",
        "3",
    )


def test_runs_without_confidence(folder: Path) -> None:
    done = complete_all([doc(1, A, complete=False)], [doc(1, C)], np.ones(1))
    write_completed(folder, [], done, None)
    judged = audit_completion(folder, [doc(1, A, C)])[1]
    assert judged.as_json()["confidence"] is None and completion_rows({"r": judged})[0][-2:] == ("", "1.000")
    assert [picture.name for picture in completion_figures({"r": judged})] == ["completion", "labels"]


def test_incomplete_gold_is_ignored(folder: Path) -> None:
    judged = audit_completion(folder, [doc(1, A, complete=False), doc(2, B)])[1]
    assert judged.documents == 1 and judged.without_gold == 3


def test_figures_are_valid_svg_and_reproducible(folder: Path) -> None:
    judged = audit_completion(folder, [doc(1, A, C), doc(2, B)])[1]
    for picture in completion_figures({"<one> & $two$": judged, "b": judged}):
        text = figure_svg(picture)
        assert ElementTree.fromstring(text).tag.endswith("svg") and text == figure_svg(picture)


def test_labels_and_calibration_are_plotted(folder: Path) -> None:
    rng = np.random.default_rng(0)
    scores = rng.random(200)
    write_confidence(folder, calibrate(scores, rng.random(200) < scores), rng.random(4))
    audit = audit_completion(folder, [doc(1, A, C), doc(2, B)])[1]
    assert audit.label_counts["completed"]["entities"] == {"X": 4, "Y": 1} and len(audit.held_out) == 20
    assert sum(size for _, _, size in audit.held_out) == 200
    figures = {figure.name: figure_svg(figure) for figure in completion_figures({"run": audit})}
    assert list(figures) == ["completion", "labels", "confidence"]
    assert ">X</text>" in figures["labels"] and ">pseudo</text>" in figures["labels"]
    assert "held-out gold" in figures["confidence"]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("labels.json", "[]"),
        ("labels.json", '{"labels": {"gold": {"words": 1, "entities": [1]}}}'),
        ("confidence.json", '{"calibration": {"bins": [{"score": 1}]}}'),
        ("confidence.json", "{"),
    ],
)
def test_damaged_files_of_a_run_are_refused(folder: Path, file: str, text: str) -> None:
    (folder / file).write_text(text, encoding="utf-8")
    with pytest.raises(ModelFileError, match=file):
        audit_completion(folder, [doc(1, A, C)])


def test_folders_without_completed_labels_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="none of the texts"):
        audit_completion(folder, [doc(77, A)])
    with pytest.raises(ModelFileError, match="no completed labels"):
        audit_completion(tmp_path / "nowhere", [])
    write([doc(1, A)], folder / "completed.jsonl")
    with pytest.raises(ModelFileError, match="not the completed documents"):
        audit_completion(folder, [doc(1, A)])


def test_the_command(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    docs = demo_corpus().train[:40]
    config = load_config(
        needle.Config,
        settings=["train.epochs=1", "noisy_epochs=1", "noise_aware=true", "completion=true", "parts=2", "rounds=2"],
    )
    weak = [replace(each, spans=each.spans[:1], complete=False) for each in docs[20:]]
    train("needle", Splits(gold=docs[:20], weak=weak), tmp_path / "run", config)
    write(docs, tmp_path / "gold.jsonl")
    command = ["audit", "completion", str(tmp_path / "run"), "--gold", str(tmp_path / "gold.jsonl")]
    shown = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "out")])
    assert shown.exit_code == 0 and "round 2" in shown.stdout and "fixed: gold entities" in shown.stdout
    assert {file.name for file in (tmp_path / "out").iterdir()} == {
        f"{name}.svg" for name in ("completion", "confidence", "labels")
    }
    found = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    judged = audit_completion(tmp_path / "run", docs)
    assert list(found["runs"].values()) == [judged[1].as_json(), judged[2].as_json()]
    assert judged[1].without_gold == 0 and judged[1].weak.precision == 1
