"""Settings: TOML files and `--set key=value` become frozen, strict objects; everything wrong is said at once."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError

from lacuner.errors import ConfigError


class Config(BaseModel):
    """What every config is: frozen, no unknown keys, no values of a wrong type bent into shape."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)


AnyConfig = TypeVar("AnyConfig", bound=Config)


@dataclass(frozen=True)
class OnlyWith:
    """Marks a setting that has an effect only where another one beside it has one of these values.

    Of a value with a colon, such as `hf:PATH`, what stands before the colon counts.
    """

    other: str
    values: tuple[str, ...]


def load_config(
    kind: type[AnyConfig],
    file: str | PathLike[str] | None = None,
    settings: Iterable[str] = (),
    more_to_come: bool = False,
) -> AnyConfig:
    """A config from its defaults, then the file, then `key=value` settings (`outer.inner=value` reaches inside).

    Settings without effect are refused, unless there are more to come that may give them one.
    """
    values: dict[str, Any] = {}
    text = ""
    if file is not None:
        text, values = _read_toml(file)
    for setting in settings:
        _apply(values, setting)
    return make_config(kind, values, file, text, more_to_come)


def make_config(
    kind: type[AnyConfig],
    values: dict[str, Any],
    file: str | PathLike[str] | None = None,
    text: str = "",
    more_to_come: bool = False,
) -> AnyConfig:
    """A config from values; `file` and its `text` are where they come from, for error messages."""
    defaults: Config | None = None
    try:
        defaults = kind()  # the defaults of this very config: they may differ from those of the configs inside it
        values = _merged(defaults.model_dump(mode="json"), values)
    except ValidationError:
        pass  # it has settings without a default
    try:
        # through JSON, because there a list may become a tuple and a string a path although the config is strict
        config = kind.model_validate_json(json.dumps(values, default=str))
    except ValidationError as error:
        problems = [_problem(kind, item, text) for item in error.errors()]
        raise ConfigError("; ".join(problems), file=file) from error
    idle = [] if more_to_come or defaults is None else list(_without_effect(config, defaults))
    if idle:
        raise ConfigError("; ".join(idle), file=file)
    return config


def _without_effect(config: Config, defaults: Config, where: str = "") -> Iterator[str]:
    """What somebody has set although it does nothing, in words; a default that does nothing is nobody's mistake."""
    for name, field in type(config).model_fields.items():
        value, usual = getattr(config, name), getattr(defaults, name, None)
        if isinstance(value, Config):
            yield from _without_effect(value, usual if isinstance(usual, Config) else type(value)(), f"{where}{name}.")
        for mark in field.metadata:
            if not isinstance(mark, OnlyWith) or value == usual:
                continue
            other = getattr(config, mark.other)
            if str(other).partition(":")[0] not in mark.values:
                yield (
                    f"{where}{name}={value} has no effect together with {where}{mark.other}={other}: "
                    f"it is for {' and '.join(mark.values)}"
                )


def _merged(defaults: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """Values over defaults, table by table."""
    both = dict(defaults)
    for key, value in values.items():
        inner = both.get(key)
        both[key] = _merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return both


def _read_toml(file: str | PathLike[str]) -> tuple[str, dict[str, Any]]:
    try:
        text = Path(file).read_text(encoding="utf-8")
        return text, tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"cannot read this file: {error.strerror}", file=file) from error
    except UnicodeDecodeError as error:
        raise ConfigError("this is not UTF-8 text", file=file) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"this is not TOML: {error}", file=file) from error


def _apply(values: dict[str, Any], setting: str) -> None:
    name, equals, value = setting.partition("=")
    if not equals or not name.strip():
        raise ConfigError(f"a setting is written key=value, not {setting!r}")
    *outer, last = name.strip().split(".")
    for key in outer:
        inner = values.setdefault(key, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"{key!r} in {setting!r} is a value, not a table of settings")
        values = inner
    try:
        values[last] = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        values[last] = value.strip()  # a word without quotes means itself


def _problem(kind: type[BaseModel], item: Any, text: str) -> str:
    """One mistake in the user's words: which setting, where it stands, and what would be right."""
    path = [str(part) for part in item["loc"]]
    name = ".".join(path)
    line = next(
        (i for i, row in enumerate(text.splitlines(), 1) if re.match(rf"\s*{re.escape(path[-1])}\s*=", row)), None
    )
    place = f" (line {line})" if line else ""
    if item["type"] == "extra_forbidden":
        known = _fields(kind, path[:-1])
        near = difflib.get_close_matches(path[-1], known, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}" if known else "there are none"
        return f"there is no setting {name!r}{place}; {hint}"
    message = item["msg"][:1].lower() + item["msg"][1:]
    given = "" if item["type"] == "missing" else f", not {json.dumps(item['input'], default=str)[:60]}"
    return f"{name}{place}: {message}{given}"


def _fields(kind: Any, path: list[str]) -> list[str]:
    """Names of the settings at a place inside nested configs; `kind` is a config, or a type that holds some."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        if not path:
            return list(kind.model_fields)
        field = kind.model_fields.get(path[0])
        return _fields(field.annotation, path[1:]) if field else []
    # in a table or a list of configs one part of the path is the user's own name, or a number
    rest = path[1:] if get_origin(kind) in (dict, list, tuple) else path
    return next(filter(None, (_fields(each, rest) for each in get_args(kind))), [])
