"""`python -m benchmarks.removal`: exploration with and without the angle-based vector, compared with gold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import removal
from lacuner.audit.filtered_tokens import FilteredTokens

SPEC = """
seeds = [1]
settings = ["train.epochs=1"]
[data.demo]
sentences = 60
[noise]
masked = [0.0, 0.5]
[recipes.two_step]
recipe = "two_step"
"""


def test_precision_at_three_shares() -> None:
    values = np.array([[0.4, 0.1, 0.2, 0.9, 0.3, 0.8, 0.7, 0.6]])
    missing = np.array([True, True, False, False, True, False, False, True])
    removed = np.array([False, True, True, False, False, False, False, False])
    judged = FilteredTokens(np.array([3]), values, removed, missing)
    assert removal.precisions(judged) == (0.5, 0.5, 0.75)


@pytest.mark.integration
def test_one_row_per_masking_rate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text(SPEC)
    assert removal.main([str(spec), "--data", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert "demo 0.5 1" in shown.err
    *_, row, mean = shown.out.strip().splitlines()
    assert row.split("|")[2:] == mean.split("|")[2:], "one place is its own mean"
    cells = [float(cell) for cell in row.split("|")[2:-1]]
    assert len(cells) == 6
    assert all(0 <= cell <= 100 for cell in cells)
    assert cells[::2] != cells[1::2], "the vector changes the exploration"


def test_a_spec_without_masking_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text(SPEC.replace("[0.0, 0.5]", "[0.0]"))
    assert removal.main([str(spec), "--data", str(tmp_path)]) == 2
    assert "removes no labels" in capsys.readouterr().err
