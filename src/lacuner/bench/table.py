"""The results as tables, which `table.md` and the HTML report share."""

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import NamedTuple

from lacuner.bench.runner import Bench
from lacuner.bench.summary import GoldEquivalent, MeanStd, PairedTest, TableLine, gold_equivalents

COST = "Cost"
"""The last table: the only one that differs when the same cells are run again."""
_CONDITION = ("data", "noise", "encoder", "recipe")
TEXT_COLUMNS = {*_CONDITION, "against", "why"}
"""Headings of columns with text; the others have numbers."""


class Table(NamedTuple):
    """A table with a title and a note that explains it."""

    title: str
    note: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def format_percent(value: MeanStd | float | None) -> str:
    """Format a share in per cent, with its standard deviation if there is one.

    >>> format_percent(MeanStd(0.813, 0.0042, 3)), format_percent(0.5)
    ('81.3 ± 0.4', '50.0')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{100 * value:.1f}"
    return f"{100 * value.mean:.1f}" + ("" if value.std is None else f" ± {100 * value.std:.1f}")


def format_p_value(p: float) -> str:
    """Format a p-value that was estimated from a limited number of samples.

    >>> format_p_value(0.0), format_p_value(0.25)
    ('under 0.001', '0.250')
    """
    return "under 0.001" if p < 0.001 else f"{p:.3f}"


def result_tables(bench: Bench, lines: Sequence[TableLine], tests: Sequence[PairedTest]) -> Iterator[Table]:
    """Yield all tables of a benchmark."""
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
        yield Table("Failed", "", (*_CONDITION, "seed", "why"), rows)
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


def _scores(data: str, lines: Sequence[TableLine]) -> Table:
    header = ("noise", "encoder", "recipe", "P", "R", "F1", "n", "of supervised", "of oracle", "boundary F1", "dev F1")
    note = (
        "Exact span and type, micro-averaged over the test sentences, in per cent: mean ± sample standard deviation "
        "over n seeds. Of supervised, of oracle: the share of their F1 that a recipe reaches (with the same head where "
        "available, otherwise of the first)."
    )
    rows = []
    for line in lines:
        scores = [format_percent(line.metric("test", name)) for name in ("precision", "recall", "f1")]
        shares = [
            format_percent(value) for value in (line.of_supervised, line.of_oracle, line.metric("boundary", "f1"))
        ]
        dev = [row["dev"]["f1"] for row in line.rows.values() if row["dev"]]
        dev_f1 = format_percent(sum(dev) / len(dev)) if dev else ""
        rows.append([*map(str, line.condition[1:]), *scores, str(len(line.rows)), *shares, dev_f1])
    return Table(data, note, header, rows)


def _accuracy(lines: Sequence[TableLine]) -> Table:
    kinds = ("words", "spans", "sentences")
    rows = [
        [*map(str, line.condition), *[format_percent(line.metric("accuracy", kind)) for kind in kinds]]
        for line in lines
    ]
    note = "Share of words, gold spans and whole sentences that are correct, in per cent."
    return Table("Accuracy", note, (*_CONDITION, *kinds), rows)


def _gold_equivalents(equivalents: Sequence[GoldEquivalent]) -> Table:
    note = (
        "The amount of gold that supervised needs for the same mean F1, interpolated over the logarithm of the amount; "
        "more than its largest amount, less than its smallest."
    )
    rows = []
    for condition, f1, needed in equivalents:
        factor = "more" if needed == inf else "less" if needed == 0 else f"{needed / condition.noise.rate:.1f}"
        noise = condition.noise._replace(rate=float(f"{needed:.3g}"), weak=None)
        amount = "" if needed in (0, inf) else str(noise)
        rows.append([*map(str, condition), format_percent(f1), amount, factor])
    return Table("Gold saved", note, (*_CONDITION, "F1", "supervised needs", "times as much"), rows)


def _significance(tests: Iterable[PairedTest]) -> Table:
    note = (
        "Difference in F1 (points) between two recipes, its 95 % interval, and p-values of the paired bootstrap and of "
        "approximate randomisation over the test sentences (2,000 samples each, two-sided, counts summed over seeds)."
    )
    rows = []
    for condition, second, seeds, result in tests:
        interval = f"{100 * result.low:+.1f} to {100 * result.high:+.1f}"
        p_values = [format_p_value(p) for p in (result.bootstrap, result.randomisation)]
        rows.append([*map(str, condition), second, f"{100 * result.difference:+.1f}", interval, *p_values, str(seeds)])
    header = (*_CONDITION, "against", "difference", "95 %", "bootstrap", "randomisation", "n")
    return Table("Significance", note, header, rows)


def _cost(lines: Sequence[TableLine]) -> Table:
    note = "CPU seconds of training and of testing (one thread), and peak memory of the process, means over the seeds."
    rows = []
    for line in lines:
        names = ("train_cpu_seconds", "test_cpu_seconds", "peak_mb")
        train, test, peak = (line.metric("cost", name).mean for name in names)
        rows.append([*map(str, line.condition), f"{train:.1f}", f"{test:.1f}", f"{peak:.0f}"])
    return Table(COST, note, (*_CONDITION, "training (s)", "test (s)", "peak (MB)"), rows)


def results_markdown(bench: Bench, tables: Iterable[Table], command: str) -> str:
    """Return all tables as one Markdown page."""
    seeds = ", ".join(map(str, bench.spec.seeds))
    counts = f"{len(bench.finished):,} of {len(bench.cells):,} cells are finished, {len(bench.failed):,} failed."
    parts = ["# Results", f"Written by `{command.replace('`', '')}`, seeds {seeds}; {counts}"]
    versions = len({row["code"] for row in bench.finished.values()})
    if versions > 1:
        parts.append(f"The rows come from {versions} versions of the code.")
    for title, note, header, rows in tables:
        parts += [f"## {escape_markdown(title)}", *([note] if note else []), markdown_table(header, rows)]
    return "\n\n".join(parts) + "\n"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; text in its rows is escaped.

    >>> print(markdown_table(("recipe", "F1"), [("a|b", "50.0")]))
    | recipe | F1 |
    | --- | --- |
    | a\\|b | 50.0 |
    """
    lines = [header, ["---"] * len(header), *([escape_markdown(text) for text in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def escape_markdown(text: str) -> str:
    """Escape text so that it neither breaks a Markdown table nor becomes a tag or a link."""
    for sign in "\\`*[]<>|":
        text = text.replace(sign, "&lt;" if sign == "<" else f"\\{sign}")
    return " ".join(text.split())
