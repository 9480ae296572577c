"""Report of `lacuner audit sampling`: an HTML page with figures, and the same as JSON.

No text of a corpus is passed to matplotlib: the page shows it.
"""

from collections.abc import Mapping
from functools import partial
from math import isnan
from pathlib import Path

import numpy as np

from lacuner.atomic import atomic_write, write_json
from lacuner.audit.sampling import SamplingAudit
from lacuner.audit.sparsity import SamplingOdds, Sparsity, clean_bound, min_words, simulate_worst_case, worst_case
from lacuner.reporting.html import render_page
from lacuner.reporting.svg import INK, Axes, Figure, LineStyle, Panel, line_style, plot_epochs

COLUMNS = {"loss": "loss", "dev_f1": "dev F1", "missampling": "missampling (%)", "uncertainty": "uncertainty"}
"""Values of an epoch, and their headings."""
SCALES = {"dev_f1": (100, 1), "missampling": (100, 2)}
"""Factor and number of digits; others are shown as they are, with three digits."""
MAX_LISTED = 50
"""Number of tracked entities in the table of the page."""
MAX_PLOTTED = 8
"""Number of tracked entities with a panel of their own."""
SIMULATED_LENGTHS = (5, 10, 20, 40, 80)


def write_audit(audit: SamplingAudit, out: Path, command: str) -> None:
    """Write `report.html` and `sampling.json`. The same audit gives the same bytes."""
    write_json(out / "sampling.json", audit.as_json())
    with atomic_write(out / "report.html") as stream:
        stream.write(render_audit(audit, command).encode())


def render_audit(audit: SamplingAudit, command: str) -> str:
    """Render the HTML page."""
    listed = [
        (entity, [training.probs[[0, -1], number].tolist() for training in audit.trainings if len(training.probs)])
        for number, entity in enumerate(audit.tracked[:MAX_LISTED])
    ]
    return render_page(
        Path(__file__).parent / "sampling.html.jinja",
        audit_figures(audit),
        {"percent": format_percent, "number": format_value},
        command=command,
        facts=audit.as_json(),
        columns=epoch_columns(audit),
        trainings=audit.trainings,
        listed=listed,
    )


def epoch_columns(audit: SamplingAudit) -> dict[str, str]:
    """Return the values that the epochs of this audit have, with their headings."""
    names = {name for training in audit.trainings for row in training.epochs for name in row}
    return {name: heading for name, heading in COLUMNS.items() if name in names}


def format_percent(share: float) -> str:
    """Format a share in per cent.

    >>> format_percent(0.1234)
    '12.34 %'
    """
    return f"{100 * share:.2f} %"


def format_value(value: float | None, name: str = "") -> str:
    """Format a value of an epoch; a missing value is empty.

    >>> format_value(0.25), format_value(0.25, "dev_f1"), format_value(None)
    ('0.250', '25.0', '')
    """
    if value is None or isnan(value):
        return ""
    factor, digits = SCALES.get(name, (1, 3))
    return f"{factor * value:.{digits}f}"


def audit_figures(audit: SamplingAudit) -> list[Figure]:
    """Return all figures of an audit."""
    styles = {training.name: line_style(number) for number, training in enumerate(audit.trainings)}
    return [
        sparsity_figure(audit.sparsity),
        bound_figure(audit.odds, audit.rate),
        _epochs_figure(audit, styles),
        *_tracked_figure(audit, styles),
    ]


def sparsity_figure(counts: Sparsity) -> Figure:
    """Entities per sentence by its length, with the square root of the length."""
    style = line_style(0)

    def draw(axes: Axes) -> None:
        points, sizes = np.unique(np.stack([counts.words, counts.entities], 1), axis=0, return_counts=True)
        axes.scatter(points[:, 0], points[:, 1], s=8 + 12 * np.log(sizes), color=style.colour, alpha=0.6, linewidth=0)
        words = np.linspace(0, max(int(counts.words.max(initial=1)), 1), 100)
        axes.plot(words, np.sqrt(words), color=INK, linewidth=1.2)
        axes.set(xlabel="words in the sentence", ylabel="entities", ylim=(-0.3, None))

    return Figure(
        "sparsity",
        "Sparsity of entities",
        f"Sentences by length and number of entities; larger marks stand for more sentences. The line is the square "
        f"root of the length: {counts.dense:,} of {len(counts.words):,} sentences are above it.",
        [Panel("entities by sentence length", draw)],
        {"sentences": style._replace(dash=(0, (0.001, 9)))},
    )


