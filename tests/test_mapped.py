"""Mapped arrays keep their values, whatever the kernel keeps in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lacuner.errors import CorpusError
from lacuner.mapped import join_parts, open_arrays, release_pages, write_arrays

PARTS = [
    {"ids": np.arange(5, dtype=np.uint32), "known": np.ones((2, 3), dtype=bool), "none": np.zeros((0, 4))},
    {"ids": np.arange(3, dtype=np.uint32)},
    {"ids": np.zeros(0, dtype=np.uint32), "known": np.zeros((1, 3), dtype=bool)[:, ::-1]},
]


def test_files_hold_what_memory_would(tmp_path: Path) -> None:
    write_arrays(tmp_path, {"of": 1}, PARTS, lambda: {"words": ["Ü", "\ud800"]})
    opened = open_arrays(tmp_path, {"of": 1})
    assert opened is not None and opened.facts == {"words": ["Ü", "\ud800"]}
    expected = join_parts(PARTS)
    for _ in range(2):
        for name, array in expected.items():
            assert array.dtype == opened.arrays[name].dtype and np.array_equal(array, opened.arrays[name]), name
        release_pages()
    with pytest.raises(ValueError, match="read-only"):
        opened.arrays["ids"][0] = 1


def test_an_interrupted_folder_is_not_opened(tmp_path: Path) -> None:
    write_arrays(tmp_path, "old", PARTS)

    def stop() -> dict[str, int]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_arrays(tmp_path, "old", PARTS, stop)
    assert open_arrays(tmp_path, "old") is None


def test_an_array_of_another_size_is_an_error(tmp_path: Path) -> None:
    write_arrays(tmp_path, "v1", PARTS)
    (tmp_path / "ids.bin").write_bytes(b"1234")
    with pytest.raises(CorpusError, match="damaged"):
        open_arrays(tmp_path, "v1")
