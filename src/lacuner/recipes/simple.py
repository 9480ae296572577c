"""Training and prediction for notebooks: plain functions on documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from os import PathLike

from lacuner.config import load_config
from lacuner.models.files import AnyTagger, load
from lacuner.recipes import RECIPES
from lacuner.recipes.parts import Splits
from lacuner.recipes.train import check_needs
from lacuner.recipes.train import train as train_splits
from lacuner.training.run import quiet
from lacuner.types import Document


def train(
    recipe: str,
    out: str | PathLike[str],
    *,
    settings: Iterable[str] = (),
    seed: int = 1,
    say: Callable[[str], None] = quiet,
    **data: Iterable[Document] | None,
) -> AnyTagger:
    """Train by a recipe into the folder `out`; the same call continues, or loads, what is there.

    `data` are `weak=`, `gold=`, `dev=` and `unlabeled=`, as the recipe needs them; `settings` are written as after
    `--set`, for example `["train.epochs=5", "encoder.name=lstm"]`; `say=print` shows how it goes.
    """
    check_needs(recipe, [role for role, docs in data.items() if docs is not None])
    splits = Splits(**{role: None if docs is None else list(docs) for role, docs in data.items()})
    return train_splits(recipe, splits, out, load_config(RECIPES[recipe].Config, settings=settings), seed, say).tagger


def predict(tagger: AnyTagger | str | PathLike[str], docs: Iterable[Document]) -> Iterator[Document]:
    """The documents with the spans that a tagger, or the one in a folder, finds in them."""
    return (load(tagger) if isinstance(tagger, str | PathLike) else tagger).predict(docs)
