"""Atomic writes: what a killed process leaves is private, and the next write to the same file removes it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from lacuner import atomic
from lacuner.atomic import atomic_write


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def parts(folder: Path) -> list[Path]:
    return sorted(folder.glob(".*.part"))


def test_private_text_in_a_part_is_removed_by_the_next_write(tmp_path: Path) -> None:
    path = tmp_path / "weak.jsonl"
    (tmp_path / ".weak.jsonl.part").write_text("private text of a killed process, longer than the new one")
    with atomic_write(path) as stream:
        stream.write(b"new")
        assert [mode(part) for part in parts(tmp_path)] == [0o600], "nobody else can read it meanwhile"
    assert path.read_bytes() == b"new" and not parts(tmp_path)
    assert mode(path) == 0o666 & ~atomic._UMASK, "as any other new file"


def test_two_writers_of_one_file_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with atomic_write(path) as first:
        first.write(b"first")
        with atomic_write(path) as second:
            second.write(b"second")
            assert len(parts(tmp_path)) == 2
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first" and not parts(tmp_path)


def test_a_part_that_has_just_become_the_file_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other writer moves its part to its place between our opening and our lock."""
    path, part, opened = tmp_path / "x", tmp_path / ".x.part", []
    part.write_text("finished")
    os_open = os.open

    def open_then_move(name: Path, *args: int) -> int:
        descriptor = os_open(name, *args)
        if not opened:
            os.replace(part, path)
        opened.append(name)
        return descriptor

    monkeypatch.setattr("lacuner.atomic.os.open", open_then_move)
    with atomic_write(path) as stream:
        assert path.read_text() == "finished"
        stream.write(b"next")
    assert path.read_text() == "next" and len(opened) == 2 and not parts(tmp_path)


@pytest.mark.parametrize("kind", ["symbolic", "hard"])
def test_a_link_in_place_of_the_part_is_not_followed(tmp_path: Path, kind: str) -> None:
    precious, part = tmp_path / "precious", tmp_path / ".x.part"
    precious.write_text("precious")
    part.symlink_to(precious) if kind == "symbolic" else part.hardlink_to(precious)
    with atomic_write(tmp_path / "x") as stream:
        stream.write(b"new")
    assert precious.read_text() == "precious" and (tmp_path / "x").read_text() == "new"


def test_a_failed_write_leaves_the_old_file_and_no_part(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    with pytest.raises(RuntimeError), atomic_write(path) as stream:
        stream.write(b"new")
        raise RuntimeError
    assert path.read_text() == "old" and not parts(tmp_path)
