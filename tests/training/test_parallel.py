"""Models learned side by side, in processes: the same as one after another, and nothing is lost when one dies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from lacuner import processes
from lacuner.training import parallel as side_by_side
from tests.recipes.test_roster import run_roster, stages

pytestmark = pytest.mark.integration


@pytest.fixture
def threads() -> Iterator[None]:
    """Whatever a test sets, afterwards it is as before."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def learned(folder: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Train as if there were so many cores; what was said."""
    said: list[str] = []
    monkeypatch.setattr(side_by_side.torch, "get_num_threads", lambda: count)
    run_roster(folder, say=said.append)
    monkeypatch.undo()
    return said


def test_the_same_model_as_one_after_another(tmp_path: Path, threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any("a process of its own" in line for line in learned(tmp_path / "one", 1, monkeypatch))
    said = learned(tmp_path / "two", 2, monkeypatch)
    assert any("2 models, 2 at a time" in line for line in said)
    assert {line.split(":")[0] for line in said if "epoch 1/" in line} >= {"robust/1", "robust/2"}
    assert stages(tmp_path / "one") == stages(tmp_path / "two")
    for name in ("model/model.safetensors", "metrics.jsonl", "removed.jsonl", "run.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_what_a_process_does_not_finish_is_learned_here(
    tmp_path: Path, threads: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned(tmp_path / "one", 1, monkeypatch)
    monkeypatch.setattr(processes.sys, "executable", "false")  # a program that only fails
    said = learned(tmp_path / "two", 2, monkeypatch)
    assert sum("trained in this process instead" in line for line in said) == 2
    model = "model/model.safetensors"
    assert (tmp_path / "one" / model).read_bytes() == (tmp_path / "two" / model).read_bytes()
