"""Rows of results: those in the repository fit the current settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from lacuner.bench.grid import cell_from_json
from lacuner.bench.rows import read_table
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
