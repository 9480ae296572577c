"""Run the cells that nobody has run yet, some at a time, and keep each result in a file of its own."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from lacuner.atomic import atomic_write
from lacuner.bench.datasets import data_hashes
from lacuner.bench.grid import Cell, Place, lay_out, to_run
from lacuner.bench.spec import Spec
from lacuner.bench.worker import code_hash
from lacuner.errors import ConfigError, LacunerError
from lacuner.models.open import encoder_fingerprint
from lacuner.training.run_folder import quiet

Row = dict[str, Any]
Say = Callable[[str], None]


@dataclass
class Bench:
    """What is to be measured, and what has been."""

    spec: Spec
    laid: Mapping[tuple[Place, int], Cell]
    rows: dict[str, Row] = field(default_factory=dict)
    """By key; a row with `error` is a cell that failed."""
    ran: int = 0
    outdated: int = 0
    """Rows that are not taken because an encoder of the same name is another one now."""

    @property
    def cells(self) -> dict[str, Cell]:
        return to_run(self.laid)

    @property
    def failed(self) -> dict[str, Row]:
        return {key: row for key, row in self.rows.items() if "error" in row}

    @property
    def finished(self) -> dict[str, Row]:
        return {key: row for key, row in self.rows.items() if "error" not in row}


def open_bench(spec: Spec, data_folder: Path, out: Path) -> Bench:
    """Lay out a spec's cells, with the results that are there already."""
    hashes = {name: data_hashes(name, data, data_folder) for name, data in spec.data.items()}
    bench = Bench(spec, lay_out(spec, hashes))
    known = _known_rows(out)
    found = {key: known[key] for key, cell in bench.cells.items() if key in known and _fits(known[key], cell)}
    bench.rows = {key: row for key, row in found.items() if _has_its_encoder(row)}
    bench.outdated = len(found) - len(bench.rows)
    return bench


def _known_rows(out: Path) -> dict[str, Row]:
    """Rows from the table of results, which may have come without the single files, and then from those."""
    rows: dict[str, Row] = {}
    table = out / "results.jsonl"
    lines = table.read_text(encoding="utf-8").splitlines() if table.exists() else []
    texts = [*lines, *(path.read_text(encoding="utf-8") for path in sorted((out / "cells").glob("*.json")))]
    for text in texts:
        try:
            row = json.loads(text)
            rows[row["key"]] = row
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError("a row of this bench cannot be read: remove it", file=out) from error
    return rows


def _fits(row: Row, cell: Cell) -> bool:
    """Whether a default has changed since. A setting that did not exist then is taken to change nothing."""

    def same(old: Any, new: Any) -> bool:
        if isinstance(old, dict) and isinstance(new, dict):
            return all(same(old[name], new[name]) for name in old if name in new)
        return bool(old == new)

    return same(row["config"], cell.config)


def _has_its_encoder(row: Row) -> bool:
    """Whether the encoder of that name is the one that the row was made with; who does not have it believes the row."""
    made = row.get("contents", {}).get("encoder.name")
    here = made and _fingerprint(row["config"]["encoder"]["name"])
    return not here or here == made


@cache
def _fingerprint(encoder: str) -> str | None:
    try:
        return encoder_fingerprint(encoder)
    except LacunerError:
        return None


def run_bench(bench: Bench, data_folder: Path, out: Path, workers: int = 2, say: Say = quiet) -> None:
    """Run what is missing; failed cells are tried again. Each result is kept the moment it is there."""
    with _locked(out):
        shutil.rmtree(out / "running", ignore_errors=True)
        missing = {key: cell for key, cell in bench.cells.items() if key not in bench.finished}
        say(f"{len(bench.cells):,} cells, {len(bench.finished):,} of them finished")
        code = code_hash()
        other = sum(row["code"] != code for row in bench.finished.values())
        if bench.outdated:
            say(f"{bench.outdated:,} more were made with another encoder of the same name, and are made again")
        if other:
            say(f"{other:,} of them were made by another version of the code; to redo them, choose another folder")
        progress = _Progress(bench, missing, workers, say)
        children = _Children()

        def work(key: str, cell: Cell) -> tuple[str, Row, float]:
            start = time.monotonic()
            return key, _run_cell(bench, key, cell, data_folder.resolve(), out, children), time.monotonic() - start

        with ThreadPoolExecutor(max_workers=max(workers, 1)) as pool:
            waiting = [pool.submit(work, key, cell) for key, cell in missing.items()]
            try:
                for future in as_completed(waiting):
                    key, row, seconds = future.result()
                    bench.rows[key] = row
                    bench.ran += 1
                    progress.cell(missing[key], row, seconds)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                children.stop()
                raise
        shutil.rmtree(out / "running", ignore_errors=True)


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    """Nobody else may work in this folder meanwhile."""
    try:
        (out / "cells").mkdir(parents=True, exist_ok=True)
        handle = (out / ".lock").open("w")
    except OSError as error:
        raise ConfigError(f"cannot write here: {error.strerror}", file=out) from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ConfigError("another bench is working in this folder", file=out) from error
        yield


