"""Pictures. A panel is a small SVG that stands in a report; a whole picture has all panels, for a paper.

Ink is drawn in two colours that stand for others, so that a report can let them follow light and dark.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

INK, SOFT = "#010203", "#040506"
_PAPER = {INK: "#222222", SOFT: "#d4d4d4"}
_SCREEN = {INK: "currentColor", SOFT: "var(--soft)"}
# Okabe and Ito's colours, which people with any kind of colour vision can tell apart; the yellow is too light for lines
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C8C8C")
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (5, 1.5, 1.5, 1.5)))

Axes = Any  # matplotlib is loaded when something is drawn, not before


class Look(NamedTuple):
    """How the line of something is drawn."""

    colour: str
    marker: str
    dash: Any


def look_of(number: int, variant: int = 0) -> Look:
    """The look of a thing by its number: colour and marker tell the thing, the dashes its variants."""
    dash = DASHES[(variant + number // len(COLOURS)) % len(DASHES)]
    return Look(COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)], dash)


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
    looks: Mapping[str, Look]
    """Its legend."""


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


def _svg(figure: Any, prefix: str, paper: bool) -> str:
    """The figure as an SVG element whose ids no other picture has: black on white, or in the colours of its page."""
    stream = io.StringIO()
    ground = {"facecolor": "white"} if paper else {"transparent": True}
    figure.savefig(stream, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")), **ground)
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
        figure = Figure(figsize=(4.3, 3.1), layout="constrained")
        panel.draw(figure.add_subplot())
        text = _svg(figure, prefix, paper=False)
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


def whole_picture(picture: Picture) -> str:
    """A picture with all its panels and a legend, as an SVG file of its own."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    looks = picture.looks
    with _drawing(picture.name):
        columns = min(len(picture.panels), 3)
        rows = -(-len(picture.panels) // columns)
        figure = Figure(figsize=(3.6 * columns + 0.2, 2.8 * rows + 0.7), layout="constrained")
        for number, panel in enumerate(picture.panels, 1):
            axes = figure.add_subplot(rows, columns, number)
            panel.draw(axes)
            axes.set_title(panel.title)
        marks = [Line2D([], [], color=c, marker=m, linestyle=d, markersize=4.5) for c, m, d in looks.values()]
        wide = min(len(marks), 2 if columns == 1 else 3 * columns)
        figure.legend(marks, list(looks), loc="outside lower center", ncols=wide, frameon=False, handlelength=3.2)
        return _svg(figure, picture.name, paper=True)


def draw_epochs(axes: Axes, series: Sequence[tuple[Look, Sequence[float]]], ylabel: str) -> None:
    """A value after each epoch, a line each, marked at its end."""
    from matplotlib.ticker import MaxNLocator

    for look, values in series:
        axes.plot(
            range(1, len(values) + 1), values, color=look.colour, linestyle=look.dash, marker=look.marker,
            markersize=3, markevery=[len(values) - 1],
        )  # fmt: skip
    axes.set_xlabel("epoch")
    axes.set_ylabel(ylabel)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
