"""T6 for commands: killed anywhere, a command leaves no half-written file, and run again it ends as if never killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

WRITING = (
    *("convert", "check", "dictionary build", "annotate", "noise corrupt", "predict"),
    *("apply", "apply from disk", "audit sample", "audit sample from disk"),
    *(
        "audit export",
        "audit import",
        "audit issues",
        "audit sampling",
        "train",
        "pretrain",
        "distil",
        "export",
        "bench",
    ),
)


def survive(name: str, folder: Path, points: int) -> None:
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.cli.kill", str(folder), name, str(points)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["points"] >= points and result["files"] + result["calls"] > 0
    assert result["wrong"] == {}


@pytest.mark.integration
@pytest.mark.parametrize("name", ["annotate", "apply"])
def test_a_command_survives_three_kills(name: str, tmp_path: Path) -> None:
    survive(name, tmp_path, 3)


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITING)
def test_every_command_survives_twenty(name: str, tmp_path: Path) -> None:
    survive(name, tmp_path, 20)
