"""Running commands, as in the tests of the command line, and a small corpus."""

from pathlib import Path

import pytest

from lacuner.scale.job import _opened
from tests.cli.conftest import run
from tests.scale.runs import TEXTS

__all__ = ["run"]


@pytest.fixture(autouse=True)
def nothing_opened() -> None:
    """Jobs of different tests are equal but for their log, so none may be kept open."""
    _opened.clear()


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n")
    return path
