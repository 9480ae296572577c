"""`auto`: the recipe that suits the data, by the rules of `lacuner.advice`.

It is no recipe of its own. Before a run begins it becomes one of those that there are; `run.json` has that one, and
under `why` the reasons. A run that was begun goes on with the recipe that it was begun with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ConfigDict, ValidationError

from lacuner.advice import Advice, advise, profile
from lacuner.config import Config, load_config
from lacuner.data import Splits
from lacuner.errors import ConfigError
from lacuner.recipes import RECIPES

AUTO = "auto"


class Asked(Config):
    """What somebody wants of a recipe that is yet to be chosen."""

    file: Path | None = None
    """Settings in TOML."""
    settings: tuple[str, ...] = ()
    """As after `--set`."""


class Anything(Config):
    """Settings of whatever recipe: what can be said of them before it is known which one."""

    model_config = ConfigDict(extra="allow")


def ask(file: str | PathLike[str] | None, settings: Iterable[str]) -> Asked:
    """What was asked for, seen to be readable."""
    asked = Asked(file=None if file is None else Path(file), settings=tuple(settings))
    load_config(Anything, asked.file, asked.settings)
    return asked


class Settled(NamedTuple):
    """The recipe that was chosen, its settings, and the advice that chose it."""

    recipe: str
    config: Config
    advice: Advice


def settle(splits: Splits, asked: Config | None, begun: Mapping[str, Any], say: Callable[[str], None]) -> Settled:
    """Choose a recipe, or take that of the run that was begun, and say which and why."""
    if asked is None:
        asked = Asked()
    if not isinstance(asked, Asked):
        raise ConfigError("the settings of auto are not those of a recipe: hand them over as Asked(settings=[...])")
    advice = _advice_of(begun)
    if advice is None or (splits.gold and "gold" not in begun.get("data", {})):
        now = advise(profile(splits.weak, splits.gold, splits.dev), _encoder(asked))
        if advice is not None and "gold" in RECIPES[now.recipe].NEEDS:
            raise ConfigError(
                f"the run in this folder was begun without --gold, with which the recipe would be {now.recipe}: choose "
                "another folder for it"
            )
        advice = advice or now
    config, taken, left_out = _config(advice, asked)
    say(f"auto: the recipe is {' '.join((advice.recipe, *taken))}")
    for sentence in (*advice.reasons, *advice.notes):
        say(f"  {sentence}")
    if left_out:
        say(f"  {' and '.join(left_out)} would be advised, but does not go with the other settings.")
    return Settled(advice.recipe, config, advice)


def _encoder(asked: Asked) -> str:
    """The name of the encoder that was asked for."""
    encoder = (load_config(Anything, asked.file, asked.settings).model_extra or {}).get("encoder")
    return str(encoder.get("name", "tiny")) if isinstance(encoder, dict) else "tiny"


def begun_in(folder: str | PathLike[str]) -> dict[str, Any]:
    """What the run in a folder is; nothing if there is none, or none that can be read (the run itself says so then)."""
    try:
        identity = json.loads((Path(folder) / "run.json").read_text(encoding="utf-8"))["identity"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    return identity if isinstance(identity, dict) else {}


def _advice_of(begun: Mapping[str, Any]) -> Advice | None:
    """The advice that a run was begun with."""
    try:
        advice = Advice.model_validate_json(json.dumps(begun.get("why")))
    except ValidationError:
        return None
    return advice if advice.recipe in RECIPES and advice.recipe == begun.get("recipe") else None


def _config(advice: Advice, asked: Asked) -> tuple[Config, list[str], list[str]]:
    """What was asked for, over what is advised, over the defaults; the advised settings in it, and the misfits."""
    kind: type[Config] = RECIPES[advice.recipe].Config
    try:
        config = load_config(kind, asked.file, asked.settings)
    except ConfigError as error:
        raise ConfigError(
            f"auto chose the recipe {advice.recipe}, and the settings do not fit it: {error.problem}; name a recipe "
            "that they are for, or leave them out",
            file=error.file,
        ) from error
    given = load_config(Anything, asked.file, asked.settings).model_extra
    advised = [each for each in advice.settings if not _names(given, each.partition("=")[0].split("."))]
    try:
        return load_config(kind, asked.file, [*advised, *asked.settings]), advised, []
    except ConfigError:
        return config, [], advised


def _names(table: Any, path: list[str]) -> bool:
    """Whether a table of settings has a value at this place."""
    for name in path:
        if not isinstance(table, dict) or name not in table:
            return False
        table = table[name]
    return True
