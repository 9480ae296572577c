"""The entity ratio that recipes use: where it comes from, and that all take it by the same setting."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from lacuner.advice.entity_ratio import entity_ratio, ratio_from_complete
from lacuner.config import load_config
from lacuner.data import Document, Lost, Splits, labels_of
from lacuner.errors import ConfigError
from lacuner.noise import Noise, corrupt
from lacuner.recipes import RECIPES, pu
from lacuner.techniques import entity_ratio as ratios
from lacuner.techniques.early_learning import Exploration
from lacuner.techniques.entity_ratio import exploration_stage, explorer, find_entity_ratio
from lacuner.training.dataset import weak_training_set
from lacuner.training.run_folder import Run
from lacuner.training.stage import new_model
from tests.demo_corpus import demo_corpus

RECIPES_WITH_RATIO = ["cupul", "eer", "mproto", "pu"]


@pytest.fixture(scope="module")
def weak() -> list[Document]:
    torch.set_num_threads(1)
    return list(corrupt(demo_corpus().train[:150], Noise(drop=0.5)))


class Oracle:
    """Explorations by a model that gives each entity word of gold one probability, and other words another."""

    def __init__(self, folder: Path, at_entities: float, elsewhere: float = 0.0) -> None:
        self.gold = {doc.id: doc for doc in demo_corpus().train}
        self.folder, self.at_entities, self.elsewhere = folder, at_entities, elsewhere
        self.stages: list[str] = []

    def __call__(self, docs: Sequence[Document], stage: str) -> Exploration:
        self.stages.append(stage)
        config = load_config(pu.Config, settings=["encoder.name=tiny"])
        model = new_model(config, docs, Run(self.folder, {"seed": 1}))
        weak = weak_training_set(model, docs, Lost())
        gold = weak_training_set(model, [self.gold[doc.id] for doc in docs], Lost()).labeled
        entity = torch.where(gold, self.at_entities, self.elsewhere)
        return Exploration(weak, {3: {"prob": 1 - entity, "logit": -entity}})


def refuse(docs: Sequence[Document], stage: str) -> Exploration:
    raise AssertionError("nothing has to be trained")


def test_what_is_given_wins_over_dev_and_dev_over_estimates(weak: list[Document], tmp_path: Path) -> None:
    splits, labels = Splits(weak=weak, dev=demo_corpus().dev), labels_of(weak)
    given = find_entity_ratio(splits, 0.2, refuse)
    assert (given.value, given.low, given.high, given.source) == (0.2, 0.2, 0.2, "given")
    assert sum(given.by_label.values()) == pytest.approx(0.2)
    assert find_entity_ratio(splits, "auto", refuse) == ratio_from_complete(weak, splits.dev)
    assert find_entity_ratio(splits, dict.fromkeys(labels, 0.1), refuse).value == pytest.approx(0.1 * len(labels))
    part = find_entity_ratio(splits, {labels[0]: 0.5}, refuse)
    assert part.by_label[labels[0]] == 0.5 and part.source == "given and dev"
    assert {exploration_stage(splits, setting) for setting in (0.2, "auto", "dev", {labels[0]: 0.5})} == {None}
    oracle = Oracle(tmp_path, 0.5)
    for setting, source in (("hidden", "hidden names"), ("counts", "label counts"), ("odds", "label counts")):
        assert find_entity_ratio(splits, setting, oracle).source == source
        assert exploration_stage(splits, setting) == oracle.stages[-1]
    assert find_entity_ratio(Splits(weak=weak), "auto", oracle).source == "label counts"


@pytest.mark.parametrize("source", ["hidden", "counts", "odds"])
def test_estimates_are_right_if_the_model_is(source: Any, weak: list[Document], tmp_path: Path) -> None:
    """A model that knows entities, and gives each the probability of having a label."""
    true, labels = entity_ratio(demo_corpus().train[:150], labels_of(weak)), labels_of(weak)
    labeled = entity_ratio(weak, labels)
    ratio = find_entity_ratio(Splits(weak=weak), source, Oracle(tmp_path, labeled / true))
    assert ratio.low <= true <= ratio.high * 1.001 and ratio.low == pytest.approx(labeled)
    assert ratio.value == pytest.approx((labeled * true) ** 0.5 if source == "hidden" else true, rel=0.03)
    assert sum(ratio.by_label.values()) == pytest.approx(ratio.value)


def test_mistakes_of_the_model_raise_the_upper_limit_only(weak: list[Document], tmp_path: Path) -> None:
    clean = find_entity_ratio(Splits(weak=weak), "hidden", Oracle(tmp_path, 0.3))
    noisy = find_entity_ratio(Splits(weak=weak), "hidden", Oracle(tmp_path, 0.3, 0.02))
    assert noisy.low == clean.low and noisy.high > clean.high + 0.01


def test_few_names_cannot_be_hidden(weak: list[Document], tmp_path: Path) -> None:
    few, oracle = Splits(weak=weak[:8]), Oracle(tmp_path, 0.5)
    assert exploration_stage(few, "auto") == "explore"
    with pytest.raises(ConfigError, match="entity_ratio=counts"):
        find_entity_ratio(few, "hidden", oracle)
    with pytest.raises(ConfigError, match="needs --dev"):
        find_entity_ratio(few, "dev", oracle)
    unlabeled = Splits(weak=[replace(doc, spans=()) for doc in weak[:8]])
    with pytest.raises(ConfigError, match="entity_ratio=counts"):
        find_entity_ratio(unlabeled, "hidden", oracle)


def test_a_ratio_for_an_unknown_label_is_an_error(weak: list[Document]) -> None:
    with pytest.raises(ConfigError, match="entity_ratio has the label 'NOBODY', which is not in the data"):
        find_entity_ratio(Splits(weak=weak), {"NOBODY": 0.1}, refuse)


def test_the_odds_of_spans_are_limited(weak: list[Document]) -> None:
    unlabeled = torch.ones(1000, 3, dtype=torch.bool)
    data: Any = SimpleNamespace(unlabeled=unlabeled, own_lengths=torch.tensor([1000]), labeled=~unlabeled)
    exploration: Any = SimpleNamespace(weak=data, o_scores={3: {}}, missing_share=lambda epoch: 0.9)
    labeled = entity_ratio(weak, labels_of(weak))
    assert ratios.ratio_from_odds(weak, exploration).value == pytest.approx(ratios.MAX_FACTOR * labeled)


@pytest.mark.parametrize("recipe", RECIPES_WITH_RATIO)
def test_all_recipes_that_need_it_have_the_same_setting(recipe: str) -> None:
    settings = ["entity_ratio.PER=0.1"]
    assert load_config(RECIPES[recipe].Config, settings=settings).entity_ratio == {"PER": 0.1}
    assert load_config(RECIPES[recipe].Config, settings=["entity_ratio=0.2"]).entity_ratio == 0.2
    for wrong in ("entity_ratio=1.5", "entity_ratio=gold", "entity_ratio.PER=0"):
        with pytest.raises(ConfigError, match="entity_ratio"):
            load_config(RECIPES[recipe].Config, settings=[wrong])
    old = {"eer": "ratio=0.2", "pu": "prior.PER=0.2", "cupul": "prior.PER=0.2"}
    if recipe in old:
        with pytest.raises(ConfigError, match="is now called 'entity_ratio"):
            load_config(RECIPES[recipe].Config, settings=[old[recipe]])


@pytest.mark.integration
def test_a_model_that_was_trained_without_some_names(weak: list[Document], tmp_path: Path) -> None:
    config = load_config(pu.Config, settings=["encoder.name=tiny", "train.budget=256"])
    run = Run(tmp_path, {"seed": 1})
    ratio = find_entity_ratio(Splits(weak=weak), "hidden", explorer(config, 2, run))
    assert ratio.low < ratio.value < ratio.high <= ratios.MAX_RATIO and np.isfinite(list(ratio.by_label.values())).all()
    assert (tmp_path / "stages" / "hidden").exists() and not (tmp_path / "stages" / "explore").exists()
    again = find_entity_ratio(Splits(weak=weak), "hidden", explorer(config, 2, run))
    assert again == ratio, "the finished stage is loaded"
