"""Run the cells of a benchmark that have no result yet, some at a time, each in a process of its own."""

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from lacuner.bench.datasets import data_hashes
from lacuner.bench.grid import Cell, Condition, make_grid, unique_cells
from lacuner.bench.rows import Row, read_row, read_rows, write_row
from lacuner.bench.spec import Spec
from lacuner.bench.worker import code_hash
from lacuner.errors import LacunerError
from lacuner.models.encoders import encoder_fingerprint
from lacuner.processes import Request, RunRequests, lock_folder, run_requests
from lacuner.training.plan import format_time
from lacuner.training.run_folder import quiet

Log = Callable[[str], None]


@dataclass
class Bench:
    """A benchmark and its results so far."""

    spec: Spec
    grid: Mapping[tuple[Condition, int], Cell]
    rows: dict[str, Row] = field(default_factory=dict)
    """Results by key; a row with `error` is a failed cell."""
    ran: int = 0
    """Number of cells that were run by this process."""
    outdated: int = 0
    """Number of rows that are not used because the encoder of that name has changed."""

    @property
    def cells(self) -> dict[str, Cell]:
        """The distinct cells of the grid, by key."""
        return unique_cells(self.grid)

    @property
    def failed(self) -> dict[str, Row]:
        """The rows with an error, by key."""
        return {key: row for key, row in self.rows.items() if "error" in row}

    @property
    def finished(self) -> dict[str, Row]:
        """The rows with results, by key."""
        return {key: row for key, row in self.rows.items() if "error" not in row}


def open_bench(spec: Spec, data_folder: Path, out: Path) -> Bench:
    """Make the grid of a spec and read the results that exist in the folder `out`."""
    bench = Bench(
        spec, make_grid(spec, {name: data_hashes(name, data, data_folder) for name, data in spec.data.items()})
    )
    rows = read_rows(out)
    matching = {key: rows[key] for key, cell in bench.cells.items() if key in rows and _same_config(rows[key], cell)}
    bench.rows = {key: row for key, row in matching.items() if _same_encoder(row)}
    bench.outdated = len(matching) - len(bench.rows)
    return bench


def _same_config(row: Row, cell: Cell) -> bool:
    """Whether the defaults are those of the row. Settings that did not exist then are assumed to change nothing."""

    def same(old: Any, new: Any) -> bool:
        if isinstance(old, dict) and isinstance(new, dict):
            return all(same(old[name], new[name]) for name in old if name in new)
        return bool(old == new)

    return same(row["config"], cell.config)


def _same_encoder(row: Row) -> bool:
    """Whether the encoder has the fingerprint of the row's; True if the encoder is not available here."""
    fingerprint = row.get("contents", {}).get("encoder.name")
    current = fingerprint and _fingerprint(row["config"]["encoder"]["name"])
    return not current or current == fingerprint


@cache
def _fingerprint(encoder: str) -> str | None:
    try:
        return encoder_fingerprint(encoder)
    except LacunerError:
        return None


def run_bench(
    bench: Bench, data_folder: Path, out: Path, workers: int = 2, log: Log = quiet, start: RunRequests | None = None
) -> None:
    """Run the cells that have no result yet, `workers` at a time; failed cells are tried again.

    `start` starts their processes, by default `run_requests`. Each result is written to `out/cells` as soon as it is
    there, so that an interrupted bench can be continued.
    """
    with lock_folder(out):
        shutil.rmtree(out / "running", ignore_errors=True)
        (out / "cells").mkdir(exist_ok=True)
        missing = {key: cell for key, cell in bench.cells.items() if key not in bench.finished}
        _log_start(bench, log)
        progress = _Progress(bench, missing, log)

        def on_exit(request: Request, failure: str | None) -> None:
            cell, file = missing[request["key"]], Path(request["out"])
            if failure is not None:  # the process wrote no row
                description = {"key": cell.key, "cell": cell.as_json(), "config": cell.config, "code": code_hash()}
                write_row(file, {**description, "error": failure})
            row = bench.rows[cell.key] = read_row(file)
            bench.ran += 1
            progress.log_cell(cell, row)

        requests = [_request(bench.spec, cell, data_folder.resolve(), out.resolve()) for cell in missing.values()]
        (start or run_requests)("lacuner.bench.worker", requests, workers, on_exit, log, 1)
        shutil.rmtree(out / "running", ignore_errors=True)


def _log_start(bench: Bench, log: Log) -> None:
    log(f"{len(bench.cells):,} cells, {len(bench.finished):,} of them finished")
    if bench.outdated:
        log(f"{bench.outdated:,} results are from another encoder of the same name: these cells run again")
    code = code_hash()
    if other := sum(row["code"] != code for row in bench.finished.values()):
        log(f"{other:,} results are from another version of the code; to run them again, choose another --out folder")


def _request(spec: Spec, cell: Cell, data_folder: Path, out: Path) -> Request:
    """What `bench.worker` needs to run a cell."""
    return {
        "key": cell.key,
        "cell": cell.as_json(),
        "files": spec.data[cell.data].model_dump(mode="json", exclude_none=True),
        "data_folder": str(data_folder),
        "run": str(out / "running" / cell.key),
        "out": str(out / "cells" / f"{cell.key}.json"),
    }


class _Progress:
    """Log one line per finished cell, with an estimate of the time left."""

    def __init__(self, bench: Bench, missing: Mapping[str, Cell], log: Log) -> None:
        self.total, self.done, self.log, self.start = len(missing), 0, log, time.monotonic()
        # a cell may have several conditions: the last one, which is used, names the recipe that really runs
        recipes = bench.spec.recipes
        grid = sorted(bench.grid.items(), key=lambda item: recipes[item[0][0].recipe].recipe == item[1].recipe)
        self.conditions = {cell.key: condition for (condition, _), cell in grid}

    def log_cell(self, cell: Cell, row: Row) -> None:
        self.done += 1
        left = (self.total - self.done) * (time.monotonic() - self.start) / self.done
        condition = self.conditions[cell.key]
        noise = condition.noise if cell.noise is not None else "no noise"
        name = f"{condition.data}, {noise}, {condition.encoder}, {condition.recipe}, seed {cell.seed}"
        if "error" in row:
            result = f"failed: {row['error']}"
        else:
            result = "P {precision:.3f} R {recall:.3f} F1 {f1:.3f}".format(**row["test"])
            result += f"; {row['cost']['seconds']:.0f} s"
        self.log(f"[{self.done:>{len(str(self.total))}}/{self.total}] {name}: {result}, {format_time(left)} left")
