"""`python -m benchmarks.augmentation`: labels of replaced words."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import augmentation
from lacuner.corpus import write
from lacuner.data import Document, Span
from tests.demo_corpus import demo_corpus


def test_replaced_words_with_the_most_frequent_label_are_counted() -> None:
    old = [Document("1", "Mara and Teel left", spans=(Span(0, 4, "X"), Span(9, 13, "Y")))]
    new = [Document("1", "Teel or Teel Mara", spans=(Span(0, 4, "X"), Span(8, 12, "Y")))]
    usual = {"Mara": "X", "and": "", "or": "", "Teel": "Y", "left": "X"}
    assert augmentation.count_replaced(old, new, usual) == ((1, 1, 0), (2, 1, 1))
    twice = Document("2", "Teel Teel", spans=(Span(0, 4, "Y"), Span(5, 9, "X")))
    assert augmentation.most_frequent_labels([*old, twice]) == {"Mara": "X", "and": "", "Teel": "Y", "left": ""}


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(demo_corpus().train[:60], tmp_path / "gold.jsonl")
    assert augmentation.main([str(tmp_path / "gold.jsonl"), "--epochs", "1", "2"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("\n") == 4 and "| 1 |" in shown and "| 2 |" in shown
    assert augmentation.main([str(tmp_path / "nothing.jsonl")]) == 2
