"""The grid of a benchmark: the cells to train and test.

The key of a cell is a hash of everything it depends on. One cell may fill several places of the table. `supervised`
does not see the noise, so it runs once per data set, encoder and seed. Without noise, `trust` and `oracle` see the same
documents as `supervised`, in the same order, so they are the same run (a test compares them).
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from lacuner.bench.spec import GOLD_SUBSET, NoiseLevel, Spec, noise_levels
from lacuner.config import load_config
from lacuner.recipes import RECIPES

FORMAT = 1
"""Version of the rows; rows of another version are not reused."""


class Condition(NamedTuple):
    """One line of the results table, averaged over seeds."""

    data: str
    noise: NoiseLevel
    encoder: str
    recipe: str
    """Name in the spec."""


@dataclass(frozen=True)
class Cell:
    """One training and its test."""

    data: str
    hashes: Mapping[str, str]
    """SHA-256 of the data files."""
    sentences: int | None
    noise: NoiseLevel | None
    """None if the recipe sees neither weak labels nor a gold subset."""
    recipe: str
    settings: tuple[str, ...]
    seed: int

    @property
    def config(self) -> dict[str, Any]:
        """All settings of the recipe, including defaults."""
        config = load_config(RECIPES[self.recipe].Config, settings=self.settings)
        return dict(config.model_dump(mode="json"))

    @property
    def identity(self) -> dict[str, Any]:
        """What the result depends on. Only explicit settings count, whatever their order and spelling."""
        noise = self.noise and {name: value for name, value in self.noise._asdict().items() if value is not None}
        return {
            "format": FORMAT,
            "data": dict(sorted(self.hashes.items())),
            "sentences": self.sentences,
            "noise": noise,
            "recipe": self.recipe,
            "settings": _select(self.config, self.settings),
            "seed": self.seed,
        }

    @property
    def key(self) -> str:
        """Hash of `identity`, which names the row of this cell."""
        text = json.dumps(self.identity, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def as_json(self) -> dict[str, Any]:
        fields = {**vars(self), "hashes": dict(self.hashes)}
        noise = fields.pop("noise")
        return {**fields, "gaps": noise and [value for value in noise if value is not None]}


def _select(config: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """Return the part of a config that `settings` mention."""
    selected: dict[str, Any] = {}
    for setting in settings:
        *outer, last = setting.partition("=")[0].strip().split(".")
        table, values = selected, config
        for name in outer:
            table, values = table.setdefault(name, {}), values[name]
        if last in values:  # a config leaves out a later setting that has its default
            table[last] = values[last]
    return selected


def cell_from_json(row: Mapping[str, Any]) -> Cell:
    """Restore a cell from `Cell.as_json`."""
    fields = dict(row)
    noise = fields.pop("gaps")
    return Cell(**{**fields, "noise": noise and NoiseLevel(*noise), "settings": tuple(row["settings"])})


def make_grid(spec: Spec, hashes: Mapping[str, Mapping[str, str]]) -> dict[tuple[Condition, int], Cell]:
    """Return the cell of every condition and seed, in the order of the spec; `hashes` are those of each data set."""
    grid: dict[tuple[Condition, int], Cell] = {}
    for name, data in spec.data.items():
        for noise, encoder, recipe_name in product(noise_levels(spec, name, data), spec.encoders, spec.recipes):
            recipe, settings, visible_noise = _resolve(spec, recipe_name, encoder, noise)
            for seed in spec.seeds:
                cell = Cell(name, hashes[name], data.sentences, visible_noise, recipe, settings, seed)
                grid[Condition(name, noise, encoder, recipe_name), seed] = cell
    return grid


def _resolve(spec: Spec, name: str, encoder: str, noise: NoiseLevel) -> tuple[str, tuple[str, ...], NoiseLevel | None]:
    """Return the recipe that really runs, its settings, and the noise that it sees."""
    recipe = spec.recipes[name].recipe
    has_encoder = "encoder" in RECIPES[recipe].Config.model_fields
    settings = spec.settings_of(name, encoder if has_encoder else None)
    if recipe in ("trust", "oracle") and noise.kind != "given" and noise.rate == 0:
        recipe = "supervised"
    if "weak" in RECIPES[recipe].NEEDS:
        return recipe, settings, noise
    return recipe, settings, noise._replace(weak=None) if noise.kind == GOLD_SUBSET else None


def unique_cells(grid: Mapping[tuple[Condition, int], Cell]) -> dict[str, Cell]:
    """Return each cell once, by key, sorted by seed: an unfinished bench then has something in every line."""
    seeds = list(dict.fromkeys(seed for _, seed in grid))
    return {cell.key: cell for seed in seeds for (_, cell_seed), cell in grid.items() if cell_seed == seed}
