"""`python -m benchmarks.augmentation`: entities found again in sentences said otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import augmentation
from lacuner.corpus import write
from lacuner.demo import build
from lacuner.models.lookup import LookupTagger
from lacuner.types import Document, Span


def test_entities_found_again() -> None:
    old = [Document("1", "Mara and Teel left", spans=(Span(0, 4, "X"), Span(9, 13, "Y"), Span(14, 18, "X")))]
    new = [Document("1", "Halden or Teel left", spans=(Span(0, 6, "X"), Span(10, 14, "Y"), Span(15, 19, "X")))]
    judge = LookupTagger({"Mara": "X", "Teel": "Y", "left": "Y"})  # of "left" it knows no better
    assert augmentation.kept(judge, old, new) == (1, 0, 1, 1)
    assert augmentation.kept(LookupTagger({"Mara": "X", "Halden": "X"}), old, new) == (1, 1, 0, 0)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(build().train[:60], tmp_path / "gold.jsonl")
    assert augmentation.main([str(tmp_path / "gold.jsonl"), "--epochs", "1", "--judge-epochs", "1"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("\n") == 3 and "| 1 |" in shown
    assert augmentation.main([str(tmp_path / "nothing.jsonl")]) == 2
