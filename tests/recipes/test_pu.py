"""PU learning: class priors matter."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lacuner.config import load_config
from lacuner.data import Document, Splits
from lacuner.noise import Noise, corrupt
from lacuner.recipes import pu
from lacuner.training.run_folder import Run
from tests.demo_corpus import demo_corpus

QUICK = ["train.epochs=3", "train.budget=256", "explore=1"]


@pytest.fixture
def weak() -> list[Document]:
    torch.set_num_threads(1)
    return list(corrupt(demo_corpus().train[:60], Noise(drop=0.5)))


@pytest.mark.integration
def test_an_entity_ratio_can_be_set_and_changes_the_model(weak: list[Document], tmp_path: Path) -> None:
    label = weak[0].spans[0].label if weak[0].spans else next(s.label for doc in weak for s in doc.spans)
    weights = []
    for number, settings in enumerate(([], [f"entity_ratio.{label}=0.5"])):
        config = load_config(pu.Config, settings=[*QUICK, *settings])
        tagger = pu.train(Splits(weak=weak), config, Run(tmp_path / str(number), {"seed": 1}))
        weights.append(tagger.model.state_dict())
    assert any(not torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