class _Children:
    """Processes at work, and whether somebody has stopped them: what dies then has not failed."""

    def __init__(self) -> None:
        self.running: set[subprocess.Popen[bytes]] = set()
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True
        for child in list(self.running):
            child.kill()


def _run_cell(bench: Bench, key: str, cell: Cell, data_folder: Path, out: Path, children: _Children) -> Row:
    """One cell in a process of its own."""
    path = out / "cells" / f"{key}.json"
    request = {
        "cell": cell.as_json(),
        "files": bench.spec.data[cell.data].model_dump(mode="json", exclude_none=True),
        "data_folder": str(data_folder),
        "run": str((out / "running" / key).resolve()),
        "out": str(path.resolve()),
    }
    path.unlink(missing_ok=True)
    # a waiting thread that spins would steal time from the other cells
    env = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    command = [sys.executable, "-P", "-m", "lacuner.bench.worker"]  # nothing from the folder we are in
    # in a session of its own, so that Ctrl-C is for the bench alone
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    child = subprocess.Popen(command, env=env, start_new_session=True, **pipes)
    children.running.add(child)
    errors: list[bytes] = []
    assert child.stdin is not None and child.stderr is not None
    reader = threading.Thread(target=errors.extend, args=(child.stderr,))
    reader.start()
    try:
        child.stdin.write(json.dumps(request).encode() + b"\n")
        child.stdin.flush()
        status = child.wait()
        child.stdin.close()
    except BrokenPipeError:
        status = child.wait()  # it died at once; what it said is in `errors`
    reader.join()
    child.stderr.close()
    children.running.discard(child)
    if status == 0 and path.exists():
        return dict(json.loads(path.read_text(encoding="utf-8")))
    row = _died(cell, status, errors)
    if not children.stopped:
        with atomic_write(path) as stream:
            stream.write((json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n").encode())
    return row


def _died(cell: Cell, status: int, errors: list[bytes]) -> Row:
    """A row for a process that left none."""
    last = errors[-1].decode(errors="replace").strip() if errors else ""
    how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    error = f"the cell's process {how}{': ' + last if last else ''}"
    return {"key": cell.key, "cell": cell.as_json(), "config": cell.config, "code": code_hash(), "error": error}


class _Progress:
    """One line a cell."""

    def __init__(self, bench: Bench, missing: Mapping[str, Cell], workers: int, say: Say) -> None:
        self.bench, self.total, self.workers, self.say = bench, len(missing), max(workers, 1), say
        self.seconds: list[float] = []
        # the place of its own name comes last and stays, where others stand for the same cell
        laid = sorted(bench.laid.items(), key=lambda at: bench.spec.recipes[at[0][0].recipe].recipe == at[1].recipe)
        self.names = {cell.key: place for (place, _), cell in laid}

    def cell(self, cell: Cell, row: Row, seconds: float) -> None:
        self.seconds.append(seconds)
        done = len(self.seconds)
        left = (self.total - done) * sum(self.seconds) / done / self.workers
        place = self.names[cell.key]
        gaps = place.gaps if cell.gaps is not None else "no noise"
        what = f"{place.data}, {gaps}, {place.encoder}, {place.recipe}, seed {cell.seed}"
        found = f"failed: {row['error']}" if "error" in row else _found(row)
        width = len(str(self.total))
        self.say(f"[{done:>{width}}/{self.total}] {what}: {found}; {seconds:.0f} s, {_clock(left)} left")


def _found(row: Row) -> str:
    return "P {precision:.3f} R {recall:.3f} F1 {f1:.3f}".format(**row["test"])


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds + 0.5), 60)
    return f"{minutes}:{rest:02d}"
