"""Atomic writes: what a killed process leaves is private, and the next write to the same file removes it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from lacuner import atomic
from lacuner.atomic import TEMPORARY, append_line, atomic_write, read_regular_file, temporary_folder


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


def test_who_reads_the_old_file_is_not_disturbed(tmp_path: Path) -> None:
    """The new file takes the name in one step: it is not written over the old one."""
    path = tmp_path / "x"
    path.write_text("old")
    with path.open() as reader:
        with atomic_write(path) as stream:
            stream.write(b"new and longer")
            stream.flush()
            assert path.read_text() == "old"
        assert reader.read() == "old" and path.read_text() == "new and longer"
    assert sorted(tmp_path.iterdir()) == [path]


def test_the_data_is_on_the_disk_before_the_file_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, steps = tmp_path / "x", []
    sync, replace = os.fsync, os.replace

    def note_sync(descriptor: int) -> None:
        steps.append(f"{os.fstat(descriptor).st_size} bytes on the disk")
        sync(descriptor)

    def note_replace(part: Path, target: Path) -> None:
        steps.append(f"moved to {Path(target).name}")
        replace(part, target)

    monkeypatch.setattr("lacuner.atomic.os.fsync", note_sync)
    monkeypatch.setattr("lacuner.atomic.os.replace", note_replace)
    with atomic_write(path) as stream:
        stream.write(b"new")
    assert steps == ["3 bytes on the disk", "moved to x"]


def test_a_private_file_is_private_at_any_time(tmp_path: Path) -> None:
    for private, expected in ((True, 0o600), (False, 0o666 & ~atomic._UMASK)):
        path = tmp_path / f"{private}"
        with atomic_write(path, private=private) as stream:
            stream.write(b"x")
        assert mode(path) == expected


def test_appended_lines_are_on_the_disk_and_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, synced, sync = tmp_path / "log", [], os.fsync

    def note(descriptor: int) -> None:
        synced.append(path.read_bytes())
        sync(descriptor)

    monkeypatch.setattr("lacuner.atomic.os.fsync", note)
    append_line(path, b"one")
    append_line(path, b"two")
    assert b"one\ntwo\n" in synced and b"one\n" in synced and mode(path) == 0o600


def test_a_temporary_folder_is_emptied_first_and_removed(tmp_path: Path) -> None:
    (tmp_path / TEMPORARY).mkdir()
    (tmp_path / TEMPORARY / "private").touch()
    with temporary_folder(tmp_path) as folder:
        assert list(folder.iterdir()) == [] and mode(folder) == 0o700
        (folder / "x").touch()
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file_and_no_part(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    with pytest.raises(RuntimeError), atomic_write(path) as stream:
        stream.write(b"new")
        raise RuntimeError
    assert path.read_text() == "old" and not parts(tmp_path)


def test_issue_29_files_that_do_not_end_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `config.json` that was a link to /dev/zero filled the memory."""
    (tmp_path / "zero").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe")
    for name in ("zero", "pipe"):
        with pytest.raises(OSError, match="not a regular file"):
            read_regular_file(tmp_path / name)
    (tmp_path / "large").write_bytes(b"12345")
    monkeypatch.setattr("lacuner.atomic.MAX_FILE", 4)
    with pytest.raises(OSError, match="larger than"):
        read_regular_file(tmp_path / "large")
