"""BOND: what the teacher teaches, and when it is replaced."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lacuner.config import load_config
from lacuner.data import Splits
from lacuner.recipes.bond import Config, taught
from lacuner.techniques.self_training import sharpen
from lacuner.trainer.train import train
from tests.demo_corpus import demo_corpus
from tests.recipes.test_roster import stages

PROBS = torch.tensor([[0.98, 0.02, 0.0], [0.4, 0.6, 0.0], [0.1, 0.0, 0.9], [0.97, 0.0, 0.03]])
KNOWN = torch.tensor([True, True, True, False])


def test_soft_labels_are_sharpened_and_only_sure_words_are_taught() -> None:
    found = taught(PROBS, KNOWN, Config())
    want = sharpen(PROBS, KNOWN)
    torch.testing.assert_close(found["probs"], want)
    assert found["sure"].tolist() == [bool(row.max() > 0.9) and known for row, known in zip(want, KNOWN, strict=True)]
    assert found["sure"].any() and not found["sure"].all()


def test_hard_labels_are_the_likeliest_tag() -> None:
    found = taught(PROBS, KNOWN, Config(labels="hard", sure=0.5))
    assert found["probs"].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]
    assert found["sure"].tolist() == [True, True, True, False]


def test_a_teacher_that_is_sure_of_nothing_teaches_everything_it_may() -> None:
    assert taught(PROBS, KNOWN, Config(sure=1.0))["sure"].tolist() == KNOWN.tolist()


@pytest.mark.integration
@pytest.mark.parametrize(("period", "lessons"), [(1, {0, 1, 2, 3}), (2, {0, 2})])
def test_the_student_takes_the_teachers_place(period: int, lessons: set[int], tmp_path: Path) -> None:
    torch.set_num_threads(1)
    weak = [replace(doc, spans=doc.spans[:1], complete=False) for doc in demo_corpus().train[:20]]
    settings = ["train.epochs=3", "train.budget=256", "student_epochs=4", f"period={period}"]
    train("bond", Splits(weak=weak), tmp_path / "run", load_config(Config, settings=settings))
    assert stages(tmp_path / "run") == {"early", "student", *(f"student/{epoch}" for epoch in lessons)}
    rows = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert len(rows) == 1 + 4, "without dev the first stage ends after a third of the epochs"