def bound_figure(odds: SamplingOdds, rate: float) -> Figure:
    """Probability that no negative is an entity: the paper's bound, its worst case, and this corpus."""
    styles = {
        **({"bound": line_style(6)._replace(dash=(0, (5, 2)))} if rate <= 1 else {}),
        "worst case, exact": line_style(0),
        "worst case, simulated": line_style(1),
        "this corpus": line_style(2),
    }

    def draw(axes: Axes) -> None:
        shortest, longest = min_words(rate), max(SIMULATED_LENGTHS[-1], int(odds.words.max(initial=0)))
        for name, probability in (("bound", clean_bound), ("worst case, exact", worst_case)):
            if name in styles:
                curve = [(n, probability(n, rate)) for n in range(shortest, min(longest, 200) + 1)]
                points = zip(*[(n, value) for n, value in curve if value >= 0], strict=True)
                axes.plot(*points, color=styles[name].colour, linestyle=styles[name].dash)
        lengths = [n for n in SIMULATED_LENGTHS if n >= shortest]
        style = styles["worst case, simulated"]
        simulated = [simulate_worst_case(n, rate) for n in lengths]
        axes.plot(lengths, simulated, color=style.colour, marker=style.marker, markersize=4.5, linestyle="none")
        bins, clean, style = odds.words // 5 * 5, odds.clean, styles["this corpus"]
        used = np.unique(bins[odds.words > 0])
        means = [clean[(bins == start) & (odds.words > 0)].mean() for start in used]
        axes.plot(used + 2, means, color=style.colour, marker=style.marker, markersize=3, linewidth=1.1)
        axes.set(xlabel="words in the sentence", ylabel="probability", ylim=(0, 1.02))

    return Figure(
        "bound",
        "Probability that no negative is an entity",
        f"With {rate:g} sampled negatives per word. Bound and worst case are for all spans of a sentence in which the "
        "number of unlabeled entities is the square root of its length; this corpus has its own missing labels and the "
        "model a maximum span width.",
        [Panel("probability that no entity is sampled", draw)],
        styles,
    )


def _epochs_figure(audit: SamplingAudit, styles: Mapping[str, LineStyle]) -> Figure:
    """Loss, dev F1, missampling and uncertainty by epoch, where they were recorded."""
    expected = 100 * audit.odds.missampling
    kinds = (
        ("loss", 1, "loss", None, None),
        ("dev_f1", 100, "dev F1", None, 100),
        ("missampling", 100, "per cent of negatives that are entities", expected, None),
        ("uncertainty", 1, "mean entropy of negatives", None, None),
    )
    panels = []
    for name, factor, ylabel, level, top in kinds:
        series = [
            (styles[training.name], [factor * row[name] for row in training.epochs if name in row])
            for training in audit.trainings
        ]
        if series := [(style, values) for style, values in series if values]:
            panels.append(
                Panel(name.replace("dev_f1", "dev F1"), partial(plot_epochs, series, ylabel, level=level, top=top))
            )
    caption = "By epoch. "
    if any(panel.title == "missampling" for panel in panels):
        caption += "The dotted line is the missampling expected from uniform sampling in this corpus."
    return Figure("epochs", "Training", caption.strip(), panels, styles)


def _tracked_figure(audit: SamplingAudit, styles: Mapping[str, LineStyle]) -> list[Figure]:
    """Probabilities of the tracked entities by epoch: a summary, then some of them one by one."""
    if not audit.tracked:
        return []

    def draw_summary(axes: Axes) -> None:
        means = []
        for training in audit.trainings:
            probs = training.probs[:, ~np.isnan(training.probs).any(axis=0)]
            if probs.size:
                style = styles[training.name]
                low, high = np.quantile(probs, (0.25, 0.75), axis=1)
                axes.fill_between(range(1, len(probs) + 1), low, high, color=style.colour, alpha=0.15, linewidth=0)
                means.append((style, probs.mean(axis=1).tolist()))
        plot_epochs(means, "probability", axes, top=1.02)

    panels = [Panel(f"all {len(audit.tracked):,} tracked entities", draw_summary)]
    for number, entity in enumerate(audit.tracked[:MAX_PLOTTED]):
        series = [(styles[training.name], training.probs[:, number].tolist()) for training in audit.trainings]
        draw = partial(plot_epochs, series, "probability", top=1.02)
        panels.append(Panel(f"{entity.span.label}: {entity.context}", draw))
    caption = (
        "Probability that an unlabeled entity is an entity of its type. A recipe that treats the weak labels as "
        "complete drives it to zero. The band in the first panel covers the middle half of all tracked entities."
    )
    return [Figure("followed", "Unlabeled entities by epoch", caption, panels, styles)]
