"""PU learning: where the class priors come from, and that they matter."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lacuner.config import load_config
from lacuner.data import Document, Splits
from lacuner.errors import ConfigError
from lacuner.noise import Noise, corrupt
from lacuner.recipes import pu
from lacuner.techniques.early_learning import Exploration, explore
from lacuner.training.run_folder import Run
from tests.demo_corpus import demo_corpus

QUICK = ["train.epochs=3", "train.budget=256", "explore=1"]


@pytest.fixture
def weak() -> list[Document]:
    torch.set_num_threads(1)
    return list(corrupt(demo_corpus().train[:60], Noise(drop=0.5)))


@pytest.fixture
def exploration(weak: list[Document], tmp_path: Path) -> Exploration:
    config = load_config(pu.Config, settings=QUICK)
    return explore(weak, config, 1, Run(tmp_path / "explore", {"seed": 1}))


def test_the_ratio_of_a_given_prior_and_of_an_estimate(exploration: Exploration) -> None:
    data = exploration.weak.as_complete
    tags, targets = data.model.head.tags, data.targets
    [first, *others] = tags.labels
    words = len(targets.labels)
    share = float((torch.from_numpy(tags.types)[targets.labels.long()] == 0).sum()) / words
    given = pu.prior_ratios(exploration, {first: 3 * share})
    assert given[first] == pytest.approx(3.0, rel=1e-6)
    estimated = pu.prior_ratios(exploration, {})
    assert list(estimated) == list(tags.labels) and all(estimated[label] == given[label] for label in others)
    o_prob = exploration.o_scores[1]["prob"]
    labeled = torch.from_numpy(tags.types)[targets.labels.long()] == 0
    assert estimated[first] == pytest.approx(1 / float((1 - o_prob[labeled]).mean()), rel=1e-5)
    assert pu.prior_ratios(exploration, {first: share / 9})[first] == 1.0, "never fewer than the labeled ones"


def test_a_prior_for_an_unknown_label_is_an_error(exploration: Exploration) -> None:
    with pytest.raises(ConfigError, match="prior has the label 'NOBODY', which is not in the data"):
        pu.prior_ratios(exploration, {"NOBODY": 0.1})


@pytest.mark.integration
def test_a_prior_can_be_set_and_changes_the_model(weak: list[Document], tmp_path: Path) -> None:
    label = weak[0].spans[0].label if weak[0].spans else next(s.label for doc in weak for s in doc.spans)
    weights = []
    for number, settings in enumerate(([], [f"prior.{label}=0.5"])):
        config = load_config(pu.Config, settings=[*QUICK, *settings])
        tagger = pu.train(Splits(weak=weak), config, Run(tmp_path / str(number), {"seed": 1}))
        weights.append(tagger.model.state_dict())
    assert any(not torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
