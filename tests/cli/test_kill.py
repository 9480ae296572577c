"""T6 for commands: killed anywhere, a command leaves no half-written file, and run again it ends as if never killed."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lacuner.cli.main import COMMANDS
from lacuner.cli.options import flatten_options
from tests.conftest import ROOT

FROM_DISK = ("apply from disk", "audit sample from disk")


def writing_commands() -> list[str]:
    """The commands with an output: an option `--out`, a positional `OUT`, or a folder that they fill."""
    names = []
    for name, function in COMMANDS.items():
        parameters = inspect.signature(flatten_options(function)).parameters
        if {"out", "target"} & parameters.keys() or name in ("audit issues", "audit import"):
            names.append(name)
    return names


def test_every_command_that_writes_is_killed() -> None:
    from tests.cli.kill import COMMANDS as KILLED

    assert sorted((*writing_commands(), *FROM_DISK)) == sorted(KILLED)


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
@pytest.mark.parametrize("name", [*writing_commands(), *FROM_DISK])
def test_every_command_survives_twenty(name: str, tmp_path: Path) -> None:
    survive(name, tmp_path, 20)
