"""Pictures of a bench. A panel is a small SVG that stands in the report; a whole picture has all panels, for a paper.

Ink is drawn in two colours that stand for others, so that the report can let them follow light and dark.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from lacuner.bench.cells import Place
from lacuner.bench.spec import Spec
from lacuner.bench.summary import Line, figure

INK, SOFT = "#010203", "#040506"
_PAPER = {INK: "#222222", SOFT: "#d4d4d4"}
_SCREEN = {INK: "currentColor", SOFT: "var(--soft)"}
# Okabe and Ito's colours, which people with any kind of colour vision can tell apart; the yellow is too light for lines
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C8C8C")
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (5, 1.5, 1.5, 1.5)))

Axes = Any  # matplotlib is loaded when something is drawn, not before


class Look(NamedTuple):
    """How a recipe is drawn: colour and marker tell the recipe, the dashes its variants."""

    colour: str
    marker: str
    dash: Any


def looks(spec: Spec) -> dict[str, Look]:
    """The same look for a recipe in all pictures."""
    recipes = list(dict.fromkeys(recipe.recipe for recipe in spec.recipes.values()))
    found: dict[str, Look] = {}
    for recipe in recipes:
        number = recipes.index(recipe)
        names = [name for name, each in spec.recipes.items() if each.recipe == recipe]
        for variant, name in enumerate(names):
            dash = DASHES[(variant + number // len(COLOURS)) % len(DASHES)]
            found[name] = Look(COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)], dash)
    return {name: found[name] for name in spec.recipes}


@dataclass(frozen=True)
class Panel:
    """One pair of axes: how it is drawn, and what stands above it."""

    title: str
    draw: Callable[[Axes], None]


@dataclass(frozen=True)
class Picture:
    """Panels that belong together."""

    name: str
    title: str
    caption: str
    panels: list[Panel]


def pictures(lines: Sequence[Line], spec: Spec) -> list[Picture]:
    """All pictures that these lines allow."""
    drawn = [line for line in lines if line.rows]
    look = looks(spec)
    made = [
        Picture(
            "f1-against-masking",
            "F1 against masking",
            "Test F1 when a growing share of the training entities has lost its label. Lines are means over seeds, "
            "bands one standard deviation.",
            list(_masking(drawn, spec, look)),
        ),
        Picture(
            "precision-against-recall",
            "Precision against recall",
            "Grey lines join points of equal F1. The larger the mark, the more labels were missing; hollow marks: "
            "labels as given.",
            [Panel(title, _Trade(group, look)) for title, group in _groups(drawn, spec)],
        ),
        Picture(
            "training-curves",
            "Training curves",
            "Dev F1 after each epoch, mean over seeds, as far as all seeds went.",
            list(_curves(drawn, spec, look)),
        ),
        Picture(
            "cost-against-quality",
            "Cost against quality",
            "CPU seconds of training on one thread, and test F1. A column joins the results of one recipe; the larger "
            "the mark, the more labels were missing; hollow marks: labels as given.",
            [Panel(title, _Cost(group, look)) for title, group in _groups(drawn, spec)],
        ),
    ]
    return [picture for picture in made if picture.panels]


def _title(place: Place, spec: Spec) -> str:
    return place.data if len(spec.encoders) == 1 else f"{place.data}, {place.encoder}"


def _groups(lines: Sequence[Line], spec: Spec) -> Iterator[tuple[str, list[Line]]]:
    """Lines by data set and encoder."""
    for key in dict.fromkeys((line.place.data, line.place.encoder) for line in lines):
        group = [line for line in lines if (line.place.data, line.place.encoder) == key]
        yield _title(group[0].place, spec), group


def _by_recipe(lines: Sequence[Line]) -> Iterator[tuple[str, list[Line]]]:
    for name in dict.fromkeys(line.place.recipe for line in lines):
        yield name, [line for line in lines if line.place.recipe == name]


def _masking(lines: Sequence[Line], spec: Spec, look: Mapping[str, Look]) -> Iterator[Panel]:
    for title, group in _groups(lines, spec):
        for kind, note in (("masked", ""), ("surface", " (whole names)")):
            mine = [line for line in group if line.place.gaps.kind == kind]
            if len({line.place.gaps.rate for line in mine}) > 1:
                yield Panel(title + note, _Masking(mine, look))


@dataclass(frozen=True)
class _Masking:
    lines: Sequence[Line]
    look: Mapping[str, Look]

    def __call__(self, axes: Axes) -> None:
        for name, mine in _by_recipe(self.lines):
            mine = sorted(mine, key=lambda line: line.place.gaps.rate)
            rates, means = [line.place.gaps.rate for line in mine], [100 * line.f1.mean for line in mine]
            spreads = [100 * (line.f1.spread or 0.0) for line in mine]
            look = self.look[name]
            low, high = ([m + sign * s for m, s in zip(means, spreads, strict=True)] for sign in (-1, 1))
            axes.fill_between(rates, low, high, color=look.colour, alpha=0.15, linewidth=0)
            axes.plot(rates, means, color=look.colour, marker=look.marker, linestyle=look.dash, markersize=4.5)
        axes.set_xlabel("share of entities without label")
        axes.set_ylabel("test F1")
        axes.set_xticks(sorted({line.place.gaps.rate for line in self.lines}))
        axes.set_ylim(0, 100)


def _sizes(lines: Sequence[Line]) -> dict[Any, float]:
    """A mark's size for each kind of noise, growing with the rate."""
    rates = sorted({line.place.gaps.rate for line in lines})
    return {gaps: 3.5 + 2.5 * rates.index(gaps.rate) for gaps in {line.place.gaps for line in lines}}


