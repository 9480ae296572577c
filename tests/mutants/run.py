"""Run the tests of each mutant against a copy of the checkout, and print the survivors.

Usage: python tests/mutants/run.py [NAME_PART...]
Only mutants whose name contains one of the parts are run. Exit status 1 if one survives, or no longer fits the code.

Each mutant is tested in a forked child: the large libraries are loaded once, here, and lacuner in the child only. So
this program must not import lacuner, or anything below `tests` but the list of mutants.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

import hypothesis  # noqa: F401 (loaded for the children)
import matplotlib.font_manager  # noqa: F401
import numpy  # noqa: F401
import pydantic  # noqa: F401
import pytest
import torch

with contextlib.suppress(ImportError):
    import transformers.models.bert  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))
from mutants import MUTANTS, Mutant  # noqa: E402

FAILED, SURVIVED = int(pytest.ExitCode.TESTS_FAILED), int(pytest.ExitCode.OK)
SECONDS = 300


def copy_checkout(target: Path) -> None:
    """Copy what the tests need; everything but the source is linked."""
    (target / "src").mkdir(parents=True)
    weights = ROOT / "src" / "lacuner" / "models" / "encoders" / "weights"
    shutil.copytree(
        ROOT / "src" / "lacuner", target / "src" / "lacuner", ignore=shutil.ignore_patterns("weights", "__pycache__")
    )
    (target / "src" / "lacuner" / "models" / "encoders" / "weights").symlink_to(weights)
    shutil.copytree(ROOT / "tests", target / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "docs", "benchmarks", "scripts"):
        (target / name).symlink_to(ROOT / name)


def run_tests(copy: Path, mutant: Mutant) -> int:
    """Exit status of pytest in a forked child; a child that takes too long counts as failed."""
    child = os.fork()
    if child == 0:
        import signal

        signal.alarm(SECONDS)
        os.chdir(copy)
        sys.dont_write_bytecode = True
        log = (copy / "log.txt").open("w")
        with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
            options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "", "--rootdir", str(copy)]
            status = int(pytest.main([*options, "-c", str(copy / "pyproject.toml"), *mutant.tests]))
        log.close()
        os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return FAILED if status == -14 else status  # SIGALRM: an endless loop is noticed


def mutate(copy: Path, mutant: Mutant) -> str | None:
    """Change the module; returns what is wrong with the mutant, if anything."""
    file = copy / "src" / "lacuner" / mutant.module
    text = file.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        return f"{mutant.old!r} occurs {text.count(mutant.old)} times in {mutant.module}: adapt this mutant"
    file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    return None


def main() -> int:
    torch.set_num_threads(1)
    parts = sys.argv[1:]
    chosen = [mutant for mutant in MUTANTS if not parts or any(part in mutant.name for part in parts)]
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        copy_checkout(copy)
        for mutant in chosen:
            problem = mutate(copy, mutant)
            if problem is None:
                status = run_tests(copy, mutant)
                log = (copy / "log.txt").read_text(encoding="utf-8", errors="replace")
                if status == SURVIVED:
                    problem = f"SURVIVED {', '.join(mutant.tests)}"
                elif status != FAILED:
                    problem = f"the tests did not run (status {status}): {log[-2000:]}"
                shutil.copy(ROOT / "src" / "lacuner" / mutant.module, copy / "src" / "lacuner" / mutant.module)
            bad += problem is not None
            print(f"{mutant.name}: {problem or 'killed'}", flush=True)
        print(f"{len(chosen)} mutants, {bad} survivors")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
