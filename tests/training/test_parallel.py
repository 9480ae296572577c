"""Members trained in parallel processes: the same bytes as in one process, and nothing is lost when one dies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from lacuner import processes
from lacuner.corpus.stored import store_documents
from lacuner.training import parallel
from lacuner.training.identity import set_complete
from tests.recipes.test_roster import WEAK, run_roster, stages

pytestmark = pytest.mark.integration


@pytest.fixture
def threads() -> Iterator[None]:
    """Restore the number of threads after a test."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def train_with_cores(folder: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Train as if there were so many cores; returns the lines of the log."""
    lines: list[str] = []
    monkeypatch.setattr(parallel.torch, "get_num_threads", lambda: count)
    run_roster(folder, log=lines.append)
    monkeypatch.undo()
    return lines


def test_the_same_bytes_as_in_one_process(tmp_path: Path, threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any("at a time" in line for line in train_with_cores(tmp_path / "one", 1, monkeypatch))
    lines = train_with_cores(tmp_path / "two", 2, monkeypatch)
    assert any("2 models, 2 at a time" in line for line in lines)
    assert {line.split(":")[0] for line in lines if "epoch 1/" in line} >= {"robust/1", "robust/2"}
    assert stages(tmp_path / "one") == stages(tmp_path / "two")
    for name in ("model/model.safetensors", "metrics.jsonl", "removed.jsonl", "run.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_members_read_stored_documents(tmp_path: Path, threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = store_documents(set_complete(WEAK, False), tmp_path / "store", "test")
    quick = ["train.epochs=1", "ensemble_epochs=1", "guard=1.0", "removal_after=1", "models=2"]
    monkeypatch.setattr(parallel.torch, "get_num_threads", lambda: 1)
    run_roster(tmp_path / "one", *quick)
    monkeypatch.setattr(parallel.torch, "get_num_threads", lambda: 2)
    lines: list[str] = []
    run_roster(tmp_path / "two", *quick, docs=stored, log=lines.append)
    assert any("2 models, 2 at a time" in line for line in lines)
    assert not any("in this process" in line for line in lines)
    for name in ("model/model.safetensors", "metrics.jsonl", "removed.jsonl", "run.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_members_of_failed_processes_are_trained_in_the_main_process(
    tmp_path: Path, threads: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    train_with_cores(tmp_path / "one", 1, monkeypatch)
    monkeypatch.setattr(processes.sys, "executable", "false")  # a program that only fails
    lines = train_with_cores(tmp_path / "two", 2, monkeypatch)
    assert sum("training it in this process" in line for line in lines) == 2
    model = "model/model.safetensors"
    assert (tmp_path / "one" / model).read_bytes() == (tmp_path / "two" / model).read_bytes()
