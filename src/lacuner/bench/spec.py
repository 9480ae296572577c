"""What to measure: a TOML file, checked completely before anything runs."""

from os import PathLike
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from lacuner.config import Config, load_config, string_setting
from lacuner.errors import ConfigError
from lacuner.noise import PROFILES
from lacuner.recipes import RECIPES

DEMO = "demo"
"""The data set that needs no files: the generated demo corpus."""
FILES = ("gold", "weak", "extra", "unlabeled", "dev", "test", "dictionary")
SIMULATED = ("masked", "surface", "wrong")
"""Kinds of noise that are simulated from gold."""
PROFILE = "profile "
"""A kind of noise with this prefix is an error profile, such as `profile llm`; its rate is 1."""
GOLD_SUBSET = "little"
"""The kind of noise with a subset of gold beside weak labels."""

Rate = Annotated[float, Field(ge=0, le=1)]
Amount = Annotated[float, Field(gt=0)]
Pairs = tuple[tuple[str, str], ...]


def _check_name(name: str) -> str:
    if not name.strip() or not name.isprintable() or len(name) > 60:
        raise PydanticCustomError("name", "a name has 1 to 60 printable characters")
    return name


Name = Annotated[str, AfterValidator(_check_name)]


class NoiseLevel(NamedTuple):
    """A kind of noise and its rate. For a gold subset: the amount of gold, and the number of weak sentences.

    >>> str(NoiseLevel("masked", 0.5)), str(NoiseLevel(GOLD_SUBSET, 0.1, 300))
    ('masked 0.5', 'gold 10 %, weak 300')
    """

    kind: str
    rate: float
    weak: int | None = None
    """Maximum number of weak sentences; None: all."""

    def __str__(self) -> str:
        if self.kind == GOLD_SUBSET:
            gold = f"{100 * self.rate:g} %" if self.rate <= 1 else f"{self.rate:g} sentences"
            return f"gold {gold}" + ("" if self.weak is None else f", weak {self.weak}")
        if self.kind.startswith(PROFILE):
            return self.kind.removeprefix(PROFILE) + " errors"
        names = {"given": "as given", "surface": "names dropped", "wrong": "dropped and wrong"}
        return names.get(self.kind, self.kind) + ("" if self.kind == "given" else f" {self.rate:g}")


class DataSpec(Config):
    """A data set: files in a folder, or the demo corpus, which has no files."""

    folder: Path | None = None
    """Folder below `--data`."""
    gold: str | None = None
    """Training sentences with gold labels, for simulated noise and for `supervised`."""
    weak: str | None = None
    """The same or other sentences with weak labels, for the noise `given` and `little_gold`."""
    extra: str | None = None
    """More sentences with weak labels and without gold, added to `weak`."""
    unlabeled: str | None = None
    """More text for the recipes that use some."""
    dev: str | None = None
    test: str | None = None
    dictionary: str | None = None
    """Gazetteer that the recipe `dictionary` matches; without one, it matches the labeled names."""
    sentences: int | None = Field(None, ge=1)
    """Number of training sentences, from the start of the file; None: all."""
    dev_sentences: int | None = Field(None, ge=1)
    """Number of dev sentences, from the start of the file; None: all."""

    @field_validator("folder")
    @classmethod
    def _check_folder(cls, folder: Path | None) -> Path | None:
        if folder is not None and (folder.is_absolute() or ".." in folder.parts):
            raise PydanticCustomError("folder", "must be a folder below --data")
        return folder


