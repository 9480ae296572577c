"""T6: a run killed anywhere resumes with the same command and ends with the same bytes in every file."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lacuner.recipes import RECIPES
from tests.conftest import ROOT
from tests.recipes.test_recipes import heads

pytestmark = pytest.mark.integration

TRAINED = [name for name in RECIPES if name != "dictionary"]
SEVERAL_STAGES = ["cupul", "ensemble", "needle", "roster", "two_step"]
"""Recipes whose stages differ most; `make test-slow` kills all of them, at more points."""


def survive(folder: Path, recipe: str, points: list[str], head: str = "span") -> None:
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.training.kill", str(folder), recipe, head, *points]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    whole = result.pop("whole")
    assert len(whole) >= 7 and len(result) == len(points)
    assert sum(case["killed"] for case in result.values()) >= len(points) * 0.7, "most points must be reached"
    for point, case in result.items():
        assert case["digest"] == whole, point
        assert case["half_written"] == 0, "half-written files are removed"


def points(seed: int, count: int) -> list[str]:
    rng = random.Random(seed)
    made = {f"step:{n}" for n in rng.sample(range(1, 9), min(count // 2, 8))}
    made |= {f"write:{n}" for n in rng.sample(range(1, 20), min(count - 9, 19))} | {"stage:1"}
    return sorted(made)


def test_trust_survives_ten_kills(tmp_path: Path) -> None:
    cases = points(1, 12)
    assert len(cases) == 10
    survive(tmp_path, "trust", cases)


@pytest.mark.parametrize(
    "recipe",
    [
        recipe if recipe in ("ensemble", "needle") else pytest.param(recipe, marks=pytest.mark.slow)
        for recipe in SEVERAL_STAGES
    ],
)
def test_the_others_survive_one(recipe: str, tmp_path: Path) -> None:
    survive(tmp_path, recipe, ["step:3"], heads(recipe)[0])


@pytest.mark.slow
@pytest.mark.parametrize(("recipe", "head"), [(recipe, head) for recipe in TRAINED for head in heads(recipe)])
def test_all_survive_twenty(recipe: str, head: str, tmp_path: Path) -> None:
    survive(tmp_path, recipe, points(2, 20), head)
