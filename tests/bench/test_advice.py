"""`python -m benchmarks.advice`: the advice compared with invented rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import advice
from lacuner.bench.datasets import DataSet, data_hashes
from lacuner.bench.grid import make_grid, unique_cells
from lacuner.bench.rows import pack_counts
from lacuner.bench.spec import Spec
from lacuner.bench.worker import describe_cell

SPEC = """
seeds = [1]
settings = ["train.epochs=1"]
[data.demo]
sentences = 400
[noise]
masked = [0.0, 0.4, 0.8]
[recipes.dictionary]
recipe = "dictionary"
[recipes.trust]
recipe = "trust"
[recipes."trust, threshold"]
recipe = "trust"
settings = ["head.threshold=dev"]
[recipes.uniform]
recipe = "negative_sampling"
[recipes.weighted]
recipe = "negative_sampling"
settings = ["sampler=weighted"]
[recipes.ensemble]
recipe = "ensemble"
[recipes.oracle]
recipe = "oracle"
[recipes.supervised]
recipe = "supervised"
"""
F1 = {"dictionary": 0.1, "trust": 0.2, "negative_sampling": 0.5, "ensemble": 0.495, "oracle": 0.9, "supervised": 0.8}


@pytest.fixture
def bench(load: Callable[[str], Spec], tmp_path: Path) -> Path:
    """A finished bench with invented scores; those of weighted negatives are a little better."""
    spec = load(SPEC)
    hashes = {name: data_hashes(name, data, tmp_path) for name, data in spec.data.items()}
    rows: list[dict[str, Any]] = []
    for cell in unique_cells(make_grid(spec, hashes)).values():
        f1 = (
            F1[cell.recipe]
            + 0.02 * ("sampler=weighted" in cell.settings)
            - 0.003 * ("head.threshold=dev" in cell.settings)
        )
        scores = {"precision": f1, "recall": f1, "f1": f1}
        rows.append(
            {
                **describe_cell(cell, DataSet("demo", spec.data["demo"], tmp_path)),
                "code": "x",
                "test": scores,
                "boundary": scores,
                "dev": scores,
                "epochs": [],
                "sentences_test": pack_counts(np.ones((1, 3), dtype=int)),
                "cost": {"train_cpu_seconds": 1.0, "test_cpu_seconds": 0.5, "peak_mb": 400.0},
            }
        )
    folder = tmp_path / "bench"
    folder.mkdir()
    (folder / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:-3]))
    (folder / "cells").mkdir()
    for row in rows[-3:]:
        (folder / "cells" / f"{row['key']}.json").write_text(json.dumps(row))
    key = "0" * 20
    (folder / "cells" / f"{key}.json").write_text(json.dumps({**rows[0], "key": key, "error": "died"}))
    return folder


def test_it_compares_the_advised_recipe_with_the_best(
    bench: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert advice.main([str(bench), "--data", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| demo")]
    found = {row[1]: row[6:] for row in rows}
    # without noise a bench runs supervised for trust; oracle and supervised do not compete elsewhere
    assert found["masked 0"] == ["trust; head.threshold=dev", "79.7", "trust", "80.0", "0.3"]
    assert found["masked 0.4"] == ["ensemble", "49.5", "negative_sampling", "52.0", "2.5"]
    assert found["masked 0.8"] == found["masked 0.4"]
    estimates = {row[1]: float(row[4]) for row in rows}
    assert estimates["masked 0"] < 10 and abs(estimates["masked 0.4"] - 40) < 8
    assert lines[-1].startswith("Within one point of the best under 1 of 3 conditions; on average 1.8 points below it")
    summaries = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "always" in line]
    assert ["always trust", "1", "3", "21.3", "32.0"] in summaries, summaries
    assert ["always ensemble", "0", "3", "11.8", "30.5"] in summaries


def test_recipes_that_were_not_run_are_counted(bench: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [json.loads(line) for line in (bench / "results.jsonl").read_text().splitlines()]
    kept = [row for row in rows if row["cell"]["recipe"] != "ensemble"]
    (bench / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept))
    assert advice.main([str(bench), "--data", str(tmp_path)]) == 0
    assert capsys.readouterr().out.strip().endswith("Under 1 the advised recipe was not run.")


def test_changed_files_and_missing_rows_are_errors(
    bench: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert advice.main([str(tmp_path / "nowhere"), "--data", str(tmp_path)]) == 2
    assert "no rows of a bench" in capsys.readouterr().err
    text = (bench / "results.jsonl").read_text()
    row = json.loads(text.splitlines()[0])
    (bench / "results.jsonl").write_text(text.replace(row["cell"]["hashes"]["demo"], "0" * 64))
    assert advice.main([str(bench), "--data", str(tmp_path)]) == 2
    assert "not those that this bench was run on" in capsys.readouterr().err
    (bench / "results.jsonl").write_text("{}\n")
    assert advice.main([str(bench), "--data", str(tmp_path)]) == 2
    assert "this row is no result of a bench" in capsys.readouterr().err