class NoiseSpec(Config):
    """Kinds of noise. `given` needs weak labels, simulated noise needs gold, `little_gold` needs both."""

    given: bool = False
    """The data set's own weak labels; for the demo corpus those of its gazetteer."""
    masked: tuple[Rate, ...] = ()
    """Shares of the entities that lose their label."""
    surface: tuple[Rate, ...] = ()
    """Shares of the names that lose the labels of all their mentions."""
    wrong: tuple[Rate, ...] = ()
    """Shares of the entities that lose their label. The same share of the remaining labels is wrong: half of them get
    another type, half a boundary that is off by one word."""
    profiles: tuple[str, ...] = ()
    """Error profiles, as after `lacuner noise corrupt --profile`."""
    little_gold: tuple[Amount, ...] = ()
    """Amounts of gold: up to 1 a share of the sentences, above 1 their number. The other sentences have the data set's
    own weak labels; those of `extra` are added."""
    weak_sentences: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Maximum numbers of weak sentences beside `little_gold`; empty: all."""

    @field_validator("profiles")
    @classmethod
    def _check_profiles(cls, profiles: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := sorted(set(profiles) - set(PROFILES)):
            values = {"name": repr(unknown[0]), "known": ", ".join(PROFILES)}
            raise PydanticCustomError("profiles", "there is no error profile {name}; there are {known}", values)
        return profiles


class RecipeSpec(Config):
    """A recipe with its settings, under the name that the table shows."""

    recipe: str
    settings: tuple[str, ...] = ()
    """Settings as after `--set`."""

    @field_validator("recipe")
    @classmethod
    def _check_recipe(cls, recipe: str) -> str:
        if recipe not in RECIPES:
            raise PydanticCustomError("recipe", "must be one of {known}", {"known": ", ".join(RECIPES)})
        return recipe

    @field_validator("settings")
    @classmethod
    def _check_settings(cls, settings: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if recipe := info.data.get("recipe"):
            try:
                load_config(RECIPES[recipe].Config, settings=settings, more_to_come=True)
            except ConfigError as error:
                # as a parameter, because braces in a template are placeholders
                raise PydanticCustomError("settings", "{problem}", {"problem": error.problem}) from error
        return settings


class Spec(Config):
    """A benchmark: every combination of data, noise, encoder, recipe and seed is a cell."""

    data: dict[Name, DataSpec] = Field(min_length=1)
    noise: NoiseSpec
    recipes: dict[Name, RecipeSpec] = Field(min_length=1)
    encoders: tuple[str, ...] = Field(("tiny",), min_length=1)
    seeds: tuple[int, ...] = Field((1, 2, 3), min_length=1)
    settings: tuple[str, ...] = ()
    """Settings for all recipes that have them."""
    compare: Pairs | None = None
    """Pairs of recipes to test for a significant difference; None: each recipe and the first `trust`."""

    @field_validator("seeds", "encoders")
    @classmethod
    def _check_unique(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(set(values)) < len(values):
            raise PydanticCustomError("once", "must not contain a value twice")
        return values

    @field_validator("compare")
    @classmethod
    def _check_pairs(cls, pairs: Pairs | None, info: ValidationInfo) -> Pairs | None:
        known = info.data.get("recipes")
        unknown = sorted({name for pair in pairs or () for name in pair if known is not None and name not in known})
        if unknown:
            raise PydanticCustomError("compare", "{name} is not a recipe of this spec", {"name": repr(unknown[0])})
        return pairs

    def settings_of(self, name: str, encoder: str | None) -> tuple[str, ...]:
        """All settings of a recipe: the common ones that it has, its own, and the encoder."""
        recipe = self.recipes[name]
        fields = RECIPES[recipe.recipe].Config.model_fields
        common = [setting for setting in self.settings if _table_of(setting) in fields]
        encoder_setting = string_setting("encoder.name", encoder)
        return (*common, *recipe.settings, *encoder_setting)


def load_spec(file: str | PathLike[str], data_folder: Path, settings: tuple[str, ...] = ()) -> Spec:
    """Read and check a spec, whose files must exist. All mistakes are reported in one error."""
    spec = load_config(Spec, file, settings)
    problems = [problem for name, data in spec.data.items() for problem in _data_problems(name, data, data_folder)]
    problems += _settings_problems(spec)
    for name, data in spec.data.items():
        if not noise_levels(spec, name, data):
            problems.append(f"data.{name}: no kind of noise applies (given needs weak, the others need gold)")
    if spec.noise.weak_sentences and not spec.noise.little_gold:
        problems.append("noise.weak_sentences has no effect without noise.little_gold")
    problems += [
        f"recipes.{name}: oracle needs gold for the weak sentences, which noise.little_gold withholds"
        for name, recipe in spec.recipes.items()
        if spec.noise.little_gold and recipe.recipe == "oracle"
    ]
    if problems:
        raise ConfigError("; ".join(problems), file=file)
    return spec


def _settings_problems(spec: Spec) -> list[str]:
    """Mistakes in the combination of a recipe's own settings, the common ones and an encoder."""
    problems = _unused_settings(spec)
    for name, recipe in spec.recipes.items():
        config = RECIPES[recipe.recipe].Config
        for encoder in spec.encoders if "encoder" in config.model_fields else (None,):
            try:
                load_config(config, settings=spec.settings_of(name, encoder))
            except ConfigError as error:
                problems.append(f"recipes.{name} with the common settings: {error.problem}")
    return list(dict.fromkeys(problems))


def _unused_settings(spec: Spec) -> list[str]:
    """Common settings that no recipe has, because `settings_of` would drop them: they are misspelled."""
    known = sorted({field for module in RECIPES.values() for field in module.Config.model_fields})
    names = [_table_of(setting) for setting in spec.settings]
    return [
        f"settings: no recipe has {name!r}; there are {', '.join(known)}"
        for name in dict.fromkeys(names)
        if name not in known
    ]


def _table_of(setting: str) -> str:
    """The setting, or the table of settings, that `KEY=VALUE` sets: `head` for `head.kind=span`."""
    return setting.partition("=")[0].split(".")[0].strip()


def _data_problems(name: str, data: DataSpec, data_folder: Path) -> list[str]:
    files = {role: getattr(data, role) for role in FILES}
    if is_demo(name, data):
        return [f"data.{name}: the demo corpus has no files"] if any(files.values()) else []
    problems = []
    if data.folder is None:
        problems.append(f"data.{name}: folder is missing (only the data set {DEMO!r} needs none)")
    if data.test is None:
        problems.append(f"data.{name}: test is missing")
    if data.extra is not None and data.weak is None:
        problems.append(f"data.{name}: extra needs weak, to which it is added")
    if data.gold is None and data.weak is None:
        problems.append(f"data.{name}: gold or weak is missing")
    for file in files.values():
        path = data_folder / (data.folder or "") / (file or "")
        if data.folder is not None and file is not None and not path.is_file():
            problems.append(f"data.{name}: there is no file {path}")
    return problems


def is_demo(name: str, data: DataSpec) -> bool:
    """Whether a data set is the generated demo corpus."""
    return name == DEMO and data.folder is None


def noise_levels(spec: Spec, name: str, data: DataSpec) -> list[NoiseLevel]:
    """All kinds and rates of noise of a spec that apply to a data set."""
    demo, noise = is_demo(name, data), spec.noise
    levels = [NoiseLevel("given", 0.0)] if noise.given and (demo or data.weak) else []
    if demo or data.gold:
        levels += [NoiseLevel(kind, rate) for kind in SIMULATED for rate in getattr(noise, kind)]
        levels += [NoiseLevel(PROFILE + profile, 1.0) for profile in noise.profiles]
    if demo or (data.gold and data.weak):
        counts = noise.weak_sentences or (None,)
        levels += [NoiseLevel(GOLD_SUBSET, amount, weak) for weak in counts for amount in noise.little_gold]
    return levels
