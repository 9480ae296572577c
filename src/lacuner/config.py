"""Settings from TOML files and `--set key=value`, as frozen and strict objects; all mistakes are reported at once."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, ValidationError, model_serializer

from lacuner.errors import ConfigError

MAX_FILE = 16 << 20
"""Bytes of a file of settings."""
MAX_PARTS = 50
"""Parts of a dotted key; Python's TOML parser takes time quadratic in their number."""
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{MAX_PARTS}}}")


class Config(BaseModel):
    """Base of all configs: frozen, no unknown settings, no conversion of wrong types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)

    RENAMED: ClassVar[Mapping[str, str]] = {}
    """Former settings: old name -> new name (`outer.inner` reaches into a table), or a phrase for the error message."""
    PRESET_FIELDS: ClassVar[frozenset[str]] = frozenset()
    """Settings whose defaults depend on other settings: a validator fills them in."""
    LATER: ClassVar[frozenset[str]] = frozenset()
    """Settings that earlier versions did not have. A dump omits those that have their default, so that runs and
    benchmark rows of earlier versions keep their identity."""

    @model_serializer(mode="wrap")
    def _omit_later_settings(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields, values = type(self).model_fields, serialise(self)
        omitted = {name for name in self.LATER if getattr(self, name) == fields[name].default}
        return {name: value for name, value in values.items() if name not in omitted}

    def matching_defaults(self) -> Config:
        """The defaults that this config is compared with to find settings without effect."""
        return type(self)()


AnyConfig = TypeVar("AnyConfig", bound=Config)


@dataclass(frozen=True)
class OnlyWith:
    """Annotation for a setting that has an effect only if another setting of the same config has one of these values.

    For values such as `hf:PATH`, only the part before the colon is compared.
    """

    other: str
    values: tuple[str, ...]


def load_config(
    kind: type[AnyConfig],
    file: str | PathLike[str] | None = None,
    settings: Iterable[str] = (),
    more_to_come: bool = False,
) -> AnyConfig:
    """Build a config from its defaults, then a TOML file, then `key=value` settings (`outer.inner=value` for tables).

    Settings without effect are an error, unless `more_to_come` says that later settings may give them one.

    >>> class Training(Config):
    ...     epochs: int = 3
    >>> load_config(Training, settings=["epochs=5"])
    Training(epochs=5)
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
    """Build a config from values; `file` and its `text` are named in error messages."""
    defaults: Config | None = None
    try:
        defaults = kind()  # defaults of a nested config may differ from those of its own class
        values = merge_tables(defaults.model_dump(mode="json", exclude=set(kind.PRESET_FIELDS)), values)
    except ValidationError:
        pass  # some settings have no default
    if huge := list(_huge_numbers(values)):
        raise ConfigError(f"{' and '.join(huge)}: this number has too many digits", file=file)
    try:
        # strict validation accepts a list for a tuple and a string for a path only from JSON
        config = kind.model_validate_json(json.dumps(values, default=str))
    except ValidationError as error:
        problems = [_problem(kind, item, text) for item in error.errors()]
        raise ConfigError("; ".join(problems), file=file) from error
    ineffective = (
        [] if more_to_come or defaults is None else list(_ineffective_settings(config, config.matching_defaults()))
    )
    if ineffective:
        raise ConfigError("; ".join(ineffective), file=file)
    return config


def _ineffective_settings(config: Config, defaults: Config, prefix: str = "") -> Iterator[str]:
    """One message per setting that differs from its default but has no effect beside the other settings."""
    for name, field in type(config).model_fields.items():
        value, default = getattr(config, name), getattr(defaults, name, None)
        if isinstance(value, Config):
            inner = default if isinstance(default, Config) else type(value)()
            yield from _ineffective_settings(value, inner, f"{prefix}{name}.")
        for condition in field.metadata:
            if not isinstance(condition, OnlyWith) or value == default:
                continue
            other = getattr(config, condition.other)
            if str(other).partition(":")[0] not in condition.values:
                yield (
                    f"{prefix}{name}={value} has no effect together with {prefix}{condition.other}={other}: "
                    f"it is for {' and '.join(condition.values)}"
                )


def string_setting(name: str, value: str | None) -> list[str]:
    """The `key=value` setting of a string, whatever its characters; no setting for None.

    >>> string_setting("encoder.name", "tiny"), string_setting("encoder.name", None)
    (['encoder.name="tiny"'], [])
    """
    return [] if value is None else [f"{name}={json.dumps(value, ensure_ascii=False)}"]


