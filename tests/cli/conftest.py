"""Running commands: in this process, because loading torch anew takes seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from lacuner.cli.main import main


class Done(NamedTuple):
    """What a command printed."""

    stdout: str
    stderr: str


Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in the test's folder and see that it ends with the right status."""
    monkeypatch.chdir(tmp_path)

    def go(*args: object, status: int = 0) -> Done:
        monkeypatch.setattr(sys, "argv", ["lacuner", *map(str, args)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
            sys.exit(0)  # a command that returns is done
        done = Done(*capsys.readouterr())
        assert (ended.value.code or 0) == status, done.stderr + done.stdout
        return done

    return go
