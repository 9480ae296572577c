"""Coverage-guided fuzzing of every target, with a fixed budget. It needs atheris, and minutes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.fuzz.targets import TARGETS

pytestmark = pytest.mark.slow
RUNS, SECONDS = 4000, 60
OPTIONS = [
    f"-runs={RUNS}",
    f"-max_total_time={SECONDS}",
    "-max_len=20000",
    "-seed=1",
    "-timeout=30",
    "-rss_limit_mb=4096",
]


@pytest.mark.parametrize("name", TARGETS)
def test_no_input_breaks_a_reader(name: str, tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="atheris is not installed: no wheel for this platform")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ["PYTHONPATH"]])}
    (tmp_path / "found").mkdir()  # libFuzzer writes new inputs to the first folder
    command = [sys.executable, "-m", "tests.fuzz.run_atheris", name, *OPTIONS, "found"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    crashes = [file.read_bytes()[:500] for file in tmp_path.iterdir() if file.is_file()]
    assert done.returncode == 0, f"{crashes}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    assert "DONE" in done.stderr, "the budget was used up"