def _marks(axes: Axes, points: Sequence[tuple[float, float]], lines: Sequence[Line], look: Look, size: Any) -> None:
    """One mark a line of the table; those of masked labels are joined."""
    masked = [point for point, line in zip(points, lines, strict=True) if line.place.gaps.kind == "masked"]
    if masked:
        axes.plot(*zip(*masked, strict=True), color=look.colour, linestyle=look.dash, linewidth=1.1, alpha=0.7)
    seen: set[str] = set()
    for (x, y), line in zip(points, lines, strict=True):
        keys = {row["key"] for row in line.rows.values()}
        if keys <= seen:  # what does not see the noise has one result
            continue
        seen |= keys
        face = "none" if line.place.gaps.kind == "given" else look.colour
        axes.plot(
            [x], [y], marker=look.marker, markersize=size[line.place.gaps], color=look.colour, markerfacecolor=face
        )


@dataclass(frozen=True)
class _Trade:
    """Precision against recall."""

    lines: Sequence[Line]
    look: Mapping[str, Look]

    def __call__(self, axes: Axes) -> None:
        for f1 in (20, 40, 60, 80):
            recalls = [f1 / 2 + 0.5 + step * (100 - f1 / 2 - 0.5) / 60 for step in range(61)]
            curve = [(r, f1 * r / (2 * r - f1)) for r in recalls if f1 * r / (2 * r - f1) <= 101]
            axes.plot(*zip(*curve, strict=True), color=SOFT, linewidth=0.8, zorder=0)
            axes.text(100, f1 * 100 / (200 - f1), f"{f1}", color=INK, alpha=0.6, fontsize=7, ha="right", va="bottom")
        size = _sizes(self.lines)
        for name, mine in _by_recipe(self.lines):
            points = [tuple(100 * line.values("test", part).mean for part in ("recall", "precision")) for line in mine]
            _marks(axes, points, mine, self.look[name], size)  # type: ignore[arg-type]
        axes.set_xlabel("recall")
        axes.set_ylabel("precision")
        axes.set_xlim(0, 101)
        axes.set_ylim(0, 101)


@dataclass(frozen=True)
class _Cost:
    lines: Sequence[Line]
    look: Mapping[str, Look]

    def __call__(self, axes: Axes) -> None:
        from matplotlib.ticker import LogLocator, NullLocator

        size = _sizes(self.lines)
        for name, mine in _by_recipe(self.lines):
            points = [(max(line.values("cost", "train_cpu_seconds").mean, 0.01), 100 * line.f1.mean) for line in mine]
            _marks(axes, points, mine, self.look[name], size)
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("CPU seconds of training")
        axes.set_ylabel("test F1")
        axes.set_ylim(0, 100)


def _curves(lines: Sequence[Line], spec: Spec, look: Mapping[str, Look]) -> Iterator[Panel]:
    for title, group in _groups(lines, spec):
        for gaps in dict.fromkeys(line.place.gaps for line in group):
            mine = [line for line in group if line.place.gaps == gaps and _dev(line)]
            if mine:
                yield Panel(f"{title}, {gaps}", _Curves(mine, look))


def _dev(line: Line) -> list[float]:
    """Mean dev F1 after each epoch of all stages, as far as all seeds went."""
    seeds = [[row["dev"]["f1"] for row in found["epochs"] if "dev" in row] for found in line.rows.values()]
    return [100 * figure(values).mean for values in zip(*seeds, strict=False)]


