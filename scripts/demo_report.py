"""`python scripts/demo_report.py FOLDER`: the results of the demo as a small table, and as `FOLDER/results.html`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from lacuner.atomic import atomic_write
from lacuner.reporting.html import render_page
from lacuner.reporting.svg import Axes, Figure, LineStyle, Panel, line_style

RECOGNISERS = {
    "dictionary": "matching of the gazetteer's entries",
    "trust": "ordinary training that treats the weak labels as complete",
    "lacuner": "the recipe that `lacuner train` advises",
    "supervised": "upper bound: the same texts with complete labels",
}
MEASURES = {"precision": "P", "recall": "R", "f1": "F1"}
MAX_LISTED = 25
"""Number of names on the page."""


def plot_bars(values: Sequence[float], styles: Sequence[LineStyle], names: Sequence[str], axes: Axes) -> None:
    """Plot one bar per recogniser, with its value above it."""
    bars = axes.bar(range(len(values)), values, color=[style.colour for style in styles], width=0.65)
    axes.bar_label(bars, fmt="%.0f")
    axes.set_xticks(range(len(values)), names)
    axes.set_ylim(0, 100)
    axes.grid(visible=False, axis="x")


def render(folder: Path, scores: dict[str, dict[str, Any]]) -> str:
    """Render the HTML page."""
    styles = {name: line_style(number) for number, name in enumerate(RECOGNISERS)}
    panels = [
        Panel(
            title, partial(plot_bars, [100 * row[key] for row in scores.values()], list(styles.values()), list(scores))
        )
        for key, title in (("recall", "recall (%)"), ("f1", "F1 (%)"))
    ]
    caption = "On the test part, in which most names are not in the gazetteer. One seed."
    why = json.loads((folder / "lacuner" / "run.json").read_text(encoding="utf-8"))["identity"]["why"]
    with (folder / "lacuner" / "label_issues.jsonl").open(encoding="utf-8") as lines:
        missing = list(islice((row for row in map(json.loads, lines) if row["kind"] == "missing"), MAX_LISTED))
    return render_page(
        Path(__file__).with_name("demo_report.html.jinja"),
        [Figure("scores", "What missing labels cost, and what lacuner recovers", caption, panels, styles)],
        {"percent": lambda share: f"{100 * share:.1f}"},
        recognisers=RECOGNISERS,
        measures=MEASURES,
        scores=scores,
        why=why,
        missing=missing,
    )


def main() -> None:
    folder = Path(sys.argv[1])
    scores = {name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in RECOGNISERS}
    with atomic_write(folder / "results.html") as stream:
        stream.write(render(folder, scores).encode())
    lines = [f"{'':<12}" + "".join(f"{heading:>7}" for heading in MEASURES.values())]
    lines += [f"{name:<12}" + "".join(f"{100 * row[key]:>7.1f}" for key in MEASURES) for name, row in scores.items()]
    trust, ours = (f"{100 * scores[name]['recall']:.0f} %" for name in ("trust", "lacuner"))
    lines.append(
        f"trust treats unlabeled entities as negatives and finds {trust} of the names; lacuner finds {ours}. (Early "
        "stopping of all models, and lacuner's decision threshold, use 500 dev sentences.)"
    )
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
