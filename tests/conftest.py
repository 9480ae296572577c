"""What all tests share: no network, the rules of the unit tier, and the benchmark data if it is there."""

from __future__ import annotations

import os
import platform
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import matplotlib.font_manager  # on a new machine its first import starts a process, to list the fonts
import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
UNIT_EPOCHS = 2

# pytest imports lacuner from this checkout (`pythonpath` in pyproject.toml); child processes must do the same
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
assert matplotlib.font_manager.fontManager
signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored in a job that a script runs in the background
platform.processor()  # starts a process the first time it is asked, which libraries do

settings.register_profile("lacuner", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("lacuner")


@pytest.fixture(autouse=True)
def no_network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening a network connection fails the test; an integration test may talk to its own server on 127.0.0.1."""
    connect = socket.socket.connect
    may_use_loopback = request.node.get_closest_marker("integration") is not None

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a test opened a network connection")

    def connect_to_loopback(own: socket.socket, address: Any) -> None:
        if not may_use_loopback or not isinstance(address, tuple) or address[0] != "127.0.0.1":
            refuse()
        connect(own, address)

    monkeypatch.setattr(socket.socket, "connect", connect_to_loopback)
    monkeypatch.setattr(socket, "create_connection", refuse)


@pytest.fixture(autouse=True)
def no_shipped_encoder(request: pytest.FixtureRequest) -> Iterator[None]:
    """`auto` trains `tiny` from scratch, which is faster; tests of the shipped encoders are marked `shipped`.

    Child processes do not know of this: a test that starts some, but not through the trainer, names its encoder.
    """
    with pytest.MonkeyPatch.context() as patch:  # of its own: a test may undo its patches
        if request.node.get_closest_marker("shipped") is None and not isinstance(request.node, pytest.DoctestItem):
            patch.setattr("lacuner.models.encoders.auto.SHIPPED", ())
        yield


@pytest.fixture(autouse=True)
def unit_tier(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that is neither `integration` nor `slow` starts no process and trains for at most two epochs."""
    if request.node.get_closest_marker("integration") or request.node.get_closest_marker("slow"):
        return

    def refuse(*_: object, **__: object) -> None:
        pytest.fail("a unit test started a process: mark it `integration`")

    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
    monkeypatch.setattr(subprocess.Popen, "__del__", lambda _: None)
    monkeypatch.setattr(BaseProcess, "start", refuse)
    monkeypatch.setattr(os, "fork", refuse)
    if "torch" in sys.modules:  # otherwise the test trains nothing
        from lacuner.training.run_folder import Stage

        record = Stage.record

        def record_few(stage: Stage, rows: list[dict[str, Any]]) -> None:
            if len(rows) > UNIT_EPOCHS:
                pytest.fail(f"a unit test trained for more than {UNIT_EPOCHS} epochs: mark it `integration`")
            record(stage, rows)

        monkeypatch.setattr(Stage, "record", record_few)


@pytest.fixture(scope="session")
def data() -> Callable[[str], Path]:
    """A file of the benchmark data, which is not part of the repository; tests skip without it."""

    def find(name: str) -> Path:
        path = ROOT.parent / "shared" / "data" / name
        if not path.exists():
            pytest.skip(f"no benchmark data: ../shared/data/{name}")
        return path

    return find
