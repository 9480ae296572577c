"""Huge pages: only new large areas are collapsed, and nothing fails where the kernel refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from lacuner.annotate.matching import automaton
from lacuner.annotate.matching.automaton import build_automaton

MAPS = """\
10000000-10100000 rw-p 00000000 00:00 0
20001000-24001000 rw-p 00000000 00:00 0
30000000-34000000 r--p 00000000 00:00 0
40000000-44000000 rw-p 00000000 08:01 77 /some/file
50000000-54000000 rw-p 00000000 00:00 0 [heap]
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What the kernel was asked for, of a process whose memory is as in `maps`, which is empty at first."""
    found: list[tuple[int, int]] = []
    (tmp_path / "maps").write_text("")
    monkeypatch.setattr(automaton, "_MEMORY_MAP", tmp_path / "maps")
    monkeypatch.setattr(automaton, "_collapse", lambda start, size: found.append((start, size)))
    return found


def test_only_new_large_private_areas_are_collapsed(asked: list[tuple[int, int]], tmp_path: Path) -> None:
    with automaton._huge_pages():
        (tmp_path / "maps").write_text(MAPS)
    assert asked == [(0x20200000, 0x3E00000)], "whole large pages inside of the area"
    with automaton._huge_pages():
        pass
    assert len(asked) == 1


def test_without_a_memory_map_nothing_is_collapsed(asked: list[tuple[int, int]], tmp_path: Path) -> None:
    (tmp_path / "maps").unlink()
    found = build_automaton(["ab"], folded=False)("cab")
    assert found == [(0, 1, 3)] and not asked


def test_a_refusal_of_the_kernel_is_harmless() -> None:
    assert not automaton._collapse(0, 2 << 20), "there is nothing at this address"


def test_the_kernel_collapses_pages() -> None:
    def large() -> int:
        text = Path("/proc/self/smaps_rollup").read_text(encoding="ascii")
        return int(text.partition("AnonHugePages:")[2].split()[0]) * 1024

    try:
        before = large()
        made = bytearray(64 << 20)
        made[:: 1 << 12] = b"x" * (64 << 8)
        areas = [area for area in automaton._large_areas() if area[1] >= 60 << 20]
    except OSError as error:
        pytest.skip(f"this kernel does not say: {error}")
    done = [automaton._collapse(*area) for area in areas]
    if not any(done):
        pytest.skip("this kernel does not put pages together on demand")
    assert large() - before >= 32 << 20 and made[0] == ord("x")
