"""The files that a benchmark writes: rows, tables in Markdown and in an HTML report, figures."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from pathlib import Path
from typing import NamedTuple

from lacuner.atomic import atomic_write
from lacuner.bench.plots import bench_figures
from lacuner.bench.rows import read_table, row_line, write_row
from lacuner.bench.runner import Bench
from lacuner.bench.spec import GOLD_SUBSET, NoiseLevel
from lacuner.bench.summary import (
    GoldEquivalent,
    MeanStd,
    PairedTest,
    TableLine,
    gold_equivalents,
    paired_tests,
    summarise,
)
from lacuner.reporting.html import render_page
from lacuner.reporting.svg import Figure, write_figures

COST = "Cost"
"""The last table: the only one that differs when the same cells are run again."""
CONDITION = ("data", "noise", "encoder", "recipe")
SCORES = ("P", "R", "F1", "n", "of supervised", "of oracle")
TEXT_COLUMNS = {*CONDITION, "against", "why"}
"""Headings of columns with text; the others have numbers."""


class Table(NamedTuple):
    """A table with a title and a note that explains it."""

    title: str
    note: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def write_results(bench: Bench, out: Path, command: str) -> list[TableLine]:
    """Write `results.jsonl`, `table.md`, `pictures/*.svg` and `report.html` from the results so far."""
    lines = summarise(bench)
    tables = list(result_tables(bench, lines, list(paired_tests(lines, bench.spec))))
    figures = bench_figures(lines, bench.spec)
    _keep_other_rows(bench, out)
    write_figures(figures, out / "pictures")
    pages = {
        "results.jsonl": _results_jsonl(bench),
        "table.md": results_markdown(bench, tables, command),
        "report.html": render_report(bench, tables, figures, command),
    }
    for name, text in pages.items():
        with atomic_write(out / name) as stream:
            stream.write(text.encode())
    return lines


def _results_jsonl(bench: Bench) -> str:
    """The rows in the order of the spec, one per line, each with the conditions that it is shown as."""
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


def result_tables(bench: Bench, lines: Sequence[TableLine], tests: Sequence[PairedTest]) -> Iterator[Table]:
    """Yield all tables of a benchmark; the note of each names the versions of the code that its rows come from."""
    for table in _tables(bench, lines, tests):
        own = [line for line in lines if table.title == line.condition.data] or lines
        yield table._replace(note=f"{table.note} {_code_versions(own)}".strip())


def _code_versions(lines: Iterable[TableLine]) -> str:
    """One sentence about the versions of the code that rows come from, with the number of rows of each."""
    codes = Counter({row["key"]: row["code"][:8] for line in lines for row in line.rows.values()}.values())
    if len(codes) < 2:
        return "".join(f"All rows come from version {code} of the code." for code in codes)
    names = ", ".join(f"{code} ({count})" for code, count in codes.most_common())
    return f"The rows come from {len(codes)} versions of the code (number of rows): {names}."


def _tables(bench: Bench, lines: Sequence[TableLine], tests: Sequence[PairedTest]) -> Iterator[Table]:
    with_rows = [line for line in lines if line.rows]
    yield _overview(with_rows)
    for data in dict.fromkeys(line.condition.data for line in with_rows):
        yield _scores(data, [line for line in with_rows if line.condition.data == data])
    if with_rows and all("accuracy" in row for row in bench.finished.values()):  # rows of earlier versions have none
        yield _accuracy(with_rows)
    if equivalents := list(gold_equivalents(lines, bench.spec)):
        yield _gold_equivalents(equivalents)
    if tests:
        yield _significance(tests)
    if bench.failed:
        rows = [
            [*map(str, line.condition), str(seed), error]
            for line in lines
            for seed, error in sorted(line.errors.items())
        ]
        yield Table("Failed", "", (*CONDITION, "seed", "why"), rows)
    yield _cost(with_rows)


def _overview(lines: Sequence[TableLine]) -> Table:
    """F1 of each recipe, one column per kind of noise."""
    by_condition = {line.condition: line for line in lines}
    levels = list(dict.fromkeys(condition.noise for condition in by_condition))
    rows = []
    for condition in dict.fromkeys(condition._replace(noise=levels[0]) for condition in by_condition):
        by_level = [by_condition.get(condition._replace(noise=noise)) for noise in levels]
        f1 = ["" if line is None else format_percent(line.f1) for line in by_level]
        counts = [len(line.rows) for line in by_level if line]
        n = " to ".join(map(str, sorted({min(counts), max(counts)})))
        rows.append([condition.data, condition.encoder, condition.recipe, *f1, n])
    note = "Test F1 in per cent: mean ± sample standard deviation over n seeds."
    return Table("F1 at a glance", note, ("data", "encoder", "recipe", *map(str, levels), "n"), rows)


def format_scores(line: TableLine) -> list[str]:
    """Format the columns `SCORES` of a line."""
    scores = [format_percent(line.metric("test", name)) for name in ("precision", "recall", "f1")]
    return [*scores, str(len(line.rows)), format_percent(line.of_supervised), format_percent(line.of_oracle)]


def _scores(data: str, lines: Sequence[TableLine]) -> Table:
    note = (
        "Exact span and type, micro-averaged over the test sentences, in per cent: mean ± sample standard deviation "
        "over n seeds. Of supervised, of oracle: the share of their F1 that a recipe reaches (with the same head where "
        "available, otherwise of the first)."
    )
    rows = []
    for line in lines:
        dev = [row["dev"]["f1"] for row in line.rows.values() if row["dev"]]
        others = line.metric("boundary", "f1"), sum(dev) / len(dev) if dev else None
        rows.append([*map(str, line.condition[1:]), *format_scores(line), *map(format_percent, others)])
    return Table(data, note, (*CONDITION[1:], *SCORES, "boundary F1", "dev F1"), rows)


def _accuracy(lines: Sequence[TableLine]) -> Table:
    kinds = ("words", "spans", "sentences")
    rows = [
        [*map(str, line.condition), *[format_percent(line.metric("accuracy", kind)) for kind in kinds]]
        for line in lines
    ]
    note = "Share of words, gold spans and whole sentences that are correct, in per cent."
    return Table("Accuracy", note, (*CONDITION, *kinds), rows)


def _gold_equivalents(equivalents: Sequence[GoldEquivalent]) -> Table:
    note = (
        "The amount of gold that supervised needs for the same mean F1, interpolated over the logarithm of the amount; "
        "more than its largest amount, less than its smallest. Recipes with weak labels alone have no gold to compare."
    )
    rows = []
    for condition, f1, needed in equivalents:
        has_gold = condition.noise.kind == GOLD_SUBSET
        factor = "more" if needed == inf else "less" if needed == 0 else ""
        if has_gold and not factor:
            factor = f"{needed / condition.noise.rate:.1f}"
        noise = NoiseLevel(GOLD_SUBSET, float(f"{needed:.3g}"))
        amount = "" if needed in (0, inf) else str(noise)
        rows.append([*map(str, condition), format_percent(f1), amount, factor])
    return Table("Gold saved", note, (*CONDITION, "F1", "supervised needs", "times as much"), rows)


def _significance(tests: Iterable[PairedTest]) -> Table:
    note = (
        "Difference in mean F1 (points) between two recipes; its 95 % interval and p-value from a hierarchical "
        "bootstrap over n seeds and test sentences, widened because seeds are few (n = 1: test sentences only); and "
        "the p-value of approximate randomisation over test sentences only (2,000 samples each, two-sided)."
    )
    rows = []
    for condition, second, seeds, result in tests:
        interval = f"{100 * result.low:+.1f} to {100 * result.high:+.1f}"
        p_values = ["under 0.001" if p < 0.001 else f"{p:.3f}" for p in (result.bootstrap, result.randomisation)]
        rows.append([*map(str, condition), second, f"{100 * result.difference:+.1f}", interval, *p_values, str(seeds)])
    header = (*CONDITION, "against", "difference", "95 %", "bootstrap", "randomisation", "n")
    return Table("Significance", note, header, rows)


def _cost(lines: Sequence[TableLine]) -> Table:
    note = "CPU seconds of training and of testing (one thread), and peak memory of the process, means over the seeds."
    digits = {"train_cpu_seconds": 1, "test_cpu_seconds": 1, "peak_mb": 0}
    rows = [
        [*map(str, line.condition), *[f"{line.metric('cost', name).mean:.{n}f}" for name, n in digits.items()]]
        for line in lines
    ]
    return Table(COST, note, (*CONDITION, "training (s)", "test (s)", "peak (MB)"), rows)


def format_percent(value: MeanStd | float | None) -> str:
    """Format a share in per cent, with its standard deviation if there is one.

    >>> format_percent(MeanStd(0.813, 0.0042)), format_percent(0.5)
    ('81.3 ± 0.4', '50.0')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{100 * value:.1f}"
    return f"{100 * value.mean:.1f}" + ("" if value.std is None else f" ± {100 * value.std:.1f}")


def results_markdown(bench: Bench, tables: Iterable[Table], command: str) -> str:
    """Return all tables as one Markdown page."""
    seeds = ", ".join(map(str, bench.spec.seeds))
    counts = f"{len(bench.finished):,} of {len(bench.cells):,} cells are finished, {len(bench.failed):,} failed."
    parts = ["# Results", f"Written by `{command.replace('`', '')}`, seeds {seeds}; {counts}"]
    for title, note, header, rows in tables:
        parts += [f"## {_escape_markdown(title)}", *([note] if note else []), markdown_table(header, rows)]
    return "\n\n".join(parts) + "\n"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; text in its rows is escaped.

    >>> print(markdown_table(("recipe", "F1"), [("a|b", "50.0")]))
    | recipe | F1 |
    | --- | --- |
    | a\\|b | 50.0 |
    """
    lines = [header, ["---"] * len(header), *([_escape_markdown(text) for text in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _escape_markdown(text: str) -> str:
    """Escape text so that it neither breaks a Markdown table nor becomes a tag or a link."""
    for sign in "\\`*[]<>|":
        text = text.replace(sign, "&lt;" if sign == "<" else f"\\{sign}")
    return " ".join(text.split())
