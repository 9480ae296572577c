from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from lacuner import recipes
from lacuner.config import Config, load_config
from lacuner.errors import ConfigError
from lacuner.recipes import RECIPES
from tests.conftest import ROOT
from tests.recipes.check_recipe import Case, check_recipe, weights

pytestmark = pytest.mark.integration


def heads(recipe: str) -> tuple[str, ...]:
    """The heads that a recipe works with, its own choice first."""
    fields = RECIPES[recipe].Config.model_fields
    if "head" not in fields:
        return ("span",)
    head = RECIPES[recipe].Config().head  # of `roster`, it follows from the encoder
    kind, own = type(head).model_fields["kind"], head.kind
    return (own, *[head for head in get_args(kind.annotation) if head != own])


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The hash of each recipe's weights, trained in one other process with another hash seed."""
    env = {**os.environ, "PYTHONHASHSEED": "78" if os.environ.get("PYTHONHASHSEED") == "77" else "77"}
    cases = [f"{recipe}={heads(recipe)[0]}" for recipe in RECIPES]
    command = [sys.executable, "-m", "tests.recipes.check_recipe", str(tmp_path_factory.mktemp("elsewhere")), *cases]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    hashes: dict[str, str] = json.loads(done.stdout)
    return hashes


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_conforms(
    recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: dict[str, str]
) -> None:
    check_recipe(Case(recipe, heads(recipe)[0]), tmp_path, monkeypatch)
    assert weights(tmp_path / "a") == elsewhere[recipe], "another process and hash seed, the same bytes"


@pytest.mark.slow
@pytest.mark.parametrize(("recipe", "head"), [(recipe, head) for recipe in RECIPES for head in heads(recipe)[1:]])
def test_every_recipe_conforms_with_every_head(
    recipe: str, head: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_recipe(Case(recipe, head), tmp_path, monkeypatch)


RENAMED = [
    (recipe, old, new)
    for recipe, module in RECIPES.items()
    for old, new in module.Config.RENAMED.items()
    if " " not in new  # a phrase: the setting has no successor
]


@pytest.mark.parametrize(("recipe", "old", "new"), RENAMED)
def test_a_former_setting_is_refused_with_its_new_name(recipe: str, old: str, new: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"{old!r} is now called {new!r}")):
        load_config(RECIPES[recipe].Config, settings=[f"{old}=false"])
    config: Config = RECIPES[recipe].Config()
    for name in new.split("."):
        assert name in type(config).model_fields, "the new name exists"
        config = getattr(config, name)


def test_the_settings_of_experiments_were_renamed() -> None:
    assert {
        ("roster", "removal", "ablation.removal"),
        ("roster", "least_top5", "ablation.least_top5"),
        ("negative_sampling", "oracle", "ablation.oracle"),
        ("nrces", "sigmoid", "ablation.sigmoid"),
    } <= set(RENAMED)


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_explains_itself(recipe: str) -> None:
    from lacuner.cli.recipes import GROUPS, HEADINGS, parse

    module = RECIPES[recipe]
    assert module.GROUP in GROUPS, "`lacuner recipes` lists a recipe under its group"
    assert all(f"`{group}`" in (recipes.__doc__ or "") for group in GROUPS), "the allowed groups are documented"
    published = module.GROUP in ("recommended", "other methods")
    assert re.search(r"\d{4}", module.PAPER) or (module.PAPER == "" and not published)
    parts = parse(module.__doc__ or "")
    assert set(parts) == {"Summary", *HEADINGS}
    assert all(parts.values())
    assert parts["Needs"].startswith(", ".join(module.NEEDS))
