"""What a bench leaves behind: rows, table, pictures, report."""

from __future__ import annotations

from pathlib import Path

from lacuner.atomic import atomic_write
from lacuner.bench.plots import whole_pictures
from lacuner.bench.report import report
from lacuner.bench.rows import parse_row, row_line, write_row
from lacuner.bench.runner import Bench
from lacuner.bench.summary import Line, comparisons, summarise
from lacuner.bench.table import table


def write_results(bench: Bench, out: Path, command: str) -> list[Line]:
    """Write `results.jsonl`, `table.md`, `report.html` and `pictures/*.svg`, from what is there so far."""
    lines = summarise(bench)
    tested = list(comparisons(lines, bench.spec))
    _keep_other_rows(bench, out)
    _write(out / "results.jsonl", results(bench))
    _write(out / "table.md", table(bench, lines, tested, command))
    for name, picture in whole_pictures(lines, bench.spec).items():
        _write(out / "pictures" / f"{name}.svg", picture)
    _write(out / "report.html", report(bench, lines, tested, command))
    return lines


def results(bench: Bench) -> str:
    """The rows in the order of the spec, one per line, each with the places where the table shows it."""
    shown: dict[str, list[list[str]]] = {}
    for (place, _), cell in bench.laid.items():
        shown.setdefault(cell.key, []).append([str(place.gaps), place.encoder, place.recipe])
    return "".join(row_line({**bench.rows[key], "shown_as": shown[key]}) for key in shown if key in bench.rows)


def _keep_other_rows(bench: Bench, out: Path) -> None:
    """Move rows of `results.jsonl` that are not part of this spec to `cells/`, where another spec will find them."""
    table = out / "results.jsonl"
    for line in table.read_text(encoding="utf-8").splitlines() if table.exists() else ():
        row = parse_row(line, table)
        file = out / "cells" / f"{row['key']}.json"
        if row["key"] not in bench.cells and not file.exists():
            write_row(file, row)


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as stream:
        stream.write(text.encode())
