"""BOND: the teacher's pseudo-labels, and when the student replaces it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lacuner.config import load_config
from lacuner.data import Splits
from lacuner.recipes.bond import Config, confident_labels
from lacuner.techniques.self_training import sharpen
from lacuner.trainer.train import train
from tests.demo_corpus import demo_corpus
from tests.recipes.test_roster import stages

PROBS = torch.tensor([[0.98, 0.02, 0.0], [0.4, 0.6, 0.0], [0.1, 0.0, 0.9], [0.97, 0.0, 0.03]])
KNOWN = torch.tensor([True, True, True, False])


def test_soft_labels_are_sharpened_and_only_confident_words_are_used() -> None:
    labels = confident_labels(PROBS, KNOWN, Config())
    want = sharpen(PROBS, KNOWN)
    torch.testing.assert_close(labels["probs"], want)
    assert labels["sure"].tolist() == [bool(row.max() > 0.9) and known for row, known in zip(want, KNOWN, strict=True)]
    assert labels["sure"].any() and not labels["sure"].all()


def test_hard_labels_are_the_most_probable_tag() -> None:
    labels = confident_labels(PROBS, KNOWN, Config(labels="hard", sure=0.5))
    assert labels["probs"].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]
    assert labels["sure"].tolist() == [True, True, True, False]


def test_without_a_confident_word_all_known_words_are_used() -> None:
    assert confident_labels(PROBS, KNOWN, Config(sure=1.0))["sure"].tolist() == KNOWN.tolist()


@pytest.mark.integration
@pytest.mark.parametrize(("period", "starts"), [(1, {0, 1, 2, 3}), (2, {0, 2})])
def test_the_student_replaces_the_teacher_every_period(period: int, starts: set[int], tmp_path: Path) -> None:
    torch.set_num_threads(1)
    weak = [replace(doc, spans=doc.spans[:1], complete=False) for doc in demo_corpus().train[:20]]
    settings = ["train.epochs=3", "train.budget=256", "student_epochs=4", f"period={period}"]
    train("bond", Splits(weak=weak), tmp_path / "run", load_config(Config, settings=settings))
    assert stages(tmp_path / "run") == {"early", "student", *(f"student/{epoch}" for epoch in starts)}
    rows = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert len(rows) == 1 + 4, "without dev the first stage ends after a third of the epochs"
