"""What to measure: a TOML file, checked in one go before anything runs."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from lacuner.config import Config, load_config
from lacuner.errors import ConfigError
from lacuner.recipes import RECIPES

DEMO = "demo"
"""The data set that needs no files."""
FILES = ("gold", "weak", "extra", "dev", "test")
MADE = ("masked", "surface", "wrong")
"""The kinds of noise that are made from gold."""
LITTLE = "little"
"""The noise of those who have a little gold."""

Rate = Annotated[float, Field(ge=0, le=1)]
Amount = Annotated[float, Field(gt=0)]


def _name(name: str) -> str:
    if not name.strip() or not name.isprintable() or len(name) > 60:
        raise PydanticCustomError("name", "a name has 1 to 60 printable characters")
    return name


Name = Annotated[str, AfterValidator(_name)]


class DataSpec(Config):
    """A data set: files in a folder, or the demo corpus, which has none."""

    folder: Path | None = None
    """Below the data folder of the command line."""
    gold: str | None = None
    """Training sentences with complete labels: what is masked, and what `supervised` learns from."""
    weak: str | None = None
    """The same sentences, or others, with labels of unknown quality: for the noise `given`, and for `little_gold`."""
    extra: str | None = None
    """Other sentences with such labels, of which nobody knows the truth: added to `weak`."""
    dev: str | None = None
    test: str | None = None
    sentences: int | None = Field(None, ge=1)
    """Learn from the first so many training sentences; None: from all."""
    dev_sentences: int | None = Field(None, ge=1)
    """Choose by the first so many dev sentences; None: by all."""

    @field_validator("folder")
    @classmethod
    def _below(cls, folder: Path | None) -> Path | None:
        if folder is not None and (folder.is_absolute() or ".." in folder.parts):
            raise PydanticCustomError("folder", "a folder below the data folder, which the command line names")
        return folder


class NoiseSpec(Config):
    """Which labels are missing. A data set without weak labels has no `given`, one without gold nothing else."""

    given: bool = False
    """The data set's own weak labels; for the demo corpus its dictionary's."""
    masked: tuple[Rate, ...] = ()
    """Shares of the entities that lose their label."""
    surface: tuple[Rate, ...] = ()
    """Shares of the names that lose their label, with all their mentions."""
    wrong: tuple[Rate, ...] = ()
    """Shares of the entities that lose their label; of the other labels as many are wrong, half of them of another type
    and half with an edge that is a word off."""
    little_gold: tuple[Amount, ...] = ()
    """How much of gold the recipes see: up to 1 a share of its sentences, above it a number of them. The other
    sentences are there with the data set's own weak labels, and those of `extra` besides."""
    weak_sentences: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """With little gold: at most so many weak sentences; several make a curve. None: all."""


