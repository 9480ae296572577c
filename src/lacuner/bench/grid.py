"""Cells: what is to be trained, each with a key that says everything it depends on.

A cell may stand in several places of the table. `supervised` does not see the noise, so it runs once a data set,
encoder and seed; where nothing is masked, `trust` and `oracle` learn from the same documents as `supervised` and in the
same order, so they are the same run (a test compares them).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from lacuner.bench.spec import LITTLE, Spec, gaps_of
from lacuner.config import load_config
from lacuner.recipes import RECIPES

FORMAT = 1
"""Of the rows; rows of another format are not reused."""
_SUPERVISED = "supervised"
_SAME_WITHOUT_GAPS = ("trust", "oracle")


class Gaps(NamedTuple):
    """A kind of noise and its rate; of little gold the amount, and how many weak sentences there are at most."""

    kind: str
    rate: float
    weak: int | None = None

    def __str__(self) -> str:
        if self.kind == LITTLE:
            gold = f"{100 * self.rate:g} %" if self.rate <= 1 else f"{self.rate:g} sentences"
            return f"gold {gold}" + ("" if self.weak is None else f", weak {self.weak}")
        names = {"given": "as given", "surface": "names dropped", "wrong": "dropped and wrong"}
        return names.get(self.kind, self.kind) + ("" if self.kind == "given" else f" {self.rate:g}")

    def as_json(self) -> list[str | float]:
        return [each for each in self if each is not None]


class Place(NamedTuple):
    """Where a result stands in the table; one of several with different seeds."""

    data: str
    gaps: Gaps
    encoder: str
    recipe: str
    """As the spec names it."""


@dataclass(frozen=True)
class Cell:
    """One training and its test."""

    data: str
    hashes: Mapping[str, str]
    sentences: int | None
    gaps: Gaps | None
    """None: the recipe sees neither weak labels nor that gold is scarce."""
    recipe: str
    settings: tuple[str, ...]
    seed: int

    @property
    def config(self) -> dict[str, Any]:
        """All settings of the recipe, defaults too."""
        config: dict[str, Any] = load_config(RECIPES[self.recipe].Config, settings=self.settings).model_dump(
            mode="json"
        )
        return config

    @property
    def identity(self) -> dict[str, Any]:
        """What the result depends on. The settings are those that were given, in whatever order and spelling."""
        return {
            "format": FORMAT,
            "data": dict(sorted(self.hashes.items())),
            "sentences": self.sentences,
            "noise": None if self.gaps is None else {k: v for k, v in self.gaps._asdict().items() if v is not None},
            "recipe": self.recipe,
            "settings": _given(self.config, self.settings),
            "seed": self.seed,
        }

    @property
    def key(self) -> str:
        text = json.dumps(self.identity, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "hashes": dict(self.hashes), "gaps": None if self.gaps is None else self.gaps.as_json()}

    def __str__(self) -> str:
        gaps = "" if self.gaps is None else f" {self.gaps}"
        return f"{self.data}{gaps}, {self.recipe}, seed {self.seed}"


def _given(config: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """Of all settings those that are named, with the values that they came to have."""
    found: dict[str, Any] = {}
    for setting in settings:
        *outer, last = setting.partition("=")[0].strip().split(".")
        table, values = found, config
        for name in outer:
            table, values = table.setdefault(name, {}), values[name]
        table[last] = values[last]
    return found


def cell_from_json(row: Mapping[str, Any]) -> Cell:
    """The inverse of `Cell.as_json`."""
    gaps = None if row["gaps"] is None else Gaps(*row["gaps"])
    return Cell(**{**row, "gaps": gaps, "settings": tuple(row["settings"])})


def lay_out(spec: Spec, hashes: Mapping[str, Mapping[str, str]]) -> dict[tuple[Place, int], Cell]:
    """Every place and seed with the cell that belongs there, in the order of the spec."""
    found: dict[tuple[Place, int], Cell] = {}
    for name, data in spec.data.items():
        for gaps in [Gaps(*each) for each in gaps_of(spec, name, data)]:
            for encoder in spec.encoders:
                for shown in spec.recipes:
                    for seed in spec.seeds:
                        recipe, settings, seen = _actual(spec, shown, encoder, gaps)
                        cell = Cell(name, hashes[name], data.sentences, seen, recipe, settings, seed)
                        found[Place(name, gaps, encoder, shown), seed] = cell
    return found


def _actual(spec: Spec, shown: str, encoder: str, gaps: Gaps) -> tuple[str, tuple[str, ...], Gaps | None]:
    """Which recipe really runs, with which settings, and which noise it sees."""
    recipe = spec.recipes[shown].recipe
    has_encoder = "encoder" in RECIPES[recipe].Config.model_fields
    settings = spec.settings_of(shown, encoder if has_encoder else None)
    if recipe in _SAME_WITHOUT_GAPS and gaps.kind != "given" and gaps.rate == 0:
        recipe = _SUPERVISED
    if "weak" in RECIPES[recipe].NEEDS:
        return recipe, settings, gaps
    return recipe, settings, gaps._replace(weak=None) if gaps.kind == LITTLE else None


def to_run(laid: Mapping[tuple[Place, int], Cell]) -> dict[str, Cell]:
    """Each cell once, by key. The first seed of everything comes first, so that a half-finished bench shows all."""
    seeds = list(dict.fromkeys(seed for _, seed in laid))
    return {cell.key: cell for seed in seeds for (_, own), cell in laid.items() if own == seed}
