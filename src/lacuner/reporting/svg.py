"""Figures in SVG, drawn by matplotlib: single panels for an HTML report, or a whole figure as a file for a paper.

Text and grid lines are drawn in two placeholder colours, which are replaced at the end: in a report they follow the
page's light or dark colours.
"""

import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from lacuner.atomic import atomic_write

INK, SOFT = "#010203", "#040506"
_FILE_COLOURS = {INK: "#222222", SOFT: "#d4d4d4"}
_PAGE_COLOURS = {INK: "currentColor", SOFT: "var(--soft)"}
# the colour-blind safe palette of Okabe and Ito, without its yellow, which is too light for lines
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C8C8C")
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (5, 1.5, 1.5, 1.5)))

Axes = Any  # matplotlib is imported only when something is drawn


class LineStyle(NamedTuple):
    """Colour, marker and dash pattern of a series."""

    colour: str
    marker: str
    dash: Any


def line_style(number: int, variant: int = 0) -> LineStyle:
    """Return the style of the n-th series; its variants share colour and marker and differ in their dashes.

    >>> line_style(1)
    LineStyle(colour='#D55E00', marker='s', dash='-')
    """
    dash = DASHES[(variant + number // len(COLOURS)) % len(DASHES)]
    return LineStyle(COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)], dash)


@dataclass(frozen=True)
class Panel:
    """One pair of axes: its title and the function that draws into it."""

    title: str
    draw: Callable[[Axes], None]


@dataclass(frozen=True)
class Figure:
    """Panels with a common title, caption and legend. `name` becomes the name of its file."""

    name: str
    title: str
    caption: str
    panels: list[Panel]
    legend: Mapping[str, LineStyle]


@contextmanager
def _matplotlib_style(salt: str) -> Iterator[None]:
    """One style for all figures. Text stays text, and the same figure gives the same bytes."""
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
        "text.parse_math": False,  # a dollar sign in a name is no formula
    }
    with warnings.catch_warnings(), matplotlib.rc_context(style):
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # the browser has other fonts
        yield


def _to_svg(figure: Any, prefix: str, for_page: bool) -> str:
    """Return a matplotlib figure as an SVG element whose ids start with `prefix`, so that no two figures share one."""
    stream = io.StringIO()
    background = {"transparent": True} if for_page else {"facecolor": "white"}
    figure.savefig(stream, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")), **background)
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', text)
    text = re.sub(r'(href="#|url\(#)', rf"\g<1>{prefix}-", text)
    for placeholder, colour in (_PAGE_COLOURS if for_page else _FILE_COLOURS).items():
        text = text.replace(placeholder, colour)
    return text


def panel_svg(panel: Panel, prefix: str) -> str:
    """Draw a panel for a report: without a title, which the page shows, and as wide as the page allows."""
    from matplotlib.figure import Figure as Canvas

    with _matplotlib_style(prefix):
        canvas = Canvas(figsize=(4.3, 3.1), layout="constrained")
        panel.draw(canvas.add_subplot())
        text = _to_svg(canvas, prefix, for_page=True)
    for attribute in ("width", "height"):
        text = re.sub(rf'(<svg[^>]*?) {attribute}="[^"]*"', r"\1", text, count=1)
    return text


def legend_swatch(style: LineStyle) -> str:
    """Draw a short line with its marker for a legend in HTML, in the shapes of matplotlib."""
    shapes = {
        "o": "a4 4 0 1 0 8 0a4 4 0 1 0-8 0",
        "s": "v-3.6h8v7.2h-8z",
        "D": "l4-4.6l4 4.6l-4 4.6z",
        "^": "v3.8h8l-4-8z",
        "v": "v-3.8h8l-4 8z",
        "P": "v-1.4h2.6v-2.6h2.8v2.6h2.6v2.8h-2.6v2.6h-2.8v-2.6h-2.6z",
        "X": "l-1 2.6l2 1.6l3-2.6l3 2.6l2-1.6l-2.8-2.6l2.8-2.6l-2-1.6l-3 2.6l-3-2.6l-2 1.6z",
    }
    dashes = "none" if style.dash == "-" else " ".join(f"{1.4 * length:g}" for length in style.dash[1])
    return (
        f'<svg viewBox="0 0 40 12" aria-hidden="true"><path d="M0 6h40" stroke="{style.colour}" stroke-width="2" '
        f'stroke-dasharray="{dashes}"/><path d="M16 6{shapes[style.marker]}" fill="{style.colour}"/></svg>'
    )


def figure_svg(figure: Figure) -> str:
    """Draw a figure with all its panels and its legend, as the text of an SVG file."""
    from matplotlib.figure import Figure as Canvas
    from matplotlib.lines import Line2D

    with _matplotlib_style(figure.name):
        columns = min(len(figure.panels), 3)
        rows = -(-len(figure.panels) // columns)
        canvas = Canvas(figsize=(3.6 * columns + 0.2, 2.8 * rows + 0.7), layout="constrained")
        for number, panel in enumerate(figure.panels, 1):
            axes = canvas.add_subplot(rows, columns, number)
            panel.draw(axes)
            axes.set_title(panel.title)
        styles = figure.legend.values()
        lines = [Line2D([], [], color=c, marker=m, linestyle=d, markersize=4.5) for c, m, d in styles]
        across = min(len(lines), 2 if columns == 1 else 3 * columns)
        names = list(figure.legend)
        canvas.legend(lines, names, loc="outside lower center", ncols=across, frameon=False, handlelength=3.2)
        return _to_svg(canvas, figure.name, for_page=False)


def write_figures(figures: Iterable[Figure], folder: Path) -> None:
    """Write each figure to `folder/NAME.svg`."""
    for figure in figures:
        with atomic_write(folder / f"{figure.name}.svg") as stream:
            stream.write(figure_svg(figure).encode("utf-8", "replace"))  # labels may contain lone surrogates


def plot_epochs(
    series: Sequence[tuple[LineStyle, Sequence[float]]],
    ylabel: str,
    axes: Axes,
    *,
    top: float | None = None,
    level: float | None = None,
) -> None:
    """Plot values by epoch, one line per series with a marker at its end, and a dotted line at `level`."""
    from matplotlib.ticker import MaxNLocator

    for style, values in series:
        axes.plot(
            range(1, len(values) + 1), values, color=style.colour, linestyle=style.dash, marker=style.marker,
            markersize=3, markevery=[len(values) - 1],
        )  # fmt: skip
    axes.set(xlabel="epoch", ylabel=ylabel, ylim=(0, top))
    if level is not None:
        axes.axhline(level, color=INK, linewidth=1, linestyle=(0, (1.5, 1.5)))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
