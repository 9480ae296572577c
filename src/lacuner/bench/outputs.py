"""The files that a benchmark writes: rows, table, figures and an HTML report."""

from collections.abc import Sequence
from pathlib import Path

from lacuner.atomic import atomic_write
from lacuner.bench.plots import bench_figures
from lacuner.bench.rows import read_table, row_line, write_row
from lacuner.bench.runner import Bench
from lacuner.bench.summary import TableLine, paired_tests, summarise
from lacuner.bench.table import TEXT_COLUMNS, Table, result_tables, results_markdown
from lacuner.reporting.html import render_page
from lacuner.reporting.svg import Figure, write_figures


def write_results(bench: Bench, out: Path, command: str) -> list[TableLine]:
    """Write `results.jsonl`, `table.md`, `pictures/*.svg` and `report.html` from the results so far."""
    lines = summarise(bench)
    tables = list(result_tables(bench, lines, list(paired_tests(lines, bench.spec))))
    figures = bench_figures(lines, bench.spec)
    _keep_other_rows(bench, out)
    _write(out / "results.jsonl", results_jsonl(bench))
    _write(out / "table.md", results_markdown(bench, tables, command))
    write_figures(figures, out / "pictures")
    _write(out / "report.html", render_report(bench, tables, figures, command))
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


def render_report(bench: Bench, tables: Sequence[Table], figures: Sequence[Figure], command: str) -> str:
    """Render tables and figures as one HTML page; names of recipes and data are escaped."""
    return render_page(
        Path(__file__).parent / "report.html.jinja",
        figures,
        {},
        command=command,
        seeds=bench.spec.seeds,
        finished=len(bench.finished),
        cells=len(bench.cells),
        failed=len(bench.failed),
        tables=tables,
        text_columns=TEXT_COLUMNS,
    )
