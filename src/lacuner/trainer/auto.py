"""`auto`: let `lacuner.advice` choose the recipe.

`auto` is not a recipe itself. Before the run starts it is replaced by the recipe that the advice recommends; `run.json`
names that recipe, with the reasons under `why`. A run that was started earlier keeps its recipe.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any
from zlib import crc32

from pydantic import ConfigDict, ValidationError

from lacuner.advice import Advice, advise, profile
from lacuner.config import Config, load_config
from lacuner.corpus.stored import StoredDocuments
from lacuner.data import Document, Splits
from lacuner.errors import ConfigError, LacunerError
from lacuner.models.config import EncoderConfig
from lacuner.models.encoders import is_pretrained
from lacuner.models.encoders.auto import choose_encoder
from lacuner.recipes import RECIPES

AUTO = "auto"
PROFILED = 100_000
"""Weak documents from which on a sample of them is profiled."""


class AutoSettings(Config):
    """Settings for a recipe that is yet to be chosen."""

    file: Path | None = None
    """TOML file with settings."""
    settings: tuple[str, ...] = ()
    """Settings in the form of `--set`."""


class _AnySettings(Config):
    """Settings of any recipe, not validated."""

    model_config = ConfigDict(extra="allow")


def read_auto_settings(file: str | PathLike[str] | None, settings: Iterable[str]) -> AutoSettings:
    """Keep the settings until the recipe is known; raises an error if they cannot be parsed."""
    auto = AutoSettings(file=None if file is None else Path(file), settings=tuple(settings))
    _raw_settings(auto)
    return auto


def _raw_settings(auto: AutoSettings) -> dict[str, Any]:
    return load_config(_AnySettings, auto.file, auto.settings).model_extra or {}


def choose_recipe(
    splits: Splits, auto: Config | None, stored: Mapping[str, Any], log: Callable[[str], None]
) -> tuple[Advice, Config]:
    """Choose a recipe, or take that of the run in the folder (`stored` identity), and log which one and why.

    Returns the advice, which names the recipe, and the recipe's settings.
    """
    auto = AutoSettings() if auto is None else auto
    if not isinstance(auto, AutoSettings):
        raise ConfigError(
            "recipe `auto` cannot take the config of a specific recipe: name the recipe, or pass "
            "AutoSettings(settings=[...])"
        )
    advice = _stored_advice(stored)
    if advice is None or (splits.gold and "gold" not in stored.get("data", {})):
        weak = sample_documents(splits.weak, log)
        current = advise(profile(weak, splits.gold, splits.dev), names_pretrained(auto_encoder_name(auto), splits))
        if advice is not None and "gold" in RECIPES[current.recipe].NEEDS:
            raise ConfigError(
                f"the run in this folder was started without --gold; with it the recipe would be {current.recipe}: "
                "choose another --out"
            )
        advice = advice or current
    config, used, unused = _build_config(advice, auto)
    log(f"auto: the recipe is {' '.join((advice.recipe, *used))}")
    for sentence in (*advice.reasons, *advice.notes):
        log(f"  {sentence}")
    if unused:
        log(f"  The recommended {' and '.join(unused)} conflicts with your settings and is ignored.")
    return advice, config


def complete_as_gold(splits: Splits) -> Splits:
    """The complete documents of weak as gold, beside those that are incomplete: a reviewer has labeled them all.

    >>> weak = [Document("1", "Mara left", complete=True), Document("2", "Teel came")]
    >>> moved = complete_as_gold(Splits(weak=weak))
    >>> [doc.id for doc in moved.weak], [doc.id for doc in moved.gold]
    (['2'], ['1'])
    """
    weak = splits.weak or ()
    if isinstance(weak, StoredDocuments):
        if weak.complete.all() or not weak.complete.any():
            return splits
        gold = [*(splits.gold or ()), *weak.select(weak.complete)]
        return replace(splits, weak=weak.select(~weak.complete), gold=gold)
    complete = [doc for doc in weak if doc.complete]
    if not complete or len(complete) == len(weak):  # if all are, the labels themselves are said to be complete
        return splits
    return replace(splits, weak=[doc for doc in weak if not doc.complete], gold=[*(splits.gold or ()), *complete])


def auto_encoder_name(auto: AutoSettings) -> str:
    """The encoder that the settings name; `auto` if they name none."""
    encoder = _raw_settings(auto).get("encoder")
    return str(encoder.get("name", AUTO)) if isinstance(encoder, dict) else AUTO


def names_pretrained(encoder: str, splits: Splits) -> bool:
    """Whether an encoder is pre-trained: `auto` is the one that suits the texts; one that cannot be found is not."""
    try:
        return is_pretrained(EncoderConfig(name=choose_encoder(_texts(splits)).name if encoder == AUTO else encoder))
    except LacunerError:
        return False  # opening it is where its absence is an error


def choose_config_encoder(config: Config, splits: Splits, log: Callable[[str], None]) -> Config:
    """Replace the encoder `auto` in a recipe's settings by the one that suits the texts."""
    encoder = getattr(config, "encoder", None)
    if not isinstance(encoder, EncoderConfig) or encoder.name != AUTO:
        return config
    choice = choose_encoder(_texts(splits))
    log(choice.reason)
    return config.model_copy(update={"encoder": encoder.model_copy(update={"name": choice.name})})


def _texts(splits: Splits) -> Iterator[Document]:
    weak = splits.weak.sample if isinstance(splits.weak, StoredDocuments) else splits.weak
    return chain(weak or (), splits.gold or (), splits.unlabeled or ())


def sample_documents(docs: Sequence[Document] | None, log: Callable[[str], None]) -> Sequence[Document] | None:
    """At most about `PROFILED` documents to profile, chosen by their texts: their order does not matter."""
    if docs is None or len(docs) <= PROFILED:
        return docs
    every = -(-len(docs) // PROFILED)
    chosen = [doc for doc in docs if crc32(doc.text.encode("utf-8", "surrogatepass")) % every == 0]
    log(f"auto: the recipe is chosen from a sample of {len(chosen):,} of {len(docs):,} weak documents")
    return chosen


def _stored_advice(stored: Mapping[str, Any]) -> Advice | None:
    """The advice that a run was started with."""
    try:
        advice = Advice.model_validate_json(json.dumps(stored.get("why")))
    except ValidationError:
        return None
    return advice if advice.recipe in RECIPES and advice.recipe == stored.get("recipe") else None


def _build_config(advice: Advice, auto: AutoSettings) -> tuple[Config, list[str], list[str]]:
    """The user's settings over the advised ones; also the advised settings that are used, and those that do not fit."""
    kind: type[Config] = RECIPES[advice.recipe].Config
    try:
        config = load_config(kind, auto.file, auto.settings)
    except ConfigError as error:
        raise ConfigError(
            f"{error.problem} (auto chose the recipe {advice.recipe}; name another with --recipe if this setting is "
            "for that one)",
            file=error.file,
        ) from error
    raw = _raw_settings(auto)
    advised = [setting for setting in advice.settings if not _is_set(raw, setting.partition("=")[0].split("."))]
    try:
        return load_config(kind, auto.file, [*advised, *auto.settings]), advised, []
    except ConfigError:
        return config, [], advised


def _is_set(table: Any, path: list[str]) -> bool:
    """Whether a table of settings has a value at this path."""
    return not path or (isinstance(table, dict) and path[0] in table and _is_set(table[path[0]], path[1:]))
