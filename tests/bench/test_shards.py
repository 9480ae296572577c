"""`python -m benchmarks.shards`: what work in shards costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import shards


def test_all_sentences_are_annotated_and_every_shard_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "ENTRIES", 50)
    facts = shards.measure("annotate", tmp_path, 60, "processes", 1, shard_size=25)
    assert facts["documents"] == 60
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 3
    assert facts["peak_megabytes_per_worker"] >= facts["peak_megabytes_per_worker_after_its_first_shard"]
    assert facts["cpu_seconds_of_all_processes"] >= 0 and facts["output_bytes_per_document"] > 100
