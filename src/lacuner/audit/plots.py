"""What the watches saw, drawn. Nothing here hands text of a corpus to matplotlib: the page says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lacuner.audit.sparsity import Chances, Sparsity, bound, least_words, simulated, worst_case
from lacuner.reporting.svg import INK, Axes, Figure, LineStyle, Panel, line_style, plot_epochs

if TYPE_CHECKING:
    from lacuner.audit.sampling import Audit

SHOWN = 8
"""Single entities that are drawn."""
LENGTHS = (5, 10, 20, 40, 80)
"""Words of the sentences for which the probability is simulated."""


def draw_missampling(axes: Axes, points: Sequence[tuple[LineStyle, Sequence[Mapping[str, Any]], float]]) -> None:
    """Test F1 against the mean missampling of all epochs, a mark a training. Rows are those of `MissamplingProbe`."""
    for look, rows, f1 in points:
        mean = float(np.mean([row["missampling"] for row in rows]))
        axes.plot([100 * mean], [100 * f1], color=look.colour, marker=look.marker, markersize=5.5, linestyle="none")
    axes.set_xlabel("per cent of negatives that are entities")
    axes.set_ylabel("test F1")
    axes.set_xlim(left=0)
    axes.set_ylim(0, 100)


def pictures(audit: Audit) -> list[Figure]:
    """All pictures of an audit."""
    look = {watched.name: line_style(number) for number, watched in enumerate(audit.watched)}
    found = [sparsity_picture(audit.sparsity), bound_picture(audit.chances, audit.rate), *_curves(audit, look)]
    return [*found, *_followed(audit, look)]


def sparsity_picture(found: Sparsity) -> Figure:
    """Entities of each sentence against the square root of its length."""

    def draw(axes: Axes) -> None:
        places, counts = np.unique(np.stack([found.words, found.entities], 1), axis=0, return_counts=True)
        axes.scatter(places[:, 0], places[:, 1], s=8 + 12 * np.log(counts), color=look.colour, alpha=0.6, linewidth=0)
        words = np.linspace(0, max(int(found.words.max(initial=1)), 1), 100)
        axes.plot(words, np.sqrt(words), color=INK, linewidth=1.2)
        axes.set_xlabel("words in the sentence")
        axes.set_ylabel("entities")
        axes.set_ylim(bottom=-0.3)

    look = line_style(0)
    return Figure(
        "sparsity",
        "How sparse entities are",
        f"Sentences by length and entities; the larger the mark, the more of them. The line is the square root of the "
        f"length: {found.dense:,} of {len(found.words):,} sentences lie above it.",
        [Panel("entities against words", draw)],
        {"sentences": look._replace(dash=(0, (0.001, 9)))},
    )


def bound_picture(found: Chances, rate: float) -> Figure:
    """The bound of the paper, what is exactly true in its worst case, and what is true here."""
    looks = {
        **({"bound": line_style(6)._replace(dash=(0, (5, 2)))} if rate <= 1 else {}),
        "worst case, exact": line_style(0),
        "worst case, simulated": line_style(1),
        "this corpus": line_style(2),
    }

    def draw(axes: Axes) -> None:
        least, most = least_words(rate), max(LENGTHS[-1], int(found.words.max(initial=0)))
        curves = {"bound": bound, "worst case, exact": worst_case}
        for name, chance in curves.items():
            if name not in looks:
                continue
            words = [n for n in range(least, min(most, 200) + 1) if chance(n, rate) >= 0]
            axes.plot(words, [chance(n, rate) for n in words], color=looks[name].colour, linestyle=looks[name].dash)
        tried = [n for n in LENGTHS if n >= least]
        look = looks["worst case, simulated"]
        axes.plot(
            tried, [simulated(n, rate) for n in tried], color=look.colour, marker=look.marker, markersize=4.5,
            linestyle="none",
        )  # fmt: skip
        lengths = found.words // 5 * 5
        bins = np.unique(lengths[found.words > 0])
        clean = found.clean
        look = looks["this corpus"]
        axes.plot(
            bins + 2, [clean[(lengths == each) & (found.words > 0)].mean() for each in bins], color=look.colour,
            marker=look.marker, markersize=3, linewidth=1.1,
        )  # fmt: skip
        axes.set_xlabel("words in the sentence")
        axes.set_ylabel("probability")
        axes.set_ylim(0, 1.02)

    return Figure(
        "bound",
        "How likely no negative is an entity",
        f"Drawing {rate:g} negatives a word. The bound and the worst case are for all spans of a sentence with as many "
        "unlabelled entities as the square root of its length; this corpus has its own gaps and the model its greatest "
        "width.",
        [Panel("probability that no entity is drawn", draw)],
        looks,
    )


@dataclass(frozen=True)
class _Epochs:
    series: Sequence[tuple[LineStyle, Sequence[float]]]
    ylabel: str
    level: float | None = None
    top: float | None = None

    def __call__(self, axes: Axes) -> None:
        plot_epochs(axes, self.series, self.ylabel)
        if self.level is not None:
            axes.axhline(self.level, color=INK, linewidth=1, linestyle=(0, (1.5, 1.5)))
        axes.set_ylim(0, self.top)


def _curves(audit: Audit, look: Mapping[str, LineStyle]) -> list[Figure]:
    """Loss, dev F1, missampling and uncertainty, as far as there are any."""
    expected = 100 * audit.chances.missampling
    kinds = (
        ("loss", 1, "loss", None, None),
        ("dev_f1", 100, "dev F1", None, 100),
        ("missampling", 100, "per cent of negatives that are entities", expected, None),
        ("uncertainty", 1, "mean entropy of negatives", None, None),
    )
    panels = []
    for name, times, ylabel, level, top in kinds:
        series = [
            (look[watched.name], [times * row[name] for row in watched.epochs if name in row])
            for watched in audit.watched
        ]
        if any(values for _, values in series):
            drawn = _Epochs([each for each in series if each[1]], ylabel, level, top)
            panels.append(Panel(name.replace("dev_f1", "dev F1"), drawn))
    caption = "Epoch by epoch. "
    if any(panel.title == "missampling" for panel in panels):
        caption += "The dotted line is the missampling that drawing uniformly is expected to have in this corpus."
    return [Figure("epochs", "The training", caption.strip(), panels, look)]


def _followed(audit: Audit, look: Mapping[str, LineStyle]) -> list[Figure]:
    """Unlabelled entities, epoch by epoch: all together, and some of them one by one."""
    count = len(audit.followed)
    if not count:
        return []
    tables = {watched.name: watched.table for watched in audit.watched}

    def together(axes: Axes) -> None:
        means = []
        for name, table in tables.items():
            seen = table[:, ~np.isnan(table).any(axis=0)]
            if not seen.size:
                continue
            low, high = np.quantile(seen, (0.25, 0.75), axis=1)
            epochs = range(1, len(seen) + 1)
            axes.fill_between(epochs, low, high, color=look[name].colour, alpha=0.15, linewidth=0)
            means.append((look[name], seen.mean(axis=1).tolist()))
        plot_epochs(axes, means, "probability")
        axes.set_ylim(0, 1.02)

    panels = [Panel(f"all {count:,} that were followed", together)]
    for number, each in list(enumerate(audit.followed))[:SHOWN]:
        series = [(look[name], table[:, number].tolist()) for name, table in tables.items()]
        panels.append(Panel(f"{each.span.label}: {each.context}", _Epochs(series, "probability", None, 1.02)))
    return [
        Figure(
            "followed",
            "Unlabelled entities, epoch by epoch",
            "The probability that the model gives an entity without label of being one, of its type. A recipe that "
            "believes the gaps drives it to zero. The band of the first panel has the middle half of all.",
            panels,
            look,
        )
    ]
