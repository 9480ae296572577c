"""The files that a benchmark writes: rows, table, figures and an HTML report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lacuner.atomic import atomic_write
from lacuner.bench.plots import bench_figures
from lacuner.bench.rows import read_table, row_line, write_row
from lacuner.bench.runner import Bench
from lacuner.bench.summary import PairedTest, TableLine, paired_tests, summarise
from lacuner.bench.table import format_p_value, format_percent, results_markdown
from lacuner.reporting.html import render_page
from lacuner.reporting.svg import write_figures


def write_results(bench: Bench, out: Path, command: str) -> list[TableLine]:
    """Write `results.jsonl`, `table.md`, `pictures/*.svg` and `report.html` from the results so far."""
    lines = summarise(bench)
    tests = list(paired_tests(lines, bench.spec))
    _keep_other_rows(bench, out)
    _write(out / "results.jsonl", results_jsonl(bench))
    _write(out / "table.md", results_markdown(bench, lines, tests, command))
    write_figures(bench_figures(lines, bench.spec), out / "pictures")
    _write(out / "report.html", render_report(bench, lines, tests, command))
    return lines


def results_jsonl(bench: Bench) -> str:
    """Return the rows in the order of the spec, one per line, each with the conditions that it is shown as."""
    shown: dict[str, list[list[str]]] = {}
    for (condition, _), cell in bench.grid.items():
        shown.setdefault(cell.key, []).append([str(condition.noise), condition.encoder, condition.recipe])
    return "".join(row_line({**bench.rows[key], "shown_as": shown[key]}) for key in shown if key in bench.rows)


def _keep_other_rows(bench: Bench, out: Path) -> None:
    """Move rows of `results.jsonl` that are not part of this spec to `cells/`, where another spec will find them."""
    for row in read_table(out / "results.jsonl"):
        file = out / "cells" / f"{row['key']}.json"
        if row["key"] not in bench.cells and not file.exists():
            write_row(file, row)


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as stream:
        stream.write(text.encode())


def render_report(bench: Bench, lines: Sequence[TableLine], tests: Sequence[PairedTest], command: str) -> str:
    """Render the results as one HTML page; names of recipes and data are escaped."""
    with_rows = [line for line in lines if line.rows]
    return render_page(
        Path(__file__).parent / "report.html.jinja",
        bench_figures(lines, bench.spec),
        {"percent": format_percent, "p_value": format_p_value},
        command=command,
        seeds=bench.spec.seeds,
        several=len(bench.spec.encoders) > 1,
        finished=len(bench.finished),
        cells=len(bench.cells),
        failures=[(line.condition, seed, error) for line in lines for seed, error in sorted(line.errors.items())],
        tables=[
            (data, _table_rows([line for line in with_rows if line.condition.data == data]))
            for data in dict.fromkeys(line.condition.data for line in with_rows)
        ],
        tests=tests,
    )


def _table_rows(lines: Sequence[TableLine]) -> list[dict[str, Any]]:
    """Return the rows of one data set; the first of each noise level starts a group."""
    rows: list[dict[str, Any]] = []
    for line in lines:
        scores = {name: line.metric("test", name) for name in ("precision", "recall", "f1")}
        cost = {name: line.metric("cost", name).mean for name in ("train_cpu_seconds", "peak_mb")}
        starts_group = not rows or rows[-1]["line"].condition.noise != line.condition.noise
        rows.append({"line": line, "starts_group": starts_group, **scores, **cost})
    return rows
