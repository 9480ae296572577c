"""`python -m benchmarks.advice RESULTS... --data DIR`: is the advice good? Answered from finished benches.

For each data set, noise and seed of a bench, the advice sees the documents that the recipes were trained on. Its choice
is compared with the best recipe that was measured under the same condition. The best of many is slightly inflated by
chance, so no choice can match it everywhere. `oracle` is excluded, and so is `supervised` unless gold is available,
because they use labels that users do not have.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from lacuner.advice import Advice, DataProfile, advise, profile
from lacuner.bench.datasets import DataSet, data_hashes
from lacuner.bench.grid import Cell, cell_from_json
from lacuner.bench.report import markdown_table
from lacuner.bench.rows import Row, read_rows
from lacuner.bench.spec import SIMULATED, DataSpec, NoiseLevel
from lacuner.config import load_config
from lacuner.errors import ConfigError, LacunerError
from lacuner.recipes import RECIPES

POINT = 0.01


class Condition(NamedTuple):
    """What the recipes of a comparison have in common."""

    bench: Path
    data: str
    noise: NoiseLevel
    encoder: str
    seed: int


@dataclass
class Candidates:
    """The rows of a condition, each with the recipe that it stands for."""

    rows: list[tuple[str, Row]] = field(default_factory=list)

    def best(self) -> tuple[str, Row]:
        return max(self.rows, key=lambda item: f1(item[1]))

    def find(self, advice: Advice) -> Row | None:
        """Return the row with the advised recipe and settings; of several, the one closest to the defaults."""
        config = load_config(RECIPES[advice.recipe].Config, settings=advice.settings).model_dump(mode="json")
        advised = dict(_flatten(config))
        names = [setting.partition("=")[0] for setting in advice.settings]
        rows = [(dict(_flatten(row["config"])), row) for recipe, row in self.rows if recipe == advice.recipe]
        matching = [item for item in rows if all(item[0].get(name) == advised[name] for name in names)]
        return min(matching, key=lambda item: _count_differences(item[0], advised))[1] if matching else None


@dataclass(frozen=True)
class Verdict:
    """The advice under a condition, and the results it is compared with."""

    condition: Condition
    data_profile: DataProfile
    advice: Advice
    advised_row: Row | None
    best: tuple[str, Row]
    by_recipe: Mapping[str, Row]
    """The row of each recipe, for the comparison with always choosing the same one."""

    @property
    def loss(self) -> float | None:
        """F1 of the best recipe minus F1 of the advised one; None if the advised one was not run."""
        return None if self.advised_row is None else f1(self.best[1]) - f1(self.advised_row)


def f1(row: Row) -> float:
    return float(row["test"]["f1"])


def _flatten(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _count_differences(config: Mapping[str, Any], other: Mapping[str, Any]) -> int:
    """Count the settings that differ, except for those that a bench sets for all recipes."""
    common = ("train.", "encoder.")
    return sum(config.get(name) != value for name, value in other.items() if not name.startswith(common))


def finished_rows(folder: Path) -> list[Row]:
    """Read the finished rows of a bench."""
    rows = read_rows(folder)
    if not rows:
        raise ConfigError("this folder has no rows of a bench", file=folder)
    return [row for row in rows.values() if "error" not in row]


def group_rows(bench: Path, rows: Iterable[Row]) -> dict[Condition, Candidates]:
    """Group the rows of a bench by condition."""
    cells = [(cell_from_json(row["cell"]), row) for row in rows]
    encoders = {name for _, row in cells if (name := _encoder(row))}
    groups: dict[Condition, Candidates] = {}
    for cell, row in cells:
        if cell.noise is None or cell.recipe == "oracle":
            continue
        for encoder in [_encoder(row)] if _encoder(row) else sorted(encoders):
            condition = Condition(bench, cell.data, cell.noise, encoder, cell.seed)
            groups.setdefault(condition, Candidates()).rows.append((cell.recipe, row))
    for cell, row in cells:
        for condition in [condition for condition in groups if _also_belongs_to(cell, row, condition)]:
            groups[condition].rows.append(("trust" if cell.noise is None else cell.recipe, row))
    return {
        condition: candidates
        for condition, candidates in groups.items()
        if any("weak" in _needs(recipe) for recipe, _ in candidates.rows)
    }


def _needs(recipe: str) -> Sequence[str]:
    needs: Sequence[str] = RECIPES[recipe].NEEDS
    return needs


def _encoder(row: Row) -> str:
    return str(row["config"].get("encoder", {}).get("name", ""))


def _also_belongs_to(cell: Cell, row: Row, condition: Condition) -> bool:
    """Whether a row belongs to a condition besides its own.

    Without noise a bench runs `supervised` instead of `trust`, which would be the same; and a recipe that is trained on
    a gold subset only has the same result for any number of weak sentences.
    """
    if (cell.data, _encoder(row), cell.seed) != (condition.data, condition.encoder, condition.seed):
        return False
    if cell.noise is None:
        return cell.recipe == "supervised" and condition.noise.kind in SIMULATED and condition.noise.rate == 0
    gold_only = "weak" not in _needs(cell.recipe) and cell.noise != condition.noise
    return gold_only and cell.noise[:2] == condition.noise[:2]


def evaluate_advice(candidates: Candidates, condition: Condition, data_folder: Path) -> Verdict:
    """Compute the advice for the documents of a condition, and find the rows to compare it with."""
    _, row = candidates.rows[0]
    spec = DataSpec.model_validate_json(json.dumps(row["files"]))
    if data_hashes(condition.data, spec, data_folder) != dict(cell_from_json(row["cell"]).hashes):
        raise ConfigError(f"the files of {condition.data} are not those that this bench was run on", file=data_folder)
    roles = [role for role in ("weak", "gold") if any(role in _needs(recipe) for recipe, _ in candidates.rows)]
    splits = DataSet(condition.data, spec, data_folder).splits(roles, condition.noise, condition.seed)
    data_profile = profile(splits.weak, splits.gold, splits.dev)
    advice = advise(data_profile, pretrained=condition.encoder.startswith("hf:"))
    recipes = dict.fromkeys(recipe for recipe, _ in candidates.rows)
    constant = {name: candidates.find(Advice(recipe=name, reasons=())) for name in recipes}
    by_recipe = {name: row for name, row in constant.items() if row is not None}
    return Verdict(condition, data_profile, advice, candidates.find(advice), candidates.best(), by_recipe)


def format_report(verdicts: Sequence[Verdict]) -> str:
    """Return a table of all verdicts, a comparison with constant choices, and a summary."""
    header = ("data", "noise", "encoder", "seed", "missing", "right", "advised", "F1", "best", "its F1", "below")
    table = markdown_table(header, [_row(verdict) for verdict in verdicts])
    losses = [verdict.loss for verdict in verdicts if verdict.loss is not None]
    if not losses:
        return table + "\n\nThe advised recipes were not run under any of these conditions."
    near, total, average, worst = _summarise(losses)
    text = f"Within one point of the best under {near} of {total} conditions; "
    text += f"on average {average} points below it, at worst {worst}."
    not_run = len(verdicts) - len(losses)
    text += f" Under {not_run} the advised recipe was not run." if not_run else ""
    rows = [("the advice", *_summarise(losses))]
    rows += [(f"always {name}", *_summarise(constant)) for name, constant in _constant_losses(verdicts)]
    choices = markdown_table(("choice", "within one point", "of conditions", "below on average", "at worst"), rows)
    return f"{table}\n\n{choices}\n\n{text}"


def _summarise(losses: Sequence[float]) -> tuple[str, str, str, str]:
    near = sum(loss <= POINT for loss in losses)
    return str(near), str(len(losses)), f"{100 * fmean(losses):.1f}", f"{100 * max(losses):.1f}"


def _constant_losses(verdicts: Sequence[Verdict]) -> Iterator[tuple[str, list[float]]]:
    """Yield each recipe with its losses, as if it were always chosen."""
    for name in dict.fromkeys(name for verdict in verdicts for name in verdict.by_recipe):
        shared = [verdict for verdict in verdicts if name in verdict.by_recipe]
        yield name, [f1(verdict.best[1]) - f1(verdict.by_recipe[name]) for verdict in shared]


def _row(verdict: Verdict) -> list[str]:
    estimates, (best, best_row) = verdict.data_profile, verdict.best
    named = "; ".join((verdict.advice.recipe, *verdict.advice.settings))
    advised_f1 = "" if verdict.advised_row is None else _percent(f1(verdict.advised_row))
    first = [*map(str, verdict.condition[1:]), _percent(estimates.missing_rate), _percent(estimates.precision)]
    return [*first, named, advised_f1, best, _percent(f1(best_row)), _percent(verdict.loss)]


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.advice", description=__doc__)
    parser.add_argument("results", type=Path, nargs="+", help="bench folders with results.jsonl or cells/*.json")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the data sets")
    args = parser.parse_args(arguments)
    try:
        groups = {key: rows for bench in args.results for key, rows in group_rows(bench, finished_rows(bench)).items()}
        verdicts = [evaluate_advice(candidates, condition, args.data) for condition, candidates in groups.items()]
    except (LacunerError, OSError) as error:
        sys.stderr.write(f"benchmarks.advice: {error}\n")
        return 2
    sys.stdout.write(format_report(verdicts) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
