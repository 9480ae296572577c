"""Rows become figures: mean and spread over seeds, shares of the yardsticks, significance."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Any, NamedTuple

from lacuner.bench.grid import Gaps, Place
from lacuner.bench.rows import Row
from lacuner.bench.runner import Bench
from lacuner.bench.spec import LITTLE, Spec
from lacuner.bench.worker import unpack
from lacuner.evaluate.significance import Comparison, compare

YARDSTICKS = ("supervised", "oracle")
SAMPLES = 2_000
"""Draws of a comparison: with a hundred of them in a table, five times as many would take minutes."""


class Figure(NamedTuple):
    """A mean with its spread: the sample standard deviation, None for a single value."""

    mean: float
    spread: float | None
    n: int


def figure(values: Sequence[float]) -> Figure:
    """Mean and spread of some values."""
    return Figure(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None, len(values))


@dataclass(frozen=True)
class Line:
    """One line of the table: a recipe in one place, with its rows by seed."""

    place: Place
    rows: Mapping[int, Row]
    errors: Mapping[int, str]
    of_supervised: float | None = None
    of_oracle: float | None = None

    def values(self, part: str, name: str) -> Figure:
        return figure([row[part][name] for row in self.rows.values()])

    @property
    def f1(self) -> Figure:
        return self.values("test", "f1")

    def as_json(self) -> dict[str, Any]:
        place = {"data": self.place.data, "noise": str(self.place.gaps), "encoder": self.place.encoder}
        place |= {"recipe": self.place.recipe}
        if not self.rows:
            return {**place, "n": 0, "errors": dict(self.errors)}
        scores = {name: self.values("test", name) for name in ("precision", "recall", "f1")}
        figures = {name: {"mean": found.mean, "spread": found.spread} for name, found in scores.items()}
        shares = {"of_supervised": self.of_supervised, "of_oracle": self.of_oracle}
        return {**place, "n": len(self.rows), **figures, **shares, "errors": dict(self.errors)}


def summarise(bench: Bench) -> list[Line]:
    """The lines of the table in the order of the spec; without those of which nothing is known yet."""
    lines: dict[Place, Line] = {}
    for place in dict.fromkeys(place for place, _ in bench.laid):
        keys = {seed: bench.laid[place, seed].key for seed in bench.spec.seeds}
        rows = {seed: bench.finished[key] for seed, key in keys.items() if key in bench.finished}
        errors = {seed: bench.failed[key]["error"] for seed, key in keys.items() if key in bench.failed}
        if rows or errors:
            lines[place] = Line(place, rows, errors)
    heads = {place: _head(line) for place, line in lines.items()}
    return [_with_shares(line, lines, heads, bench.spec) for line in lines.values()]


def _head(line: Line) -> str | None:
    for row in line.rows.values():
        return str(((row.get("model") or row["config"]).get("head") or {}).get("kind"))
    return None


def _with_shares(line: Line, lines: Mapping[Place, Line], heads: Mapping[Place, str | None], spec: Spec) -> Line:
    """The line with its share of what the yardsticks reach; of those with the same head if there are any."""
    shares: list[float | None] = []
    for yardstick in YARDSTICKS:
        names = [name for name, recipe in spec.recipes.items() if recipe.recipe == yardstick]
        found = [place for name in names if (place := line.place._replace(recipe=name)) in lines]
        best = next((place for place in found if heads[place] == heads[line.place]), found[0] if found else None)
        shares.append(None if best is None else _share(line, lines[best]))
    return Line(line.place, line.rows, line.errors, *shares)


def _share(line: Line, other: Line) -> float | None:
    """The mean F1 of one over that of the other, over the seeds that both have."""
    seeds = [seed for seed in line.rows if seed in other.rows]
    mine, yours = (sum(each.rows[seed]["test"]["f1"] for seed in seeds) for each in (line, other))
    return mine / yours if yours else None


class Saved(NamedTuple):
    """What a recipe makes of little gold, and how much of it plain supervised training would need for as much F1."""

    place: Place
    f1: float
    needed: float
    """In the unit of the spec, by a straight line between the two nearest amounts, which are taken as logarithms."""


def gold_saved(lines: Sequence[Line], spec: Spec) -> Iterator[Saved]:
    """Of each recipe and amount of gold; infinite where `supervised` never gets there, 0 where it always has more."""
    name = next((name for name, recipe in spec.recipes.items() if recipe.recipe == "supervised"), "")
    known = [line for line in lines if line.place.gaps.kind == LITTLE and line.rows]
    for line in known:
        place, f1 = line.place, line.f1.mean
        curve = {
            other.place.gaps.rate: other.f1.mean
            for other in known
            if other.place == place._replace(recipe=name, gaps=place.gaps._replace(rate=other.place.gaps.rate))
        }
        if place.recipe != name and len(curve) > 1:
            yield Saved(place, f1, _amount_for(f1, sorted(curve.items())))


def _amount_for(f1: float, curve: Sequence[tuple[float, float]]) -> float:
    """Where a curve first reaches a value."""
    if f1 < curve[0][1]:
        return 0.0
    for (less, low), (more, high) in pairwise(curve):
        if low <= f1 <= high:
            return less * float((more / less) ** ((f1 - low) / (high - low) if high > low else 0.0))
    return inf


class Tested(NamedTuple):
    """Two recipes in the same place, compared."""

    data: str
    gaps: Gaps
    encoder: str
    first: str
    second: str
    seeds: int
    found: Comparison


def comparisons(lines: Sequence[Line], spec: Spec) -> Iterator[Tested]:
    """Every pair of the spec wherever both are. The counts of all common seeds are added up, sentence by sentence."""
    by_place = {line.place: line for line in lines}
    for place in dict.fromkeys(line.place._replace(recipe="") for line in lines):
        for first, second in _pairs(spec):
            one, two = (by_place.get(place._replace(recipe=name)) for name in (first, second))
            seeds = [seed for seed in one.rows if seed in two.rows] if one and two else []
            if not one or not two or all(one.rows[seed]["key"] == two.rows[seed]["key"] for seed in seeds):
                continue
            counts = [sum(unpack(line.rows[seed]["sentences_test"]) for seed in seeds) for line in (one, two)]
            yield Tested(*place[:3], first, second, len(seeds), compare(*counts, samples=SAMPLES))  # type: ignore[arg-type]


def _pairs(spec: Spec) -> Sequence[tuple[str, str]]:
    if spec.compare is not None:
        return spec.compare
    trust = next((name for name, recipe in spec.recipes.items() if recipe.recipe == "trust"), None)
    others = [name for name, recipe in spec.recipes.items() if recipe.recipe not in ("trust", *YARDSTICKS)]
    return [(name, trust) for name in others] if trust else []
