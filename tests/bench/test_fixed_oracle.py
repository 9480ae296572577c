"""`python -m benchmarks.fixed_oracle`: negatives by the uncertainty of a fixed oracle, without unlabeled entities."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import fixed_oracle, masked
from lacuner.audit.probes import entity_targets, gold_in_training_order
from lacuner.data import Document
from lacuner.models.model import Model
from lacuner.training.dataset import TrainingSet, assign_folds
from lacuner.training.run_folder import Run

SPEC = """
seeds = [1]
settings = ["train.epochs=1", "rate=2.0"]
[data.demo]
sentences = 60
[noise]
masked = [0.5]
[recipes.uniform]
recipe = "negative_sampling"
"""


class Recorder:
    """A callback that counts the negatives of each training, and the entities among them."""

    def __init__(self, gold: list[Document]) -> None:
        self.gold, self.entities = gold, 0
        self.trainings: list[tuple[TrainingSet, set[tuple[int, int, int]]]] = []
        self.texts: set[str] = set()

    def on_negatives_sampled(
        self, epoch: int, data: TrainingSet, indices: np.ndarray, sampled: torch.Tensor, logits: torch.Tensor
    ) -> None:
        real = entity_targets(data, self.gold).collate(indices).known
        self.entities += int((sampled & real).sum())
        spans = [(int(indices[row]), first, width) for row, first, width in sampled.nonzero().tolist()]
        if not self.trainings or self.trainings[-1][0] is not data:
            self.trainings.append((data, set()))
        self.trainings[-1][1].update(spans)
        self.texts |= {data.sentences.docs[data.sentences.document[index]].text for index in indices}

    def on_epoch_end(self, stage: str, epoch: int, model: Model) -> None:
        pass


@pytest.mark.integration
def test_no_unlabeled_entity_is_drawn_and_the_oracle_has_not_seen_the_documents(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    spec = tmp_path / "spec.toml"
    spec.write_text(SPEC)
    [data] = masked.masked_data(spec, tmp_path)
    second = [doc for doc, fold in zip(data.weak, assign_folds(data.weak, 2), strict=True) if fold]
    ids = {doc.id for doc in second}
    recorder = Recorder(gold_in_training_order(second, [doc for doc in data.gold if doc.id in ids]))
    taggers = list(fixed_oracle.train_with_oracle(data, Run(tmp_path / "run", {"seed": 1}), recorder))
    top, middle, bottom, uniform = (negatives for _, negatives in recorder.trainings)
    assert len(taggers) == 4 and len(top) == len(middle) == len(bottom) == len(uniform) > 100
    assert recorder.entities == 0 and recorder.texts == {doc.text for doc in second}
    assert len(top & bottom) < len(top & uniform) < len(top) / 2, "the ranks are those of one fixed oracle"
