"""Child processes: what they log, how they fail, and that they end with their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lacuner.processes import AHEAD, Request, map_in_order, read_request, run_requests

pytestmark = pytest.mark.integration

PROGRAM = "tests.test_processes"


@pytest.fixture(autouse=True)
def importable_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Child processes do not import from the current folder, so this module must be on their path."""
    root = str(Path(__file__).resolve().parent.parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]))


def main() -> None:
    """What a child process does with its request."""
    request = read_request()
    print(f"request {request['number']} with {os.environ['OMP_NUM_THREADS']} threads", flush=True)
    if "exit" in request:
        sys.exit(request["exit"])
    if "kill" in request and not Path(request["kill"]).exists():  # what has started this process, once
        Path(request["kill"]).touch()
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
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
        deadline = time.monotonic() + 30
        while not (tmp_path / "started").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        raise KeyboardInterrupt

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_requests(PROGRAM, requests, 2, on_exit, lambda _: None)
    assert (tmp_path / "started").exists() and time.monotonic() - start < 40 and finished == [0]


def test_a_child_ends_with_its_parent() -> None:
    command = [sys.executable, "-c", f"from {PROGRAM} import main; main()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as child:
        assert child.stdin is not None
        child.stdin.write('{"number": 1, "touch": "/dev/null"}\n')
        child.stdin.close()
        assert child.wait(timeout=40) == 3


def double(number: int) -> int:
    return 2 * number


def test_only_a_few_items_are_under_way() -> None:
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        for number in range(100):
            taken += 1
            yield number

    given = 0
    for number, result in map_in_order(items(), double, 2):
        assert result == 2 * number == 2 * given
        given += 1
        assert taken - given <= 2 * AHEAD
    assert given == 100


def fail(number: int) -> int:
    raise ValueError(str(number))


def test_an_error_in_a_worker_is_an_error_here() -> None:
    with pytest.raises(ValueError, match="1"):
        list(map_in_order([1, 2, 3], fail, 2))


KILLED = """
import os, time
from lacuner.processes import map_in_order

def work(number):
    if number > 2:
        time.sleep(60)
    time.sleep(0.2)
    return os.getpid()

for _, worker in map_in_order(range(9), work, 2):
    print(worker, flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_workers_end_with_their_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = {int(parent.stdout.readline()) for _ in range(2)}
        parent.send_signal(signal.SIGTERM)
        assert parent.wait(10) == -signal.SIGTERM
        deadline = time.monotonic() + 10
        while any(map(alive, workers)) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not any(map(alive, workers))


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False
