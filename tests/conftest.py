"""What all tests share: no network, and the measuring data if it is there."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

settings.register_profile("lacuner", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("lacuner")


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for the network in a test gets an error."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a test asked for the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)


@pytest.fixture(scope="session")
def data() -> Callable[[str], Path]:
    """A file of the measuring data, which is not part of the project."""

    def find(name: str) -> Path:
        path = ROOT.parent / "shared" / "data" / name
        if not path.exists():
            pytest.skip(f"the measuring data is not here: ../shared/data/{name}")
        return path

    return find
