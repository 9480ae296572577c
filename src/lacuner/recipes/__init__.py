"""The recipes: one file per paper or baseline, listed by hand.

A recipe is a module with `NEEDS` (the data it cannot do without; dev is optional, and it sees no other data), `GROUP`
(`recommended`, `other methods`, `baselines` or `for experiments`) and `PAPER`, which `lacuner recipes` lists, `Config`
and `train(splits, config, run) -> Tagger`. A recipe with `UNLABELED = True` also uses unlabeled text, which may take
the place of weak documents (`Splits.texts`). A recipe that calls `train_members` also has `train_member(splits, config,
run, number)`, which child processes call. Its docstring has fixed headings, which `lacuner recipes NAME` shows.
"""

import difflib
from types import ModuleType

from lacuner.errors import ConfigError
from lacuner.recipes import (
    autoner,
    bond,
    cupul,
    dictionary,
    eer,
    ensemble,
    finetune,
    mean_teacher,
    mproto,
    needle,
    negative_sampling,
    nrces,
    oracle,
    partial,
    pu,
    roster,
    sst,
    supervised,
    then_gold,
    trust,
    two_step,
    vat,
    weighted_partial,
    wsl,
)

RECIPES: dict[str, ModuleType] = {
    "dictionary": dictionary,
    "trust": trust,
    "partial": partial,
    "eer": eer,
    "negative_sampling": negative_sampling,
    "nrces": nrces,
    "ensemble": ensemble,
    "two_step": two_step,
    "weighted_partial": weighted_partial,
    "pu": pu,
    "cupul": cupul,
    "mproto": mproto,
    "bond": bond,
    "autoner": autoner,
    "roster": roster,
    "needle": needle,
    "sst": sst,
    "mean_teacher": mean_teacher,
    "vat": vat,
    "wsl": wsl,
    "finetune": finetune,
    "then_gold": then_gold,
    "supervised": supervised,
    "oracle": oracle,
}


def find_recipe(name: str) -> ModuleType:
    """The recipe of this name; an error that lists all recipes if there is none.

    >>> find_recipe("partial").NEEDS
    ('weak',)
    """
    if name not in RECIPES:
        near = difflib.get_close_matches(name, RECIPES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(RECIPES)}"
        raise ConfigError(f"there is no recipe {name!r}; {hint}")
    return RECIPES[name]


__all__ = ["RECIPES", "find_recipe"]
