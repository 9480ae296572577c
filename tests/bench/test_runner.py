"""Each cell runs once, in its own process, whatever happens to the others."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lacuner import processes
from lacuner.bench import runner as run
from lacuner.bench.datasets import DataSet
from lacuner.bench.grid import Cell
from lacuner.bench.report import COST, write_results
from lacuner.bench.rows import pack_counts, unpack_counts
from lacuner.bench.runner import open_bench, run_bench
from lacuner.bench.spec import DataSpec, NoiseLevel, Spec, load_spec
from lacuner.bench.worker import run_cell
from lacuner.config import load_config
from lacuner.errors import ConfigError
from lacuner.processes import lock_folder
from lacuner.recipes import RECIPES
from lacuner.trainer.train import train
from tests.bench.conftest import SMALL
from tests.conftest import ROOT

BENCH = """
import sys
from pathlib import Path
from lacuner.bench import report as files
from lacuner.bench.runner import open_bench, run_bench
from lacuner.bench.spec import load_spec
files.bench_figures = lambda *_: []  # drawing takes longer than all the rest
spec, out = map(Path, sys.argv[1:])
bench = open_bench(load_spec(spec, Path()), Path(), out)
run_bench(bench, Path(), out, 1, lambda line: print(line, flush=True))
files.write_results(bench, out, "lacuner bench")
"""


def table(out: Path) -> str:
    return (out / "table.md").read_text(encoding="utf-8").split(f"## {COST}")[0]


def rows(out: Path) -> list[dict[str, Any]]:
    """Rows without what may differ: cost, and the fingerprint of the code, which may be edited meanwhile."""
    found = [json.loads(line) for line in (out / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    return [{name: value for name, value in row.items() if name not in ("cost", "code")} for row in found]


@pytest.mark.integration
@pytest.mark.usefixtures("undrawn")
def test_a_killed_bench_continues_and_ends_with_the_same_table(
    inline: list[str], spec_file: Callable[[str], Path], tmp_path: Path
) -> None:
    path = spec_file(SMALL.replace("[1, 2]", "[1]"))
    whole = open_bench(load_spec(path, tmp_path), tmp_path, tmp_path / "whole")
    run_bench(whole, tmp_path, tmp_path / "whole", 1)
    assert len(inline) == 2, "this one was not killed"
    write_results(whole, tmp_path / "whole", "lacuner bench")
    killed = tmp_path / "killed"
    command = [sys.executable, "-c", BENCH, str(path), str(killed)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as first:
        deadline = time.monotonic() + 120
        while not list(killed.glob("cells/*.json")) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(first.pid, signal.SIGKILL)
    assert len(list(killed.glob("cells/*.json"))) == 1
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "2 cells, 1 of them finished" in again.stdout
    assert re.search(r"^\[1/1\] demo, masked 0.5, tiny, trust, seed 1: P .* F1 .* s, 0:00 left$", again.stdout, re.M)
    assert table(killed) == table(tmp_path / "whole")
    assert rows(killed) == rows(tmp_path / "whole")
    assert not (killed / "running").exists(), "training folders are gone"
    [row] = [row for row in rows(killed) if row["cell"]["recipe"] == "trust"]
    assert row["commands"][-2].startswith("OMP_NUM_THREADS=1 lacuner train --recipe trust --weak masked.jsonl")
    assert row["shown_as"] == [["masked 0.5", "tiny", "trust"]] and row["versions"]["torch"]


@pytest.mark.integration
def test_a_small_version_of_the_quick_bench(inline: list[str], tmp_path: Path) -> None:
    small = ("seeds=[1]", 'settings=["train.epochs=1", "head.kind=span"]', "data.demo.sentences=40")
    spec = load_spec(ROOT / "benchmarks" / "quick.toml", tmp_path, (*small, "noise.masked=[0.0, 0.5]"))
    bench = open_bench(spec, tmp_path, tmp_path)
    run_bench(bench, tmp_path, tmp_path, 1)
    assert len(inline) == 2 + 1 + 2 + 2 + 2 + 1 + 1 and not bench.failed
    lines = write_results(bench, tmp_path, "lacuner bench")
    assert len(lines) == 14
    for name in ("results.jsonl", "table.md", "report.html", "pictures/f1-against-masking.svg"):
        assert (tmp_path / name).stat().st_size > 500
    assert (tmp_path / "results.jsonl").stat().st_size < 80_000


@pytest.mark.usefixtures("undrawn")
def test_a_bench_continues_from_results_jsonl_alone(
    inline: list[str], load: Callable[[str], Spec], tmp_path: Path
) -> None:
    spec = load(
        SMALL.replace("[recipes.trust]", "[recipes.other]")
        .replace('"trust"', '"dictionary"')
        .split('settings = ["head')[0]
    )
    bench = open_bench(spec, tmp_path, tmp_path / "a")
    run_bench(bench, tmp_path, tmp_path / "a", 1)
    assert len(inline) == 2, "the same cell under two names runs once"
    write_results(bench, tmp_path / "a", "x")
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "results.jsonl").rename(tmp_path / "b" / "results.jsonl")
    again = open_bench(spec, tmp_path, tmp_path / "b")
    run_bench(again, tmp_path, tmp_path / "b", 1)
    assert len(inline) == 2 and len(again.finished) == 2


@pytest.mark.usefixtures("undrawn")
def test_a_failing_cell_is_recorded_and_does_not_stop_others(
    inline: list[str], load: Callable[[str], Spec], tmp_path: Path
) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "bare.conll").write_text("nothing\tO\nhere\tO\n\n", encoding="utf-8")
    files = 'folder = "x"\ngold = "bare.conll"\ntest = "bare.conll"\n'
    spec = load(SMALL.replace("[data.demo]", f"[data.bare]\n{files}[data.demo]").replace("[1, 2]", "[1]"))
    bench = open_bench(spec, tmp_path, tmp_path)
    said: list[str] = []
    run_bench(bench, tmp_path, tmp_path, 1, said.append)
    assert len(bench.failed) == 2 and len(bench.finished) == 2
    assert all("no labeled span" in row["error"] for row in bench.failed.values())
    assert sum("failed: there is no labeled span" in line for line in said) == 2
    write_results(bench, tmp_path, "x")
    text = table(tmp_path)
    assert "## Failed" in text and "no labeled span" in text and "2 failed" in text
    run_bench(bench, tmp_path, tmp_path, 1)
    assert len(inline) == 6, "failed cells are tried again, finished ones are not"


@pytest.mark.integration
def test_a_process_that_dies_is_a_failed_cell(
    load: Callable[[str], Spec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = load(SMALL.replace("[1, 2]", "[1]"))
    bench = open_bench(spec, tmp_path, tmp_path)
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho out of luck >&2\nkill -9 $$\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(processes.sys, "executable", str(program))
    run_bench(bench, tmp_path, tmp_path, 2)
    assert [row["error"] for row in bench.failed.values()] == ["the process was killed by signal 9: out of luck"] * 2


def test_a_changed_default_makes_a_row_stale(inline: list[str], load: Callable[[str], Spec], tmp_path: Path) -> None:
    bench = open_bench(load(SMALL), tmp_path, tmp_path)
    cell = next(cell for cell in bench.cells.values() if cell.recipe == "trust")
    assert run._same_config({"config": cell.config}, cell)
    config = json.loads(json.dumps(cell.config))
    del config["train"]["clip"]
    assert run._same_config({"config": config}, cell), "a setting that did not exist then"
    config["train"]["warmup"] = 0.5
    assert not run._same_config({"config": config}, cell)


def test_another_encoder_of_the_same_name_makes_a_row_stale(
    inline: list[str], load: Callable[[str], Spec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, out = load(SMALL), tmp_path / "out"
    bench = open_bench(spec, tmp_path, out)
    run_bench(bench, tmp_path, out)
    assert not any("contents" in row for row in bench.rows.values()), "tiny is what it is called"
    with_encoder = [row for row in bench.rows.values() if "encoder" in row["config"]]
    assert 0 < len(with_encoder) < len(bench.rows)
    for row in with_encoder:
        row["contents"] = {"encoder.name": "as it was"}
    (out / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in bench.rows.values()))
    shutil.rmtree(out / "cells")
    for now, stale in (("as it was", 0), ("another", len(with_encoder)), (None, 0)):
        monkeypatch.setattr(run, "_fingerprint", lambda _, now=now: now)
        again = open_bench(spec, tmp_path, out)
        assert again.outdated == stale and len(again.finished) == len(bench.rows) - stale


def test_two_benches_do_not_share_a_folder(load: Callable[[str], Spec], tmp_path: Path) -> None:
    bench = open_bench(load(SMALL), tmp_path, tmp_path)
    with lock_folder(tmp_path), pytest.raises(ConfigError, match="another process"):
        run_bench(bench, tmp_path, tmp_path)


@pytest.mark.usefixtures("inline", "undrawn")
def test_the_key_of_a_row_is_never_a_path(load: Callable[[str], Spec], tmp_path: Path) -> None:
    """A results file from someone else must not name files outside of the folder."""
    out, precious = tmp_path / "a" / "out", tmp_path / "precious.json"
    out.mkdir(parents=True)
    spec = load(SMALL)
    bench = open_bench(spec, tmp_path, out)
    for key in ("../../../precious", str(tmp_path / "precious"), "", "0" * 19 + "/", ["x"], None):
        (out / "results.jsonl").write_text(json.dumps({"key": key}) + "\n", encoding="utf-8")
        with pytest.raises(ConfigError, match="row"):
            open_bench(spec, tmp_path, out)
        with pytest.raises(ConfigError, match="row"):
            write_results(bench, out, "lacuner bench")
    assert not precious.exists() and not (out / "cells").exists()


def test_without_noise_trust_and_oracle_are_supervised(tmp_path: Path) -> None:
    data = DataSet("demo", DataSpec(sentences=40), tmp_path)
    settings = ("train.epochs=2", "head.kind=token", "train.budget=128")
    found = []
    for recipe in ("supervised", "trust", "oracle"):
        noise = None if recipe == "supervised" else NoiseLevel("masked", 0.0)
        cell = Cell("demo", {}, 40, noise, recipe, settings, 1)
        row = run_cell(cell, data, tmp_path / recipe)
        weights = (tmp_path / recipe / "model" / "model.safetensors").read_bytes()
        found.append((weights, row["epochs"], row["test"], row["sentences_test"]))
    assert found[0] == found[1] == found[2]


def test_missampling_is_recorded_for_negative_sampling(tmp_path: Path) -> None:
    data = DataSet("demo", DataSpec(sentences=40), tmp_path)
    cell = Cell(
        "demo", {}, 40, NoiseLevel("masked", 0.5), "negative_sampling", ("train.epochs=2", "train.budget=256"), 1
    )
    row = run_cell(cell, data, tmp_path / "watched")
    assert [each["epoch"] for each in row["sampling"]] == [0, 1]
    assert all(0 < each["missampling"] < 0.2 and each["uncertainty"] > 0 for each in row["sampling"])
    splits = data.splits(("weak",), NoiseLevel("masked", 0.5), 1)
    train(cell.recipe, splits, tmp_path / "alone", load_config(RECIPES[cell.recipe].Config, settings=cell.settings), 1)
    watched, alone = (tmp_path / name / "model" / "model.safetensors" for name in ("watched", "alone"))
    assert watched.read_bytes() == alone.read_bytes(), "a watch changes nothing"


def test_no_missampling_without_gold_for_the_weak_sentences(tmp_path: Path) -> None:
    (tmp_path / "gold.conll").write_text("Mara\tB-P\nleft\tO\n\n", encoding="utf-8")
    (tmp_path / "weak.conll").write_text("Bram\tB-P\nleft\tO\n\nhe\tO\ncame\tO\n\n", encoding="utf-8")
    spec = DataSpec(folder=Path(), gold="gold.conll", weak="weak.conll", test="gold.conll")
    cell = Cell("x", {}, None, NoiseLevel("given", 0.0), "negative_sampling", ("train.epochs=1",), 1)
    row = run_cell(cell, DataSet("x", spec, tmp_path), tmp_path / "run")
    assert "sampling" not in row and row["test"]["f1"] >= 0


def test_the_specs_of_the_project_fit(tmp_path: Path) -> None:
    """Also where their data is not."""
    for name, recipes in (("uncertainty", 5), ("sampling_sweeps", 10)):
        for file in ("wikigold/train.gold.conll", "resume/train.conll"):
            for part in (file, f"{file.split('/')[0]}/dev.conll", f"{file.split('/')[0]}/test.conll"):
                (tmp_path / part).parent.mkdir(exist_ok=True)
                (tmp_path / part).touch()
        spec = load_spec(ROOT / "benchmarks" / f"{name}.toml", tmp_path)
        assert len(spec.recipes) == recipes and {each.recipe for each in spec.recipes.values()} == {"negative_sampling"}


def test_counts_are_packed_without_loss() -> None:
    import numpy as np

    counts = np.random.default_rng(1).integers(0, 300, (1000, 3))
    assert (unpack_counts(pack_counts(counts)) == counts).all()
    assert len(pack_counts(np.minimum(counts, 2))) < 1200
