"""`python scripts/demo_report.py FOLDER`: how the demo ended, as a small table and as a page, `FOLDER/results.html`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from lacuner.atomic import atomic_write
from lacuner.reporting.html import render_page
from lacuner.reporting.svg import Axes, Figure, LineStyle, Panel, line_style

RECOGNISERS = {
    "dictionary": "the names of the dictionary, found again",
    "trust": "ordinary training: every gap is believed",
    "lacuner": "what `lacuner train` advises",
    "supervised": "the same texts with complete labels, which nobody has",
}
MEASURES = {"precision": "P", "recall": "R", "f1": "F1"}
LISTED = 25
"""Found names that the page shows."""


def bars(values: Sequence[float], looks: Sequence[LineStyle], names: Sequence[str]) -> Any:
    """Draws a bar each, with its figure above it."""

    def draw(axes: Axes) -> None:
        drawn = axes.bar(range(len(values)), values, color=[look.colour for look in looks], width=0.65)
        axes.bar_label(drawn, fmt="%.0f")
        axes.set_xticks(range(len(values)), names)
        axes.set_ylim(0, 100)
        axes.grid(visible=False, axis="x")

    return draw


def page(folder: Path, scores: dict[str, dict[str, Any]]) -> str:
    """All of it for a browser."""
    looks = {name: line_style(number) for number, name in enumerate(RECOGNISERS)}
    panels = [
        Panel(title, bars([100 * scores[name][key] for name in scores], list(looks.values()), list(scores)))
        for key, title in (("recall", "names that are found (recall, %)"), ("f1", "F1 (%)"))
    ]
    caption = "On the test part, most of whose names are in no dictionary. One seed."
    why = json.loads((folder / "lacuner" / "run.json").read_text(encoding="utf-8"))["identity"]["why"]
    with (folder / "lacuner" / "suspects.jsonl").open(encoding="utf-8") as lines:
        found = list(islice((row for row in map(json.loads, lines) if row["kind"] == "missing"), LISTED))
    return render_page(
        Path(__file__).with_name("demo_report.html.jinja"),
        [Figure("scores", "What gaps cost, and what lacuner keeps", caption, panels, looks)],
        {"percent": lambda share: f"{100 * share:.1f}"},
        recognisers=RECOGNISERS,
        measures=MEASURES,
        scores=scores,
        why=why,
        found=found,
    )


def main() -> None:
    folder = Path(sys.argv[1])
    scores = {name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in RECOGNISERS}
    with atomic_write(folder / "results.html") as stream:
        stream.write(page(folder, scores).encode())
    lines = [f"{'':<12}" + "".join(f"{shown:>7}" for shown in MEASURES.values())]
    lines += [f"{name:<12}" + "".join(f"{100 * its[key]:>7.1f}" for key in MEASURES) for name, its in scores.items()]
    trust, ours = (f"{100 * scores[name]['recall']:.0f} %" for name in ("trust", "lacuner"))
    lines.append(
        f"trust learns the gaps of the dictionary as well, and finds {trust} of the names; lacuner {ours}. (500 dev "
        "sentences chose the epoch of all that learn, and how sure a span of lacuner's must be.)"
    )
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
