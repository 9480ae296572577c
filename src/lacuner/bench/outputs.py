"""What a bench leaves behind: rows, table, pictures, report."""

from __future__ import annotations

import json
from pathlib import Path

from lacuner.atomic import atomic_write
from lacuner.bench.plots import whole_pictures
from lacuner.bench.report import report
from lacuner.bench.runner import Bench
from lacuner.bench.summary import Line, comparisons, summarise
from lacuner.bench.table import table


def write_results(bench: Bench, out: Path, command: str) -> list[Line]:
    """Write `results.jsonl`, `table.md`, `report.html` and `pictures/*.svg`, from what is there so far."""
    lines = summarise(bench)
    tested = list(comparisons(lines, bench.spec))
    _set_aside(bench, out)
    _write(out / "results.jsonl", results(bench))
    _write(out / "table.md", table(bench, lines, tested, command))
    for name, picture in whole_pictures(lines, bench.spec).items():
        _write(out / "pictures" / f"{name}.svg", picture)
    _write(out / "report.html", report(bench, lines, tested, command))
    return lines


def results(bench: Bench) -> str:
    """One row a line, in the order of the spec; each says where it stands in the table."""
    shown: dict[str, list[list[str]]] = {}
    for (place, _), cell in bench.laid.items():
        shown.setdefault(cell.key, []).append([str(place.gaps), place.encoder, place.recipe])
    rows = [{**bench.rows[key], "shown_as": shown[key]} for key in shown if key in bench.rows]
    return "".join(json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n" for row in rows)


def _set_aside(bench: Bench, out: Path) -> None:
    """Rows of the table that this spec does not ask for become single files, so that another one finds them again."""
    table = out / "results.jsonl"
    for row in map(json.loads, table.read_text(encoding="utf-8").splitlines() if table.exists() else ()):
        file = out / "cells" / f"{row['key']}.json"
        if row["key"] not in bench.cells and not file.exists():
            _write(file, json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n")


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as stream:
        stream.write(text.encode())