@dataclass(frozen=True)
class _Curves:
    lines: Sequence[Line]
    look: Mapping[str, Look]

    def __call__(self, axes: Axes) -> None:
        from matplotlib.ticker import MaxNLocator

        for line in self.lines:
            look, values = self.look[line.place.recipe], _dev(line)
            axes.plot(
                range(1, len(values) + 1), values, color=look.colour, linestyle=look.dash, marker=look.marker,
                markersize=3, markevery=[len(values) - 1],
            )  # fmt: skip
        axes.set_xlabel("epoch")
        axes.set_ylabel("dev F1")
        axes.set_ylim(0, 100)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


@contextmanager
def _drawing(salt: str) -> Iterator[None]:
    """The same style everywhere; text stays text; the same picture gives the same bytes."""
    import matplotlib

    style: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": salt,
        "font.family": "sans-serif",
        "font.size": 9,
        "axes.titlesize": 10,
        "axes.titleweight": "bold",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": SOFT,
        "grid.linewidth": 0.6,
        "lines.linewidth": 1.6,
        **dict.fromkeys(
            ("text.color", "axes.labelcolor", "axes.edgecolor", "axes.titlecolor", "xtick.color", "ytick.color"), INK
        ),
        "text.parse_math": False,  # a name is a name, whatever dollars it has
    }
    with warnings.catch_warnings(), matplotlib.rc_context(style):
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # the browser will have it
        yield


def _svg(figure_: Any, prefix: str, paper: bool) -> str:
    """The figure as an SVG element whose ids no other picture has: black on white, or in the colours of its page."""
    stream = io.StringIO()
    ground = {"facecolor": "white"} if paper else {"transparent": True}
    figure_.savefig(stream, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")), **ground)
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', text)
    text = re.sub(r'(href="#|url\(#)', rf"\g<1>{prefix}-", text)
    for sign, colour in (_PAPER if paper else _SCREEN).items():
        text = text.replace(sign, colour)
    return text


def panel_svg(panel: Panel, prefix: str) -> str:
    """A panel for the report, whose page says the title; as wide as its place."""
    from matplotlib.figure import Figure

    with _drawing(prefix):
        figure_ = Figure(figsize=(4.3, 3.1), layout="constrained")
        panel.draw(figure_.add_subplot())
        text = _svg(figure_, prefix, paper=False)
    return re.sub(
        r'(<svg[^>]*?) width="[^"]*"', r"\1", re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1), count=1
    )


def swatch(look: Look) -> str:
    """A bit of line with its mark, for a legend: drawn by hand, in the shapes that matplotlib has too."""
    shapes = {
        "o": "a4 4 0 1 0 8 0a4 4 0 1 0-8 0",
        "s": "v-3.6h8v7.2h-8z",
        "D": "l4-4.6l4 4.6l-4 4.6z",
        "^": "v3.8h8l-4-8z",
        "v": "v-3.8h8l-4 8z",
        "P": "v-1.4h2.6v-2.6h2.8v2.6h2.6v2.8h-2.6v2.6h-2.8v-2.6h-2.6z",
        "X": "l-1 2.6l2 1.6l3-2.6l3 2.6l2-1.6l-2.8-2.6l2.8-2.6l-2-1.6l-3 2.6l-3-2.6l-2 1.6z",
    }
    dashes = "none" if look.dash == "-" else " ".join(f"{1.4 * length:g}" for length in look.dash[1])
    return (
        f'<svg viewBox="0 0 40 12" aria-hidden="true"><path d="M0 6h40" stroke="{look.colour}" stroke-width="2" '
        f'stroke-dasharray="{dashes}"/><path d="M16 6{shapes[look.marker]}" fill="{look.colour}"/></svg>'
    )


def whole_pictures(lines: Sequence[Line], spec: Spec) -> dict[str, str]:
    """Each picture with all its panels and a legend, as an SVG file of its own."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    shown = looks(spec)
    found = {}
    for picture in pictures(lines, spec):
        with _drawing(picture.name):
            columns = min(len(picture.panels), 3)
            rows = -(-len(picture.panels) // columns)
            figure_ = Figure(figsize=(3.6 * columns + 0.2, 2.8 * rows + 0.7), layout="constrained")
            for number, panel in enumerate(picture.panels, 1):
                axes = figure_.add_subplot(rows, columns, number)
                panel.draw(axes)
                axes.set_title(panel.title)
            marks = [Line2D([], [], color=c, marker=m, linestyle=d, markersize=4.5) for c, m, d in shown.values()]
            wide = min(len(marks), 2 if columns == 1 else 3 * columns)
            figure_.legend(marks, list(shown), loc="outside lower center", ncols=wide, frameon=False, handlelength=3.2)
            found[picture.name] = _svg(figure_, picture.name, paper=True)
    return found
