"""Train by a recipe, from documents to a finished run folder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from lacuner.config import Config, load_config
from lacuner.corpus.jsonl import as_line
from lacuner.corpus.words import words_of
from lacuner.errors import ConfigError
from lacuner.models.files import AnyTagger, fingerprint, load, save
from lacuner.recipes import RECIPES
from lacuner.recipes.auto import AUTO, ask, begun_in, settle
from lacuner.recipes.parts import EncoderConfig, Splits, canonical, encoder_fingerprint
from lacuner.recipes.suspects import Suspects, find_suspects, write_names, write_suspects
from lacuner.training.run import Run, quiet
from lacuner.training.watch import Watch
from lacuner.types import Document


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
    watch: Watch | None = None,
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
    for name in [name for name in given if name not in (*module.NEEDS, "dev", *module.USES)]:
        say(f"the recipe {recipe} has no use for --{name}")
        del given[name]  # so that no recipe can see what its users would not have
    config = config if config is not None else module.Config()
    ordered = {name: canonical(in_role(docs, name in ("gold", "dev"))) for name, docs in given.items()}
    if getattr(getattr(config, "train", None), "patience", None) is not None and not ordered.get("dev"):
        say("train.patience has no effect without --dev: every epoch is trained")
    identity = identity_of(recipe, seed, config, ordered)
    run = Run(out, {**identity, "why": why} if why is not None else identity, say, watch)
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


def identity_of(recipe: str, seed: int, config: Config, data: Mapping[str, Sequence[Document]]) -> dict[str, Any]:
    """What makes a run this run: with the same it goes on, with anything else it is another."""
    settings = config.model_dump(mode="json")
    settings.get("train", {}).pop("checkpoint_seconds", None)  # how often a run is saved does not make it another run
    identity: dict[str, Any] = {
        "recipe": recipe,
        "seed": seed,
        "config": settings,
        "data": {name: _describe(docs) for name, docs in sorted(data.items())},
    }
    if contents := dict(_contents(config)):
        identity["contents"] = contents
    return identity


def in_role(docs: Iterable[Document], complete: bool) -> Iterator[Document]:
    """Documents that do not say whether they are complete are so by their role; words are split before all else."""
    for doc in docs:
        words_of(doc)
        yield replace(doc, complete=complete) if doc.complete is None else doc


def _contents(config: Config, where: str = "") -> Iterator[tuple[str, str]]:
    """Hashes of what the settings name: with other vectors or another encoder of the same name it is another run."""
    for name in type(config).model_fields:
        value, place = getattr(config, name), f"{where}{name}"
        if isinstance(value, Config):
            yield from _contents(value, f"{place}.")
        elif isinstance(value, Path) and value.is_dir():
            yield place, fingerprint(value)
        elif isinstance(value, Path):
            try:
                with value.open("rb") as stream:
                    yield place, hashlib.file_digest(stream, "sha256").hexdigest()
            except OSError as error:
                raise ConfigError(f"cannot read what {place} names: {error.strerror}", file=value) from error
        elif isinstance(config, EncoderConfig) and name == "name" and (found := encoder_fingerprint(value)):
            yield place, found


def _describe(docs: Iterable[Document]) -> Mapping[str, Any]:
    """What the data is, whatever its files are called."""
    digest, count = hashlib.sha256(), 0
    for doc in docs:
        digest.update(as_line(doc).encode())
        count += 1
    return {"documents": count, "sha256": digest.hexdigest()}
