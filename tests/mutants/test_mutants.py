"""Every promise has a test that a broken promise fails: no mutant survives."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.mutants.mutants import MUTANTS


def test_every_mutant_fits_the_code() -> None:
    """A mutant whose piece of code is gone tests nothing."""
    assert len(MUTANTS) >= 40 and len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    for mutant in MUTANTS:
        text = (ROOT / "src" / "lacuner" / mutant.module).read_text(encoding="utf-8")
        assert text.count(mutant.old) == 1 and mutant.old != mutant.new, mutant.name
        for test in mutant.tests:
            file, _, name = test.partition("::")
            assert f"def {name}" in (ROOT / file).read_text(encoding="utf-8") if name else (ROOT / file).exists(), test


@pytest.mark.slow
def test_no_mutant_survives() -> None:
    command = [sys.executable, str(ROOT / "tests" / "mutants" / "run.py")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
