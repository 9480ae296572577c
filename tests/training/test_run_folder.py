"""The run folder: whose it is, and what happens when nothing can be written (T6)."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from lacuner import atomic as files
from lacuner.atomic import temporary_folder
from lacuner.config import load_config
from lacuner.data import Splits
from lacuner.errors import ConfigError, LacunerError
from lacuner.models.storage import load
from lacuner.recipes import RECIPES
from lacuner.trainer.train import train
from lacuner.training import parallel
from lacuner.training import run_folder as run_module
from lacuner.training.run_folder import Run
from tests.conftest import ROOT
from tests.demo_corpus import demo_corpus

GOLD = demo_corpus().train[:20]


def test_of_two_that_begin_at_once_one_has_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, refused = tmp_path / "r", []

    def slow(path: Path, value: Any) -> None:
        with pytest.raises(ConfigError, match="another process"), Run(folder, {"seed": 2}).locked():
            pass
        refused.append(path.name)
        files.write_json(path, value)

    monkeypatch.setattr(run_module, "write_json", slow)
    with Run(folder, {"seed": 1}).locked():
        pass
    assert refused == ["run.json"]
    assert json.loads((folder / "run.json").read_text())["identity"] == {"seed": 1}
    with Run(folder, {"seed": 1}).locked():
        pass


def test_a_run_that_is_not_begun_touches_nothing(tmp_path: Path) -> None:
    Run(tmp_path / "r", {"seed": 1})
    assert not (tmp_path / "r").exists()
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ConfigError, match="not empty and not a run"), Run(tmp_path, {"seed": 1}).locked():
        pass
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"], "not even a lock"


def test_what_a_killed_process_left_in_a_new_folder_is_no_hindrance(tmp_path: Path) -> None:
    for name in (".lock", ".run.json.x1y2.part"):
        (tmp_path / name).write_text("half")
    with Run(tmp_path, {"seed": 1}).locked():
        assert sorted(file.name for file in tmp_path.iterdir()) == [".lock", "run.json"]


def digests(folder: Path) -> dict[str, str]:
    names = ("model/model.safetensors", "model/config.json", "metrics.jsonl", "label_issues.jsonl")
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}


def test_a_full_disk_leaves_the_last_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    settings = ["train.epochs=2", "train.budget=256", "train.checkpoint_seconds=0"]
    config = load_config(RECIPES["trust"].Config, settings=settings)
    sync, written, room = os.fsync, 0, 10**9

    def full(handle: int) -> None:
        nonlocal written
        written += 1
        if written > room:
            os.truncate(handle, os.fstat(handle).st_size // 2)  # it was half written when the room ended
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(handle)

    def go(folder: str) -> Any:
        return train("trust", Splits(weak=GOLD, dev=GOLD), tmp_path / folder, config)

    monkeypatch.setattr("lacuner.atomic.os.fsync", full)
    go("whole")
    total, cases = written, 0
    assert total > 15
    for some in range(0, total, total // 5):
        written, room, cases = 0, some, cases + 1
        place = f"room for {room}"
        with pytest.raises(LacunerError, match="No space left on device") as caught:
            go(place)
        assert "\n" not in str(caught.value) and str(tmp_path / place) in str(caught.value)
        assert not list((tmp_path / place).rglob(".*.part"))
        room = 10**9
        go(place)
        assert digests(tmp_path / place) == digests(tmp_path / "whole"), place
    assert cases >= 5


@pytest.mark.integration
def test_no_room_and_no_right_to_write_are_one_sentence(tmp_path: Path) -> None:
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    command = [sys.executable, "-m", "tests.training.no_room", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, tuple[int, str]] = json.loads(done.stdout)
    if any("cannot be given up" in said for _, said in result.values()):
        pytest.skip("root cannot give up its rights here")
    words = {
        "full": "cannot write this file: File too large",
        "full, at the end": "full.jsonl: cannot write this file: No space left on device",
        "read-only, new": "cannot write in this folder: Permission denied",
        "read-only, out": "closed/old.jsonl: cannot write this file: Permission denied",
    }
    assert len(result) == len(words) + 4
    assert "already finished" in result["read-only, again"][1], "a finished run in a read-only folder can be used"
    for case, (status, said) in result.items():
        assert "Traceback" not in said, said
        assert status == (2 if case in words else 0), (case, said)
        assert words.get(case, "") in said.strip().splitlines()[-1], (case, said)
    assert (tmp_path / "closed" / "old.jsonl").read_text() == "precious\n"
    weights = [tmp_path / name / "model" / "model.safetensors" for name in ("whole", "run")]
    assert weights[0].read_bytes() == weights[1].read_bytes(), "with room again it went on as if nothing had been"
    assert load(tmp_path / "run").labels


QUICK = ["encoder.name=tiny", "train.epochs=1", "head.kind=token"]


def test_a_finished_run_without_its_model_is_rebuilt_from_its_stages(tmp_path: Path) -> None:
    config = load_config(RECIPES["trust"].Config, settings=QUICK)
    train("trust", Splits(weak=GOLD), tmp_path / "run", config)
    before = digests(tmp_path / "run")
    (tmp_path / "run" / "model" / "config.json").unlink()
    with pytest.raises(LacunerError, match="is lost: the command that trained it rebuilds it"):
        load(tmp_path / "run")
    said: list[str] = []
    train("trust", Splits(weak=GOLD), tmp_path / "run", config, log=said.append)
    assert any("rebuilt from the stages" in line for line in said)
    assert not any("epoch" in line for line in said), "nothing is trained again"
    assert digests(tmp_path / "run") == before


def test_private_text_of_a_killed_run_is_removed_by_the_next(tmp_path: Path) -> None:
    """What a killed process leaves is inside the run folder, and only its owner can read it."""
    run = Run(tmp_path / "run", {"seed": 1})
    with run.locked():
        context = temporary_folder(run.folder)
        folder = context.__enter__()  # as after a kill, nobody leaves it
        (folder / "weak.jsonl").write_text("private")
    assert folder.is_relative_to(tmp_path / "run") and stat.S_IMODE(folder.stat().st_mode) == 0o700
    with Run(tmp_path / "run", {"seed": 1}).locked():
        assert not folder.exists()
        with temporary_folder(run.folder) as folder:
            assert folder.is_dir()
        assert not folder.exists()


def test_members_get_their_data_inside_the_run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed run must not leave texts in the folder for temporary files, which others may read."""
    seen: list[list[str]] = []

    def note(_: str, requests: list[Any], *__: object) -> None:
        files = [Path(file) for request in requests for file in request["files"].values()]
        assert all(file.is_relative_to(tmp_path / "run") and file.stat().st_size for file in files)
        assert all(stat.S_IMODE(file.parent.stat().st_mode) == 0o700 for file in files)
        seen.append([file.name for file in files])

    monkeypatch.setattr(parallel, "run_requests", note)
    run = Run(tmp_path / "run", {"seed": 1})
    with run.locked():
        config = load_config(RECIPES["ensemble"].Config, settings=["encoder.name=tiny"])
        parallel._train_in_processes("ensemble", Splits(weak=GOLD), config, run, {0: "models/0", 1: "models/1"}, 2)
    assert seen == [["weak.jsonl", "weak.jsonl"]]
    assert [path.name for path in (tmp_path / "run").iterdir() if path.is_dir()] == []


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """A real file system in memory that is soon full; skips the test where mounting is not allowed."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a file system cannot be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.slow
@pytest.mark.integration
@pytest.mark.parametrize("size", ["300k", "6m", "12m", "18m"])
def test_a_small_file_system_is_full(tmp_path: Path, size: str) -> None:
    config = load_config(RECIPES["trust"].Config, settings=[*QUICK, "train.epochs=2", "train.checkpoint_seconds=0"])
    train("trust", Splits(weak=GOLD, dev=GOLD), tmp_path / "whole", config)
    disk = tmp_path / "disk"
    with small_disk(disk, size):
        with pytest.raises(LacunerError, match="No space left on device") as caught:
            train("trust", Splits(weak=GOLD, dev=GOLD), disk / "run", config)
        assert "\n" not in str(caught.value) and str(disk) in str(caught.value)
        assert not list(disk.rglob(".*.part"))
        subprocess.run(["mount", "-o", "remount,size=200m", str(disk)], check=True)
        train("trust", Splits(weak=GOLD, dev=GOLD), disk / "run", config)
        assert digests(disk / "run") == digests(tmp_path / "whole")
