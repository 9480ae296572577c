"""Rows of results: those in the repository fit the current settings, and renamed settings were migrated."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from lacuner.bench.grid import cell_from_json, read_table
from lacuner.bench.runner import _same_config
from tests.conftest import ROOT

TABLES = sorted((ROOT / "benchmarks" / "results").glob("*/results.jsonl"))


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.parent.name)
def test_rows_have_current_settings_and_keys(path: Path) -> None:
    """A renamed setting or a changed default would make the bench run its cells again."""
    rows = read_table(path)
    assert rows
    for row in rows:
        needs_run = "run:" in " ".join(row["cell"]["settings"]) and row["cell"]["recipe"] == "roster"
        if not needs_run:  # roster's preset depends on the encoder, which is not in the repository
            cell = cell_from_json(row["cell"])
            assert cell.key == row["key"] and _same_config(row, cell), row["cell"]


@pytest.fixture(scope="module")
def migrate_results() -> ModuleType:
    spec = importlib.util.spec_from_file_location("migrate_results", ROOT / "scripts" / "migrate_results.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.parent.name)
def test_migration_is_idempotent(path: Path, migrate_results: ModuleType) -> None:
    for row in read_table(path):
        assert migrate_results.migrate_row(row) == row


def test_settings_are_renamed_in_rows(migrate_results: ModuleType) -> None:
    path = ROOT / "benchmarks" / "results" / "nrces" / "results.jsonl"
    new = next(row for row in read_table(path) if "ablation.negatives=ce" in row["cell"]["settings"])
    old = json.loads(json.dumps(new).replace("ablation.negatives=ce", "negatives=ce"))
    old["config"] |= old["config"].pop("ablation")
    old["key"] = "0" * 20
    assert migrate_results.migrate_row(old) == new
    old["config"]["w"] = 99.0
    assert migrate_results.migrate_row(old)["config"]["w"] == 99.0, "a default that has changed since stays visible"


def test_settings_are_renamed_in_specs(migrate_results: ModuleType) -> None:
    text = """settings = ["train.epochs=3", "self_rate=0.5"] # all
[recipes."a b"]
recipe = "roster"
settings = [
    "removal=false",
    "weigh_types=false",
    "q=0.7",
]
[recipes.c]
recipe = "negative_sampling"
settings = ["sampler=top"]
[recipes.d]
recipe = "trust"
settings = ["head.kind=token"]
"""
    migrated = migrate_results.migrate_spec(text)
    assert migrated == text.replace("self_rate", "ablation.self_rate").replace(
        '    "removal=false",\n    "weigh_types=false",\n', '    "ablation.removal=false",\n'
    ).replace("sampler=top", "ablation.rank=top")
    assert migrate_results.migrate_spec(migrated) == migrated
