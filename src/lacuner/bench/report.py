"""The results as one HTML page: no script, nothing from elsewhere, names of recipes and data never more than text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lacuner.bench.plots import pictures
from lacuner.bench.runner import Bench
from lacuner.bench.summary import Line, Tested
from lacuner.bench.table import chance, percent
from lacuner.reporting.html import render_page


def report(bench: Bench, lines: Sequence[Line], tested: Sequence[Tested], command: str) -> str:
    """The page."""
    known = [line for line in lines if line.rows]
    return render_page(
        Path(__file__).parent / "report.html.jinja",
        pictures(lines, bench.spec),
        {"percent": percent, "chance": chance},
        command=command,
        seeds=bench.spec.seeds,
        several=len(bench.spec.encoders) > 1,
        finished=len(bench.finished),
        cells=len(bench.cells),
        failed=[(line.place, seed, error) for line in lines for seed, error in sorted(line.errors.items())],
        tables=[(data, _rows(known, data)) for data in dict.fromkeys(line.place.data for line in known)],
        tested=tested,
    )


def _rows(lines: Sequence[Line], data: str) -> list[dict[str, Any]]:
    """The lines of one data set; the first of each noise begins a group."""
    found: list[dict[str, Any]] = []
    for line in (line for line in lines if line.place.data == data):
        scores = {name: line.values("test", name) for name in ("precision", "recall", "f1")}
        cost = {name: line.values("cost", name).mean for name in ("train_cpu_seconds", "peak_mb")}
        group = not found or found[-1]["line"].place.gaps != line.place.gaps
        found.append({"line": line, "group": group, **scores, **cost})
    return found
