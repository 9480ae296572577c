from __future__ import annotations

from pathlib import Path

import pytest

from lacuner.recipes import RECIPES
from tests.recipes.check_recipe import Case, check_recipe

HEADS = ["token", "span", "crf"]


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_conforms(recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_recipe(Case(recipe, "crf" if recipe == "partial" else "span"), tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", [name for name in RECIPES if name != "dictionary"])
@pytest.mark.parametrize("head", HEADS)
def test_every_recipe_conforms_with_every_head(
    recipe: str, head: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_recipe(Case(recipe, head), tmp_path, monkeypatch)


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_explains_itself(recipe: str) -> None:
    from lacuner.cli.recipes import HEADINGS, parse

    parts = parse(RECIPES[recipe].__doc__ or "")
    assert set(parts) == {"Summary", *HEADINGS}
    assert all(parts.values())
    assert parts["Needs"].startswith(", ".join(RECIPES[recipe].NEEDS))
