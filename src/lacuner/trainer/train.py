"""Train by a recipe, from documents to a finished run folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from os import PathLike

from lacuner.config import Config, load_config
from lacuner.data import Splits
from lacuner.errors import ConfigError
from lacuner.models.storage import AnyTagger, load, save
from lacuner.recipes import RECIPES
from lacuner.techniques.label_issues import Suspects, find_suspects, write_names, write_suspects
from lacuner.trainer.auto import AUTO, ask, begun_in, settle
from lacuner.training.callbacks import TrainingCallback
from lacuner.training.identity import canonical, identity_of, in_role
from lacuner.training.run_folder import Run, quiet


@dataclass(frozen=True)
class Trained:
    """A finished training."""

    tagger: AnyTagger
    run: Run
    suspects: Suspects | None
    """For a training on weak labels: what the model finds that they lack, and which of them it doubts."""


def check_needs(recipe: str, given: Iterable[str]) -> None:
    """Refuse, in one sentence, a recipe that does not exist or lacks its data."""
    if recipe not in RECIPES:
        raise ConfigError(f"there is no recipe {recipe!r}; there are {', '.join(RECIPES)}")
    needs = RECIPES[recipe].NEEDS
    missing = [f"--{name}" for name in needs if name not in set(given)]
    if missing:
        raise ConfigError(f"the recipe {recipe} needs {' and '.join(missing)}")


def settings_for(
    recipe: str, given: Iterable[str], file: str | PathLike[str] | None = None, settings: Iterable[str] = ()
) -> Config:
    """The settings of a recipe, checked before any data is read; those of `auto` wait until its recipe is known."""
    if recipe == AUTO:
        if not {"weak", "gold"} & set(given):
            raise ConfigError("the recipe auto needs --weak or --gold")
        return ask(file, settings)
    check_needs(recipe, given)
    config: Config = load_config(RECIPES[recipe].Config, file, settings)
    return config


def train(
    recipe: str,
    splits: Splits,
    out: str | PathLike[str],
    config: Config | None = None,
    seed: int = 1,
    say: Callable[[str], None] = quiet,
    callback: TrainingCallback | None = None,
) -> Trained:
    """Train, or go on with a training that was interrupted; a finished one is loaded."""
    given = {name: docs for name, docs in vars(splits).items() if docs is not None}
    begun = begun_in(out)
    why = begun.get("why")  # why it was chosen does not make it another run
    if recipe == AUTO:
        recipe, config, advice = settle(splits, config, begun, say)
        why = why if begun else advice.model_dump(mode="json")
    check_needs(recipe, given)
    module = RECIPES[recipe]
    for name in [name for name in given if name not in (*module.NEEDS, "dev")]:
        say(f"the recipe {recipe} has no use for --{name}")
        del given[name]  # so that no recipe can see what its users would not have
    config = config if config is not None else module.Config()
    ordered = {name: canonical(in_role(docs, name in ("gold", "dev"))) for name, docs in given.items()}
    if getattr(getattr(config, "train", None), "patience", None) is not None and not ordered.get("dev"):
        say("train.patience has no effect without --dev: every epoch is trained")
    identity = identity_of(recipe, seed, config, ordered)
    run = Run(out, {**identity, "why": why} if why is not None else identity, say, callback)
    with run.locked():
        if run.finished:
            say("this run is finished already")
            tagger = load(run.model_folder)
        else:
            tagger = module.train(Splits(**ordered), config, run)
            save(tagger, run.model_folder)
        suspects = None
        if "weak" in module.NEEDS:
            suspects = find_suspects(tagger, ordered["weak"])
            write_suspects(suspects, run.folder / "suspects.jsonl")
            write_names(suspects, run.folder / "suspects.tsv")
        if not run.finished:
            run.finish({"labels": list(tagger.labels)})
    return Trained(tagger, run, suspects)
