"""The recipes: one file a paper, listed by hand.

A recipe is a module with `NEEDS` (the data it cannot do without), `Config` and `train(splits, config, run) -> Tagger`.
Its docstring, under fixed headings, is what `lacuner recipes` shows.
"""

from __future__ import annotations

from types import ModuleType

from lacuner.recipes import oracle, partial, supervised, trust

RECIPES: dict[str, ModuleType] = {
    "trust": trust,
    "partial": partial,
    "supervised": supervised,
    "oracle": oracle,
}

__all__ = ["RECIPES"]
