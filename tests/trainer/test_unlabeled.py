"""`--unlabeled`: more text for the recipes that use some, and for no other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from lacuner import api
from lacuner.config import load_config
from lacuner.data import Document, Span, Splits
from lacuner.errors import ConfigError
from lacuner.recipes import RECIPES
from lacuner.trainer.train import check_needs, load_recipe_config, train, uses_unlabeled
from tests.demo_corpus import demo_corpus
from tests.recipes.check_recipe import weights

DEMO = demo_corpus()
GOLD, MORE = DEMO.train[:10], DEMO.train[10:30]
BARE = [replace(doc, spans=(), complete=None) for doc in MORE]
USERS = [recipe for recipe in RECIPES if uses_unlabeled(recipe)]


def train_sst(folder: Path, **docs: Any) -> str:
    torch.set_num_threads(1)
    settings = ["train.epochs=1", "train.budget=256", "encoder.name=tiny"]
    result = train("sst", Splits(gold=GOLD, **docs), folder, load_config(RECIPES["sst"].Config, settings=settings))
    assert (result.label_issues is not None) == ("weak" in docs), "text without weak labels has no label issues"
    return weights(folder)


def test_text_is_used_and_its_labels_are_not(tmp_path: Path) -> None:
    unsure = [replace(doc, unsure=(Span(0, 1, ""),)) for doc in MORE]
    bare = train_sst(tmp_path / "bare", unlabeled=BARE)
    assert bare == train_sst(tmp_path / "labeled", unlabeled=unsure)
    assert bare == train_sst(tmp_path / "weak", weak=BARE), "the same texts, under the other option"
    assert bare != train_sst(tmp_path / "both", weak=BARE, unlabeled=DEMO.train[30:32])


def test_other_recipes_refuse_it_and_name_those_that_use_it() -> None:
    others = [recipe for recipe in RECIPES if recipe not in USERS]
    assert "sst" in USERS and "trust" in others
    for recipe in (*others, "auto"):
        with pytest.raises(ConfigError, match=f"recipe `{recipe}` does not use --unlabeled; these recipes do: .*sst"):
            load_recipe_config(recipe, ["weak", "gold", "unlabeled"])


@pytest.mark.parametrize("recipe", USERS)
def test_it_takes_the_place_of_weak_documents(recipe: str) -> None:
    check_needs(recipe, ["gold", "unlabeled"])
    with pytest.raises(ConfigError, match=f"recipe `{recipe}` needs --weak or --unlabeled$"):
        check_needs(recipe, ["gold"])
    with pytest.raises(ConfigError, match=f"recipe `{recipe}` needs --gold$"):
        check_needs(recipe, ["unlabeled"])


def test_from_python(tmp_path: Path) -> None:
    settings = ["train.epochs=1", "encoder.name=tiny"]
    texts: list[Document | str] = [doc.text for doc in MORE]
    tagger = api.train("sst", gold=GOLD, unlabeled=texts, out=tmp_path / "run", settings=settings, progress=False)
    assert tagger.labels
