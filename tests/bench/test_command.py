"""The command `lacuner bench`: arguments, output and exit status."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from lacuner.cli.bench import bench
from lacuner.errors import ConfigError
from tests.bench.conftest import SMALL

app = typer.Typer()
app.command()(bench)
FAST = SMALL.replace("[1, 2]", "[1]").split("[recipes.trust]")[0]


@pytest.mark.usefixtures("undrawn")
def test_it_writes_a_report_and_continues(inline: list[str], spec_file: Callable[[str], Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    args = [str(spec_file(FAST)), "--out", str(out), "--data", str(tmp_path)]
    nothing = CliRunner().invoke(app, [*args, "--no-run"])
    assert nothing.exit_code == 0 and "no cell has been run yet" in nothing.output and not inline
    first = CliRunner().invoke(app, args)
    assert first.exit_code == 0 and "1 of 1 cells finished, 0 failed" in first.output, first.output
    again = CliRunner().invoke(app, [*args, "--json"])
    found = json.loads(again.stdout)
    assert (found["cells"], found["finished"], found["ran"], found["failed"]) == (1, 1, 0, {})
    [line] = found["lines"]
    assert line["recipe"] == "dictionary" and line["n"] == 1 and 0 < line["f1"]["mean"] < 1
    assert len(inline) == 1
    more = CliRunner().invoke(app, [*args, "--set", "noise.masked=[0.5, 0.6]", "--json"])
    assert json.loads(more.stdout)["ran"] == 1
    assert "--set" in (out / "table.md").read_text(encoding="utf-8"), "the command says what was set"


@pytest.mark.usefixtures("undrawn")
def test_a_failed_cell_is_status_1(inline: list[str], spec_file: Callable[[str], Path], tmp_path: Path) -> None:
    (tmp_path / "bare.conll").write_text("nothing\tO\n\n", encoding="utf-8")
    text = FAST.replace("[data.demo]", '[data.bare]\nfolder = "."\ngold = "bare.conll"\ntest = "bare.conll"')
    done = CliRunner().invoke(app, [str(spec_file(text)), "--out", str(tmp_path / "out"), "--data", str(tmp_path)])
    assert done.exit_code == 1 and "0 of 1 cells finished, 1 failed" in done.output
    assert (tmp_path / "out" / "report.html").exists()


def test_a_wrong_spec_gets_one_sentence(spec_file: Callable[[str], Path], tmp_path: Path) -> None:
    done = CliRunner().invoke(app, [str(spec_file(FAST.replace("[0.5]", "[5.0]"))), "--out", str(tmp_path / "out")])
    assert isinstance(done.exception, ConfigError) and "noise.masked.0" in str(done.exception)
    assert not (tmp_path / "out").exists()


BUSY = """
import signal
import sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
from lacuner.bench import runner
from lacuner.bench.spec import load_spec
sys.executable = sys.argv[2]
out = Path(sys.argv[3])
bench = runner.open_bench(load_spec(sys.argv[1], Path()), Path(), out)
print("ready", flush=True)
runner.run_bench(bench, Path(), out, 1)
"""


@pytest.mark.integration
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_no_cell_outlives_its_bench(sign: signal.Signals, spec_file: Callable[[str], Path], tmp_path: Path) -> None:
    """Stopped by hand or killed: what was running is gone, and is not taken for a failure."""
    fake, pid = tmp_path / "python", tmp_path / "pid"
    fake.write_text(f"#!/bin/sh\necho $$ > {pid}.new; mv {pid}.new {pid}\nread request\nread end\n", encoding="utf-8")
    fake.chmod(0o755)
    command = [sys.executable, "-c", BUSY, str(spec_file(FAST)), str(fake), str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as parent:
        deadline = time.monotonic() + 120
        while not pid.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        parent.send_signal(sign)
        try:
            assert parent.wait(timeout=60) != 0
        finally:
            parent.kill()
    cell = Path("/proc") / pid.read_text(encoding="ascii").strip()
    while cell.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not cell.exists()
    assert not list((tmp_path / "out" / "cells").glob("*.json"))
