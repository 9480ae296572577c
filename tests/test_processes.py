"""Child processes: what they log, how they fail, and that they end with their parent."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lacuner.processes import Request, read_request, run_requests

pytestmark = pytest.mark.integration

PROGRAM = "tests.test_processes"


def main() -> None:
    """What a child process does with its request."""
    request = read_request()
    print(f"request {request['number']} with {os.environ['OMP_NUM_THREADS']} threads", flush=True)
    if "exit" in request:
        sys.exit(request["exit"])
    if "touch" in request:
        Path(request["touch"]).touch()
        time.sleep(60)


def test_requests_run_in_processes_and_failures_are_reported() -> None:
    results: dict[int, str | None] = {}
    lines: list[str] = []
    requests: list[Request] = [{"number": 0}, {"number": 1, "exit": 7}, {"number": 2, "exit": "no luck"}]

    def on_exit(request: Request, failure: str | None) -> None:
        results[request["number"]] = failure

    run_requests(PROGRAM, requests, 2, on_exit, lines.append, threads=3)
    assert results == {
        0: None,
        1: "the process ended with status 7",
        2: "the process ended with status 1: no luck",
    }
    assert sorted(lines) == [f"request {number} with 3 threads" for number in range(3)]


def test_an_interruption_kills_all_children(tmp_path: Path) -> None:
    """The first child ends; the callback raises while the others would run for another minute."""
    requests: list[Request] = [{"number": 0}, {"number": 1, "touch": str(tmp_path / "started")}, {"number": 2}]
    finished = []

    def on_exit(request: Request, failure: str | None) -> None:
        finished.append(request["number"])
        while not (tmp_path / "started").exists():
            time.sleep(0.01)
        raise KeyboardInterrupt

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_requests(PROGRAM, requests, 2, on_exit, lambda _: None)
    assert time.monotonic() - start < 40 and finished == [0]


def test_a_child_ends_with_its_parent() -> None:
    command = [sys.executable, "-c", f"from {PROGRAM} import main; main()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as child:
        assert child.stdin is not None
        child.stdin.write('{"number": 1, "touch": "/dev/null"}\n')
        child.stdin.close()
        assert child.wait(timeout=40) == 3
