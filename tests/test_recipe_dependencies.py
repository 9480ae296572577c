"""To understand a recipe, a reader opens at most six modules beyond data, config, training and models."""

from __future__ import annotations

from pathlib import Path

import pytest

from lacuner.recipes import RECIPES
from scripts import recipe_dependencies
from scripts.recipe_dependencies import LIMIT, dependencies, recipes


def test_no_recipe_needs_more_than_six_modules() -> None:
    assert recipes() == sorted(RECIPES)
    too_many = {recipe: modules for recipe in RECIPES if len(modules := dependencies(recipe)) > LIMIT}
    assert LIMIT == 6 and not too_many


def test_what_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = {
        "recipes/a.py": "from typing import TYPE_CHECKING\nfrom lacuner.techniques.t import x\n"
        "from lacuner.training.loop import fit\nfrom lacuner.losses import crf\nfrom lacuner.recipes import b\n"
        "if TYPE_CHECKING:\n    from lacuner.losses.pu import y\n",
        "recipes/b.py": "from lacuner.techniques.v import x\n",
        "recipes/c.py": "def train():\n    from lacuner.recipes.b import x\n",
        "recipes/d.py": "from lacuner.recipes import b\nb.sampling_step()\n",
        "recipes/e.py": "from lacuner.recipes import b\nb.train(b.Config())\n",
        "techniques/t.py": "from lacuner.techniques.u import x\nfrom lacuner.losses.pu import y\n",
        "techniques/u.py": "",
        "techniques/v.py": "",
        "losses/__init__.py": "",
        "losses/crf.py": "",
        "losses/pu.py": "",
        "training/loop.py": "",
    }
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(recipe_dependencies, "SOURCE", tmp_path)
    assert dependencies("a") == ["losses.crf", "techniques.t", "techniques.u"]
    assert dependencies("c") == dependencies("d") == ["recipes.b", "techniques.v"]
    assert dependencies("e") == []