class RecipeSpec(Config):
    """A recipe with settings, under the name that the table shows."""

    recipe: str
    settings: tuple[str, ...] = ()
    """As after `--set`."""

    @field_validator("recipe")
    @classmethod
    def _known(cls, recipe: str) -> str:
        if recipe not in RECIPES:
            raise PydanticCustomError("recipe", "must be one of {known}", {"known": ", ".join(RECIPES)})
        return recipe

    @field_validator("settings")
    @classmethod
    def _fit(cls, settings: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if recipe := info.data.get("recipe"):
            _check_settings(recipe, settings)
        return settings


class Spec(Config):
    """A bench: every combination is a cell."""

    data: dict[Name, DataSpec] = Field(min_length=1)
    noise: NoiseSpec
    recipes: dict[Name, RecipeSpec] = Field(min_length=1)
    encoders: tuple[str, ...] = Field(("tiny",), min_length=1)
    seeds: tuple[int, ...] = Field((1, 2, 3), min_length=1)
    settings: tuple[str, ...] = ()
    """For all recipes that have such a setting."""
    compare: tuple[tuple[str, str], ...] | None = None
    """Pairs of recipes to test for significance; None: each against the first `trust`."""

    @field_validator("seeds", "encoders")
    @classmethod
    def _once(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(set(values)) < len(values):
            raise PydanticCustomError("once", "each may be there once")
        return values

    @field_validator("compare")
    @classmethod
    def _there(
        cls, pairs: tuple[tuple[str, str], ...] | None, info: ValidationInfo
    ) -> tuple[tuple[str, str], ...] | None:
        known = info.data.get("recipes")
        unknown = sorted({name for both in pairs or () for name in both if known is not None and name not in known})
        if unknown:
            raise PydanticCustomError("compare", "{name} is no recipe of this bench", {"name": repr(unknown[0])})
        return pairs

    def settings_of(self, name: str, encoder: str | None) -> tuple[str, ...]:
        """All settings of a recipe of this bench."""
        mine = self.recipes[name]
        known = RECIPES[mine.recipe].Config.model_fields
        common = [each for each in self.settings if each.partition("=")[0].split(".")[0].strip() in known]
        chosen = [f'encoder.name="{encoder}"'] if encoder is not None else []
        return (*common, *mine.settings, *chosen)


def _check_settings(recipe: str, settings: tuple[str, ...]) -> None:
    try:
        load_config(RECIPES[recipe].Config, settings=settings, more_to_come=True)
    except ConfigError as error:
        # braces would be taken for places to fill in
        raise PydanticCustomError("settings", "{problem}", {"problem": error.problem}) from error


def load_spec(file: str | PathLike[str], data_folder: Path, settings: tuple[str, ...] = ()) -> Spec:
    """Read and check a spec; its files must be there. Everything that is wrong is said at once."""
    spec = load_config(Spec, file, settings)
    problems = [problem for name, data in spec.data.items() for problem in _data_problems(name, data, data_folder)]
    problems += _settings_problems(spec)
    for name, data in spec.data.items():
        if not gaps_of(spec, name, data):
            problems.append(f"data.{name}: none of the kinds of noise fits it (given needs weak, the others gold)")
    if spec.noise.weak_sentences and not spec.noise.little_gold:
        problems.append("noise.weak_sentences has no effect without noise.little_gold")
    problems += [
        f"recipes.{name}: {mine.recipe} needs gold of the weak sentences, which little_gold takes away"
        for name, mine in spec.recipes.items()
        if spec.noise.little_gold and mine.recipe == "oracle"
    ]
    if problems:
        raise ConfigError("; ".join(problems), file=file)
    return spec


def _settings_problems(spec: Spec) -> list[str]:
    """What is wrong once a recipe has its own settings, the common ones, and an encoder."""
    problems = []
    for name, mine in spec.recipes.items():
        kind = RECIPES[mine.recipe].Config
        for encoder in spec.encoders if "encoder" in kind.model_fields else (None,):
            try:
                load_config(kind, settings=spec.settings_of(name, encoder))
            except ConfigError as error:
                problems.append(f"recipes.{name} with the common settings: {error.problem}")
    return list(dict.fromkeys(problems))


def _data_problems(name: str, data: DataSpec, data_folder: Path) -> list[str]:
    files = {role: getattr(data, role) for role in FILES}
    if is_demo(name, data):
        return [f"data.{name}: the demo corpus has no files"] if any(files.values()) else []
    problems = []
    if data.folder is None:
        problems.append(f"data.{name}: a folder is missing (only the data set {DEMO!r} needs none)")
    if data.test is None:
        problems.append(f"data.{name}: a test file is missing")
    if data.extra is not None and data.weak is None:
        problems.append(f"data.{name}: extra weak sentences need a weak file that they are added to")
    if data.gold is None and data.weak is None:
        problems.append(f"data.{name}: a gold or a weak file is missing")
    for file in files.values():
        path = data_folder / (data.folder or "") / (file or "")
        if data.folder is not None and file is not None and not path.is_file():
            problems.append(f"data.{name}: there is no file {path}")
    return problems


def is_demo(name: str, data: DataSpec) -> bool:
    """Whether this is the corpus that lacuner makes itself."""
    return name == DEMO and data.folder is None


def gaps_of(spec: Spec, name: str, data: DataSpec) -> list[tuple[str, float, int | None]]:
    """The kinds of noise that a data set takes part in, with their rates, and how many weak sentences there may be."""
    demo, noise = is_demo(name, data), spec.noise
    found: list[tuple[str, float, int | None]] = [("given", 0.0, None)] if noise.given and (demo or data.weak) else []
    if demo or data.gold:
        found += [(kind, rate, None) for kind in MADE for rate in getattr(noise, kind)]
    if demo or (data.gold and data.weak):
        found += [(LITTLE, rate, most) for most in noise.weak_sentences or (None,) for rate in noise.little_gold]
    return found