def merge_tables(defaults: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Merge settings over their defaults, table by table; returns a new table.

    >>> merge_tables({"head": {"dropout": 0.1}, "models": 5}, {"head": {"kind": "span"}})
    {'head': {'dropout': 0.1, 'kind': 'span'}, 'models': 5}
    """
    merged = dict(defaults)
    for key, value in values.items():
        inner = merged.get(key)
        merged[key] = merge_tables(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return merged


def _huge_numbers(value: Any, name: str = "") -> Iterator[str]:
    """The names of whole numbers of more than 64 bits, which are too large for arithmetic with other numbers."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _huge_numbers(inner, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        for inner in value:
            yield from _huge_numbers(inner, name)
    elif isinstance(value, int) and value.bit_length() > 63:
        yield name


def _read_toml(file: str | PathLike[str]) -> tuple[str, dict[str, Any]]:
    try:
        with Path(file).open("rb") as stream:
            data = stream.read(MAX_FILE + 1)
        if len(data) > MAX_FILE:
            raise ConfigError("too large for a file of settings", file=file)
        text = data.decode("utf-8")
        if _LONG_KEY.search(text):
            raise ConfigError(f"this is not TOML for settings: a key has more than {MAX_PARTS} parts", file=file)
        return text, tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"cannot read this file: {error.strerror}", file=file) from error
    except UnicodeDecodeError as error:
        raise ConfigError("this is not UTF-8 text", file=file) from error
    except RecursionError as error:
        raise ConfigError("this is not TOML: it is nested too deeply", file=file) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"this is not TOML: {error}", file=file) from error
    except ValueError as error:  # of `open`: a NUL in the path; of `tomllib`: more digits than Python converts
        problem = "there is a NUL in its path" if "\0" in str(file) else "a number has too many digits"
        raise ConfigError(f"this is not TOML: {problem}", file=file) from error


def _apply(values: dict[str, Any], setting: str) -> None:
    """Put one `key=value` setting into nested values."""
    name, equals, value = setting.partition("=")
    if not equals or not name.strip():
        raise ConfigError(f"a setting is written key=value, not {setting!r}")
    *tables, last = name.strip().split(".")
    if len(tables) >= MAX_PARTS:
        raise ConfigError(f"the name of a setting has at most {MAX_PARTS} parts, not {len(tables) + 1:,}")
    for key in tables:
        inner = values.setdefault(key, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"{key!r} in {setting!r} is a value, not a table of settings")
        values = inner
    try:
        values[last] = tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):  # not TOML
        values[last] = value.strip()  # a string without quotes


def _problem(kind: type[BaseModel], item: Any, text: str) -> str:
    """The message for one validation error: the setting, its line, and what would be right."""
    path = [str(part) for part in item["loc"]]
    name = ".".join(path)
    line = next(
        (i for i, row in enumerate(text.splitlines(), 1) if re.match(rf"\s*{re.escape(path[-1])}\s*=", row)), None
    )
    place = f" (line {line})" if line else ""
    if item["type"] == "extra_forbidden":
        return _unknown_setting(kind, path, place)
    message = item["msg"][:1].lower() + item["msg"][1:]
    whole_table = isinstance(item["input"], dict | Config)  # its message names the settings in it
    is_shown = item["type"] != "missing" and not whole_table
    value = f", not {json.dumps(item['input'], default=str)[:60]}" if is_shown else ""
    return f"{name}{place}: {message}{value}"


def _unknown_setting(kind: type[BaseModel], path: list[str], place: str) -> str:
    name, config = ".".join(path), _config_at(kind, path[:-1])
    new = config.RENAMED.get(path[-1]) if config and issubclass(config, Config) else None
    if new and " " not in new:
        return f"setting {name!r}{place} is now called {'.'.join([*path[:-1], new])!r}"
    if new:
        return f"setting {name!r}{place} no longer exists: {new}"
    known = list(config.model_fields) if config else []
    elsewhere = [other for other in _setting_names(kind) if other.rpartition(".")[2] == path[-1]]
    if len(elsewhere) == 1:
        return f"there is no setting {name!r}{place}; did you mean {elsewhere[0]!r}?"
    near = difflib.get_close_matches(path[-1], known, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}" if known else "there are none"
    return f"there is no setting {name!r}{place}; {hint}"


def _setting_names(kind: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """The full names of all settings of a config and of the configs inside it."""
    for name, field in kind.model_fields.items():
        yield f"{prefix}{name}"
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _setting_names(field.annotation, f"{prefix}{name}.")


def _config_at(kind: Any, path: list[str]) -> type[BaseModel] | None:
    """The config at a place inside nested configs; `kind` is a config, or a type that contains some."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        if not path:
            return kind
        field = kind.model_fields.get(path[0])
        return _config_at(field.annotation, path[1:]) if field else None
    # inside a table or list of configs, one part of the path is a key or an index
    rest = path[1:] if get_origin(kind) in (dict, list, tuple) else path
    return next(filter(None, (_config_at(inner, rest) for inner in get_args(kind))), None)
