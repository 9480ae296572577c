"""`python -m benchmarks.advice RESULTS... --data DIR`: is the advice good? Asked of benches that have been run.

For each data set, noise and seed of a bench's finished rows, the advice is given the very documents that the recipes
had, and what it names is compared with the best of the recipes that were measured there. The best of many is a little
lucky: nobody can be level with it everywhere. `oracle` and, unless gold is at hand, `supervised` have what nobody has,
and do not take part.
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
from lacuner.bench.spec import SIMULATED, DataSpec, NoiseLevel
from lacuner.bench.table import markdown_table
from lacuner.config import load_config
from lacuner.errors import ConfigError, LacunerError
from lacuner.recipes import RECIPES

Row = dict[str, Any]
POINT = 0.01


class Place(NamedTuple):
    """Where recipes compete."""

    bench: Path
    data: str
    noise: NoiseLevel
    encoder: str
    seed: int


@dataclass
class Contest:
    """The rows of a place, each with the recipe that it stands for."""

    rows: list[tuple[str, Row]] = field(default_factory=list)

    def best(self) -> tuple[str, Row]:
        return max(self.rows, key=lambda entry: f1(entry[1]))

    def advised(self, advice: Advice) -> Row | None:
        """The row of the advised recipe and settings; of several the one with the fewest settings of its own."""
        wanted = load_config(RECIPES[advice.recipe].Config, settings=advice.settings).model_dump(mode="json")
        named = [each.partition("=")[0] for each in advice.settings]
        rows = [row for recipe, row in self.rows if recipe == advice.recipe]
        own = [(dict(_leaves(row["config"])), row) for row in rows]
        leaves = dict(_leaves(wanted))
        fits = [(mine, row) for mine, row in own if all(mine.get(name) == leaves[name] for name in named)]
        return min(fits, key=lambda entry: _differences(entry[0], leaves))[1] if fits else None


@dataclass(frozen=True)
class Verdict:
    """What the advice was worth in a place."""

    place: Place
    seen: DataProfile
    advice: Advice
    found: Row | None
    best: tuple[str, Row]
    others: Mapping[str, Row]
    """The row of each recipe, to hold against who always gives the same advice."""

    @property
    def below(self) -> float | None:
        """How far the advised recipe is below the best one; None if nobody measured it."""
        return None if self.found is None else f1(self.best[1]) - f1(self.found)


def f1(row: Row) -> float:
    return float(row["test"]["f1"])


def _leaves(settings: Mapping[str, Any], where: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{where}{name}.")
        else:
            yield where + name, value


def _differences(mine: Mapping[str, Any], wanted: Mapping[str, Any]) -> int:
    """How many settings differ, but for those that a bench gives to all."""
    return sum(mine.get(name) != value for name, value in wanted.items() if not name.startswith(("train.", "encoder.")))


def rows_of(folder: Path) -> list[Row]:
    """The finished rows of a bench."""
    table = folder / "results.jsonl"
    texts = table.read_text(encoding="utf-8").splitlines() if table.exists() else []
    texts += [path.read_text(encoding="utf-8") for path in sorted((folder / "cells").glob("*.json"))]
    try:
        rows = {row["key"]: row for row in map(json.loads, texts)}
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError("a row of this bench cannot be read", file=folder) from error
    if not rows:
        raise ConfigError("there are no rows of a bench here", file=folder)
    return [row for row in rows.values() if "error" not in row]


def contests(bench: Path, rows: Iterable[Row]) -> dict[Place, Contest]:
    """The places of a bench with the recipes that compete there."""
    rows = list(rows)
    cells = [(cell_from_json(row["cell"]), row) for row in rows]
    encoders = {name for row in rows if (name := _encoder(row))}
    found: dict[Place, Contest] = {}
    for cell, row in cells:
        if cell.noise is None or cell.recipe == "oracle":
            continue
        for encoder in [_encoder(row)] if _encoder(row) else sorted(encoders):
            place = Place(bench, cell.data, cell.noise, encoder, cell.seed)
            found.setdefault(place, Contest()).rows.append((cell.recipe, row))
    for cell, row in cells:
        for place in [place for place in found if _joins(cell, row, place)]:
            found[place].rows.append(("trust" if cell.noise is None else cell.recipe, row))
    return {
        place: contest for place, contest in found.items() if any("weak" in _needs(name) for name, _ in contest.rows)
    }


def _needs(recipe: str) -> Sequence[str]:
    needs: Sequence[str] = RECIPES[recipe].NEEDS
    return needs


def _encoder(row: Row) -> str:
    return str(row["config"].get("encoder", {}).get("name", ""))


def _joins(cell: Cell, row: Row, place: Place) -> bool:
    """Whether a row belongs to a place besides its own.

    Where nothing is masked a bench runs `supervised` in place of `trust`, which would learn the same; and who learns
    from a little gold alone has the same result however many weak sentences there are.
    """
    if (cell.data, _encoder(row), cell.seed) != (place.data, place.encoder, place.seed):
        return False
    if cell.noise is None:
        return cell.recipe == "supervised" and place.noise.kind in SIMULATED and place.noise.rate == 0
    alone = "weak" not in _needs(cell.recipe) and cell.noise != place.noise
    return alone and cell.noise[:2] == place.noise[:2]


def judge(contest: Contest, place: Place, data_folder: Path) -> Verdict:
    """Give advice on the documents of a place, and look what became of it."""
    _, row = contest.rows[0]
    spec = DataSpec.model_validate_json(json.dumps(row["files"]))
    cell = cell_from_json(row["cell"])
    if data_hashes(place.data, spec, data_folder) != dict(cell.hashes):
        raise ConfigError(f"the files of {place.data} are not those that this bench was run on", file=data_folder)
    roles = [role for role in ("weak", "gold") if any(role in _needs(recipe) for recipe, _ in contest.rows)]
    splits = DataSet(place.data, spec, data_folder).splits(roles, place.noise, place.seed)
    seen = profile(splits.weak, splits.gold, splits.dev)
    advice = advise(seen, place.encoder)
    recipes = dict.fromkeys(recipe for recipe, _ in contest.rows)
    always = {name: contest.advised(Advice(recipe=name, reasons=())) for name in recipes}
    others = {name: row for name, row in always.items() if row is not None}
    return Verdict(place, seen, advice, contest.advised(advice), contest.best(), others)


def report(verdicts: Sequence[Verdict]) -> str:
    """A table, and what it says in a sentence."""
    header = ("data", "noise", "encoder", "seed", "missing", "right", "advised", "F1", "best", "its F1", "below")
    rows = [_cells(verdict) for verdict in verdicts]
    below = [verdict.below for verdict in verdicts if verdict.below is not None]
    if not below:
        return markdown_table(header, rows) + "\n\nThe advised recipes were measured nowhere here."
    near, places, average, worst = _summary(below)
    text = f"Within one point of the best in {near} of {places} places; "
    text += f"on average {average} points below it, at worst {worst}."
    missing = len(verdicts) - len(below)
    text += f" In {missing} the advised recipe was not run." if missing else ""
    same = [
        ("the advice", *_summary(below)),
        *((f"always {name}", *_summary(each)) for name, each in _always(verdicts)),
    ]
    constants = markdown_table(("who", "within one point", "of places", "below on average", "at worst"), same)
    return f"{markdown_table(header, rows)}\n\n{constants}\n\n{text}"


def _summary(below: Sequence[float]) -> tuple[str, str, str, str]:
    near = sum(each <= POINT for each in below)
    return str(near), str(len(below)), f"{100 * fmean(below):.1f}", f"{100 * max(below):.1f}"


def _always(verdicts: Sequence[Verdict]) -> Iterator[tuple[str, list[float]]]:
    """How far each recipe is below the best wherever it was run: what one loses who asks for no advice."""
    for name in dict.fromkeys(name for verdict in verdicts for name in verdict.others):
        yield name, [f1(each.best[1]) - f1(each.others[name]) for each in verdicts if name in each.others]


def _cells(verdict: Verdict) -> list[str]:
    place, seen, (best, row) = verdict.place, verdict.seen, verdict.best
    named = "; ".join((verdict.advice.recipe, *verdict.advice.settings))
    mine = ("", "") if verdict.found is None else (_percent(f1(verdict.found)), _percent(verdict.below))
    where = [place.data, str(place.noise), place.encoder, str(place.seed)]
    estimates = [_percent(seen.missing_rate), _percent(seen.precision)]
    return [*where, *estimates, named, mine[0], best, _percent(f1(row)), mine[1]]


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.advice", description=__doc__)
    parser.add_argument("results", type=Path, nargs="+", help="folders of benches: results.jsonl, or cells/*.json")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="where the data sets' folders are")
    given = parser.parse_args(arguments)
    try:
        places = {place: each for bench in given.results for place, each in contests(bench, rows_of(bench)).items()}
        verdicts = [judge(contest, place, given.data) for place, contest in places.items()]
    except (LacunerError, OSError) as error:
        sys.stderr.write(f"benchmarks.advice: {error}\n")
        return 2
    sys.stdout.write(report(verdicts) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
