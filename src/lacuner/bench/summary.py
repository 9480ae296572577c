"""Summarise rows: mean and standard deviation over seeds, shares of the upper bounds, significance."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from typing import Any, NamedTuple

import numpy as np

from lacuner.bench.grid import Condition
from lacuner.bench.rows import Row, unpack_counts
from lacuner.bench.runner import Bench
from lacuner.bench.spec import GOLD_SUBSET, Spec
from lacuner.evaluate.significance import Comparison, compare
from lacuner.recipes import RECIPES

SAMPLES = 2_000
"""Samples per significance test: a table may have a hundred tests, so more would take minutes."""

GoldEquivalent = tuple[Condition, float, float]
"""A recipe with a gold subset, or with given weak labels alone, its F1, and the amount of gold that plain supervised
training needs for that F1."""
PairedTest = tuple[Condition, str, int, Comparison]
"""Condition of the first recipe, name of the second, number of common seeds, and significance of the difference."""


class MeanStd(NamedTuple):
    """A mean and the sample standard deviation, which is None for a single value."""

    mean: float
    std: float | None


def mean_std(values: Sequence[float]) -> MeanStd:
    """Return mean and standard deviation.

    >>> mean_std([1.0, 3.0])
    MeanStd(mean=2.0, std=1.4142135623730951)
    """
    return MeanStd(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None)


@dataclass(frozen=True)
class TableLine:
    """One line of the results table: a condition with its rows and errors by seed."""

    condition: Condition
    rows: Mapping[int, Row]
    errors: Mapping[int, str]
    of_supervised: float | None = None
    """Share of the F1 of `supervised`."""
    of_oracle: float | None = None

    def metric(self, part: str, name: str) -> MeanStd:
        """Return a number of the rows over the seeds, such as `metric("test", "f1")`."""
        return mean_std([row[part][name] for row in self.rows.values()])

    @property
    def f1(self) -> MeanStd:
        return self.metric("test", "f1")

    def as_json(self) -> dict[str, Any]:
        condition = {name: str(value) for name, value in self.condition._asdict().items()}
        if not self.rows:
            return {**condition, "n": 0, "errors": dict(self.errors)}
        metrics = {name: self.metric("test", name) for name in ("precision", "recall", "f1")}
        scores = {name: {"mean": metric.mean, "spread": metric.std} for name, metric in metrics.items()}
        shares = {"of_supervised": self.of_supervised, "of_oracle": self.of_oracle}
        return {**condition, "n": len(self.rows), **scores, **shares, "errors": dict(self.errors)}


def summarise(bench: Bench) -> list[TableLine]:
    """Return the lines of the table in the order of the spec, without conditions that have no row yet."""
    lines: dict[Condition, TableLine] = {}
    finished, failed = bench.finished, bench.failed
    for condition in dict.fromkeys(condition for condition, _ in bench.grid):
        keys = {seed: bench.grid[condition, seed].key for seed in bench.spec.seeds}
        rows = {seed: finished[key] for seed, key in keys.items() if key in finished}
        errors = {seed: failed[key]["error"] for seed, key in keys.items() if key in failed}
        if rows or errors:
            lines[condition] = TableLine(condition, rows, errors)
    return [
        replace(
            line,
            of_supervised=_share_of("supervised", line, lines, bench.spec),
            of_oracle=_share_of("oracle", line, lines, bench.spec),
        )
        for line in lines.values()
    ]


def _share_of(recipe: str, line: TableLine, lines: Mapping[Condition, TableLine], spec: Spec) -> float | None:
    """Return the share of an upper bound's F1, of the one with the same head if there is any."""
    names = [name for name, entry in spec.recipes.items() if entry.recipe == recipe]
    bounds = [lines[key] for name in names if (key := line.condition._replace(recipe=name)) in lines]
    if not bounds:
        return None
    bound = next((bound for bound in bounds if _head_kind(bound) == _head_kind(line)), bounds[0])
    seeds = [seed for seed in line.rows if seed in bound.rows]
    own_f1, bound_f1 = (sum(own.rows[seed]["test"]["f1"] for seed in seeds) for own in (line, bound))
    return own_f1 / bound_f1 if bound_f1 else None


def _head_kind(line: TableLine) -> str | None:
    for row in line.rows.values():
        return str(((row.get("model") or row["config"]).get("head") or {}).get("kind"))
    return None


def gold_equivalents(lines: Sequence[TableLine], spec: Spec) -> Iterator[GoldEquivalent]:
    """Yield one for each recipe and amount of gold, and one for each recipe that has given weak labels and no gold.

    The amount is interpolated over its logarithm; infinite above the best F1 of `supervised`, 0 below its lowest.
    """
    name = next((name for name, recipe in spec.recipes.items() if recipe.recipe == "supervised"), "")
    subset_lines = [line for line in lines if line.condition.noise.kind == GOLD_SUBSET and line.rows]
    supervised = [line for line in subset_lines if line.condition.recipe == name]
    weak_only = {name for name, recipe in spec.recipes.items() if "gold" not in RECIPES[recipe.recipe].NEEDS}
    without_gold = [
        line
        for line in lines
        if line.condition.noise.kind == "given" and line.condition.recipe in weak_only and line.rows
    ]
    for line in (*subset_lines, *without_gold):
        condition, noise = line.condition, line.condition.noise
        curve = {
            other.condition.noise.rate: other.f1.mean
            for other in supervised
            if other.condition == condition._replace(recipe=name, noise=other.condition.noise)
            and (noise.kind == "given" or noise.weak == other.condition.noise.weak)
        }
        if condition.recipe != name and len(curve) > 1:
            yield condition, line.f1.mean, _interpolate(line.f1.mean, sorted(curve.items()))


def _interpolate(f1: float, curve: Sequence[tuple[float, float]]) -> float:
    """Return the amount at which a curve of (amount, F1) first reaches a value."""
    if f1 < curve[0][1]:
        return 0.0
    for (less, low), (more, high) in pairwise(curve):
        if low <= f1 <= high:
            return less * float((more / less) ** ((f1 - low) / (high - low) if high > low else 0.0))
    return inf


def paired_tests(lines: Sequence[TableLine], spec: Spec) -> Iterator[PairedTest]:
    """Test every pair of the spec wherever both have rows, over their common seeds."""
    by_condition = {line.condition: line for line in lines}
    for shared in dict.fromkeys(line.condition._replace(recipe="") for line in lines):
        for names in _pairs(spec):
            first, second = (by_condition.get(shared._replace(recipe=name)) for name in names)
            seeds = [seed for seed in first.rows if seed in second.rows] if first and second else []
            if not first or not second or all(first.rows[seed]["key"] == second.rows[seed]["key"] for seed in seeds):
                continue
            a, b = (
                np.stack([unpack_counts(line.rows[seed]["sentences_test"]) for seed in seeds])
                for line in (first, second)
            )
            yield first.condition, names[1], len(seeds), compare(a, b, samples=SAMPLES)


def _pairs(spec: Spec) -> Sequence[tuple[str, str]]:
    if spec.compare is not None:
        return spec.compare
    trust = next((name for name, recipe in spec.recipes.items() if recipe.recipe == "trust"), None)
    others = [name for name, recipe in spec.recipes.items() if recipe.recipe not in ("trust", "supervised", "oracle")]
    return [(name, trust) for name in others] if trust else []
