"""The results as Markdown. Everything above the heading `Cost` is the same each time; time and memory are below."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

from lacuner.bench.runner import Bench
from lacuner.bench.summary import Figure, Line, Saved, Tested, gold_saved

COST = "## Cost"


def percent(value: Figure | float | None) -> str:
    """`81.3 ± 0.4`: per cent, with the spread if there is one."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{100 * value:.1f}"
    return f"{100 * value.mean:.1f}" + ("" if value.spread is None else f" ± {100 * value.spread:.1f}")


def chance(p: float) -> str:
    """A probability from a limited number of draws."""
    return "under 0.001" if p < 0.001 else f"{p:.3f}"


def table(bench: Bench, lines: Sequence[Line], tested: Sequence[Tested], command: str) -> str:
    """The whole page."""
    seeds = ", ".join(map(str, bench.spec.seeds))
    parts = [
        "# Results",
        f"Made by `{command.replace('`', '')}`, seeds {seeds}; {len(bench.finished):,} of {len(bench.cells):,} cells "
        f"are finished, {len(bench.failed):,} failed.",
        "Exact span and type, micro-averaged over the test sentences, in per cent: mean ± sample standard deviation "
        "over n seeds. *Of supervised* and *of oracle*: the share of their F1 that a recipe keeps (of those with the "
        "same head where there are any, otherwise of the first).",
    ]
    codes = len({row["code"] for row in bench.finished.values()})
    if codes > 1:
        parts.append(f"The cells were made by {codes} versions of the code.")
    parts += ["## F1 at a glance", glance(lines)]
    for data in dict.fromkeys(line.place.data for line in lines):
        mine = [line for line in lines if line.place.data == data and line.rows]
        header = ("noise", "encoder", "recipe", "P", "R", "F1", "n", "of supervised", "of oracle", "boundary F1")
        parts += [f"## {plain(data)}", markdown((*header, "dev F1"), map(_cells, mine))]
    rows = bench.finished.values()
    if rows and all("accuracy" in row for row in rows):  # those of earlier versions have none
        parts += ["## Accuracy", _ACCURACY, _accuracy([line for line in lines if line.rows])]
    if saved := list(gold_saved(lines, bench.spec)):
        parts += ["## Gold saved", _SAVED, _saved(saved)]
    if tested:
        parts += ["## Significance", _SIGNIFICANCE, _tested(tested)]
    if bench.failed:
        parts += ["## Failed", _failed(lines)]
    return "\n\n".join([*parts, COST, _COST, _cost(lines)]) + "\n"


_SIGNIFICANCE = (
    "Difference in F1 (points) between two recipes, with its 95 % interval, and how likely chance alone would bring "
    "as much: by paired bootstrap and by approximate randomisation over the test sentences (2,000 draws each, "
    "two-sided; the counts of all seeds are added up)."
)
_ACCURACY = "The share of words, of gold's spans and of whole sentences that are right, in per cent."
_SAVED = (
    "How much gold `supervised` would need for the same mean F1, by a straight line between its neighbouring amounts "
    "(as logarithms); *more* than its largest, or *less* than its smallest, says no more than that."
)
_COST = "CPU seconds of training and of testing (one thread), and peak memory of the process, means over the seeds."


def glance(lines: Sequence[Line]) -> str:
    """F1 of each recipe, one column a kind of noise."""
    known = {line.place: line for line in lines if line.rows}
    columns = list(dict.fromkeys(place.gaps for place in known))
    rows = []
    for place in dict.fromkeys(place._replace(gaps=columns[0]) for place in known):
        found = [known.get(place._replace(gaps=gaps)) for gaps in columns]
        counts = sorted({len(line.rows) for line in found if line})
        f1 = ["" if line is None else percent(line.f1) for line in found]
        rows.append(
            [place.data, place.encoder, place.recipe, *f1, " to ".join(map(str, sorted({counts[0], counts[-1]})))]
        )
    return markdown(("data", "encoder", "recipe", *map(str, columns), "n"), rows)


def _cells(line: Line) -> list[str]:
    place = line.place
    scores = [percent(line.values("test", name)) for name in ("precision", "recall", "f1")]
    dev = [row["dev"]["f1"] for row in line.rows.values() if row["dev"]]
    shares = [percent(line.of_supervised), percent(line.of_oracle), percent(line.values("boundary", "f1"))]
    found = "" if not dev else percent(sum(dev) / len(dev))
    return [str(place.gaps), place.encoder, place.recipe, *scores, str(len(line.rows)), *shares, found]


def _tested(tested: Iterable[Tested]) -> str:
    header = ("data", "noise", "encoder", "recipe", "against", "difference", "95 %", "bootstrap", "randomisation", "n")
    return markdown(
        header,
        (
            [
                each.data,
                str(each.gaps),
                each.encoder,
                each.first,
                each.second,
                f"{100 * each.found.difference:+.1f}",
                f"{100 * each.found.low:+.1f} to {100 * each.found.high:+.1f}",
                chance(each.found.bootstrap),
                chance(each.found.randomisation),
                str(each.seeds),
            ]
            for each in tested
        ),
    )


def _accuracy(lines: Sequence[Line]) -> str:
    kinds = ("words", "spans", "sentences")
    rows = [[*map(str, line.place), *[percent(line.values("accuracy", kind)) for kind in kinds]] for line in lines]
    return markdown(("data", "noise", "encoder", "recipe", *kinds), rows)


def _saved(saved: Sequence[Saved]) -> str:
    rows = []
    for place, f1, needed in saved:
        times = "more" if needed == inf else "less" if needed == 0 else f"{needed / place.gaps.rate:.1f}"
        amount = "" if needed in (0, inf) else str(place.gaps._replace(rate=float(f"{needed:.3g}"), weak=None))
        rows.append([*map(str, place), percent(f1), amount, times])
    return markdown(("data", "noise", "encoder", "recipe", "F1", "supervised needs", "times as much"), rows)


def _failed(lines: Sequence[Line]) -> str:
    rows = [[*map(str, line.place), str(seed), error] for line in lines for seed, error in sorted(line.errors.items())]
    return markdown(("data", "noise", "encoder", "recipe", "seed", "why"), rows)


def _cost(lines: Sequence[Line]) -> str:
    rows = []
    for line in lines:
        if line.rows:
            train, test, peak = (
                line.values("cost", name).mean for name in ("train_cpu_seconds", "test_cpu_seconds", "peak_mb")
            )
            rows.append([*map(str, line.place), f"{train:.1f}", f"{test:.1f}", f"{peak:.0f}"])
    return markdown(("data", "noise", "encoder", "recipe", "training (s)", "test (s)", "peak (MB)"), rows)


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; names in it are text, never markup."""
    cells = [[plain(cell) for cell in row] for row in rows]
    lines = [list(header), ["---"] * len(header), *cells]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def plain(text: str) -> str:
    """Text that neither breaks a Markdown table nor becomes a tag or a link."""
    for sign in "\\`*[]<>|":
        text = text.replace(sign, "&lt;" if sign == "<" else f"\\{sign}")
    return " ".join(text.split())
