"""Figures of a benchmark."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from lacuner.bench.grid import Condition
from lacuner.bench.spec import GOLD_SUBSET, NoiseLevel, Spec
from lacuner.bench.summary import TableLine, mean_std
from lacuner.reporting.svg import DASHES, INK, SOFT, Axes, Figure, LineStyle, Panel, line_style, plot_epochs

Styles = Mapping[str, LineStyle]
SIZES = "larger marks for higher noise rates, hollow marks for labels as given"


def recipe_styles(spec: Spec) -> dict[str, LineStyle]:
    """Return one style per recipe for all figures: colour and marker show the recipe, dashes its variants.

    If there is only one recipe, or one has more variants than there are dashes, each variant has its own colour.
    """
    variants: dict[str, list[str]] = {}
    for name, recipe in spec.recipes.items():
        variants.setdefault(recipe.recipe, []).append(name)
    if len(variants) == 1 or max(map(len, variants.values())) > len(DASHES):
        return {name: line_style(number) for number, name in enumerate(spec.recipes)}
    colours = list(variants)
    return {
        name: line_style(colours.index(recipe.recipe), variants[recipe.recipe].index(name))
        for name, recipe in spec.recipes.items()
    }


def bench_figures(lines: Sequence[TableLine], spec: Spec) -> list[Figure]:
    """Return all figures for which there are results."""
    lines = [line for line in lines if line.rows]
    styles = recipe_styles(spec)
    groups = _by_data_and_encoder(lines, spec)
    figures = [
        Figure(
            "f1-against-masking",
            "F1 by share of missing labels",
            "Test F1 when a share of the training entities has lost its label. Lines are means over seeds, bands one "
            "standard deviation.",
            [panel for group in groups.items() for panel in _noise_panels(*group, styles)],
            styles,
        ),
        Figure(
            "f1-against-amounts",
            "F1 by amount of gold and of weak labels",
            "Test F1 by amount of gold, and by number of weak sentences beside the same gold. Lines are means over "
            "seeds, bands one standard deviation.",
            [panel for group in groups.items() for panel in _amount_panels(*group, styles)],
            styles,
        ),
        Figure(
            "precision-against-recall",
            "Precision by recall",
            f"Grey lines join points of equal F1; {SIZES}.",
            [Panel(title, partial(_plot_precision_recall, group, styles)) for title, group in groups.items()],
            styles,
        ),
        Figure(
            "training-curves",
            "Training curves",
            "Dev F1 after each epoch, mean over seeds, up to the last epoch that all seeds have.",
            _epoch_panels(groups, styles, _dev_f1, "dev F1", 100),
            styles,
        ),
        Figure(
            "cost-against-quality",
            "Quality by cost",
            f"Test F1 by CPU seconds of training on one thread. A line joins the results of one recipe; {SIZES}.",
            [Panel(title, partial(_plot_cost, group, styles)) for title, group in groups.items()],
            styles,
        ),
        *_sampling_figures(lines, spec, styles),
    ]
    return [figure for figure in figures if figure.panels]


Groups = dict[str, list[TableLine]]


def _group_lines(lines: Iterable[TableLine], key: Callable[[Condition], Any]) -> dict[Any, list[TableLine]]:
    """The lines by a key of their condition, in order of appearance."""
    groups: dict[Any, list[TableLine]] = {}
    for line in lines:
        groups.setdefault(key(line.condition), []).append(line)
    return groups


def _by_data_and_encoder(lines: Sequence[TableLine], spec: Spec) -> Groups:
    return _group_lines(lines, lambda at: at.data if len(spec.encoders) == 1 else f"{at.data}, {at.encoder}")


def _noise_panels(title: str, group: Sequence[TableLine], styles: Styles) -> Iterator[Panel]:
    by_kind = _group_lines(group, lambda at: at.noise.kind)
    for kind, note in (("masked", ""), ("surface", " (whole names)"), ("wrong", " (others wrong)")):
        lines = by_kind.get(kind, [])
        if len({_rate(line) for line in lines}) > 1:
            yield Panel(title + note, partial(_plot_f1, lines, styles, _rate, "share of entities without a label"))


def _amount_panels(title: str, group: Sequence[TableLine], styles: Styles) -> Iterator[Panel]:
    lines = [line for line in group if line.condition.noise.kind == GOLD_SUBSET]
    for weak, same_weak in _group_lines(lines, lambda at: at.noise.weak).items():
        for xlabel, absolute in (("share of gold", False), ("gold sentences", True)):
            part = [line for line in same_weak if (_rate(line) > 1) == absolute]
            if len({_rate(line) for line in part}) > 1:
                note = "" if weak is None else f", weak {weak}"
                yield Panel(title + note, partial(_plot_f1, part, styles, _rate, xlabel, log=True))
    for rate, part in _group_lines(lines, lambda at: at.noise.rate).items():
        if len({line.condition.noise.weak for line in part}) > 1:
            draw = partial(_plot_f1, part, styles, _weak_sentences, "weak sentences", log=True)
            yield Panel(f"{title}, {NoiseLevel(GOLD_SUBSET, rate)}", draw)


def _rate(line: TableLine) -> float:
    return line.condition.noise.rate


def _weak_sentences(line: TableLine) -> float:
    return float(line.condition.noise.weak or 0)


def _plot_f1(
    lines: Sequence[TableLine],
    styles: Styles,
    x_of: Callable[[TableLine], float],
    xlabel: str,
    axes: Axes,
    log: bool = False,
) -> None:
    """Plot mean test F1 with its standard deviation, one line per recipe."""
    for name, group in _group_lines(lines, lambda at: at.recipe).items():
        group, style = sorted(group, key=x_of), styles[name]
        x, means = [x_of(line) for line in group], np.array([100 * line.f1.mean for line in group])
        stds = np.array([100 * (line.f1.std or 0.0) for line in group])
        axes.fill_between(x, means - stds, means + stds, color=style.colour, alpha=0.15, linewidth=0)
        axes.plot(x, means, color=style.colour, marker=style.marker, linestyle=style.dash, markersize=4.5)
    if log:
        axes.set_xscale("log")
        axes.minorticks_off()
    ticks = sorted(set(map(x_of, lines)))
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set(xlabel=xlabel, ylabel="test F1", ylim=(0, 100))


Point = Callable[[TableLine], tuple[float, float]]


def _plot_points(lines: Sequence[TableLine], styles: Styles, point: Point, axes: Axes) -> None:
    """Plot one mark per line of the table, larger for higher noise rates; join those with masked labels."""
    rates = sorted(set(map(_rate, lines)))
    for name, group in _group_lines(lines, lambda at: at.recipe).items():
        style = styles[name]
        if masked := [point(line) for line in group if line.condition.noise.kind == "masked"]:
            axes.plot(*zip(*masked, strict=True), color=style.colour, linestyle=style.dash, linewidth=1.1, alpha=0.7)
        plotted: set[str] = set()
        for line in group:
            keys = {row["key"] for row in line.rows.values()}
            if keys <= plotted:  # a recipe that does not see the noise has one result
                continue
            plotted |= keys
            face = "none" if line.condition.noise.kind == "given" else style.colour
            size = 3.5 + 2.5 * rates.index(_rate(line))
            x, y = point(line)
            axes.plot([x], [y], color=style.colour, marker=style.marker, markersize=size, markerfacecolor=face)


def _plot_precision_recall(lines: Sequence[TableLine], styles: Styles, axes: Axes) -> None:
    for f1 in (20, 40, 60, 80):
        recall = np.linspace(f1 / 2 + 0.5, 100, 61)
        precision = f1 * recall / (2 * recall - f1)
        visible = precision <= 101
        axes.plot(recall[visible], precision[visible], color=SOFT, linewidth=0.8, zorder=0)
        axes.text(100, f1 * 100 / (200 - f1), f"{f1}", color=INK, alpha=0.6, fontsize=7, ha="right", va="bottom")

    def point(line: TableLine) -> tuple[float, float]:
        return 100 * line.metric("test", "recall").mean, 100 * line.metric("test", "precision").mean

    _plot_points(lines, styles, point, axes)
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 101), ylim=(0, 101))


def _plot_cost(lines: Sequence[TableLine], styles: Styles, axes: Axes) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    def point(line: TableLine) -> tuple[float, float]:
        return max(line.metric("cost", "train_cpu_seconds").mean, 0.01), 100 * line.f1.mean

    _plot_points(lines, styles, point, axes)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set(xlabel="CPU seconds of training", ylabel="test F1", ylim=(0, 100))


def _epoch_panels(
    groups: Groups, styles: Styles, values: Callable[[TableLine], list[float]], ylabel: str, top: float | None = None
) -> list[Panel]:
    """Panels with values by epoch, one for each group and noise level."""
    panels = []
    for title, group in groups.items():
        for noise, lines in _group_lines(group, lambda at: at.noise).items():
            series = [(styles[line.condition.recipe], by_epoch) for line in lines if (by_epoch := values(line))]
            if series:
                panels.append(Panel(f"{title}, {noise}", partial(plot_epochs, series, ylabel, top=top)))
    return panels


def _dev_f1(line: TableLine) -> list[float]:
    """Mean dev F1 over seeds after each epoch of all stages."""
    return _means([epoch["dev"]["f1"] for epoch in row["epochs"] if "dev" in epoch] for row in line.rows.values())


def _missampling(line: TableLine) -> list[float]:
    """Mean share over seeds of the sampled negatives that are entities, per epoch."""
    return _means([epoch["missampling"] for epoch in row.get("sampling", ())] for row in line.rows.values())


def _means(by_seed: Iterable[Sequence[float]]) -> list[float]:
    return [100 * mean_std(values).mean for values in zip(*by_seed, strict=False)]


def _sampling_figures(lines: Sequence[TableLine], spec: Spec, styles: Styles) -> Iterator[Figure]:
    """Yield figures of the recipes that sample negatives, where gold showed which of them are entities."""
    sampled = [line for line in lines if any("sampling" in row for row in line.rows.values())]
    groups = _by_data_and_encoder(sampled, spec)
    recipes = {line.condition.recipe for line in sampled}
    legend = {name: style for name, style in styles.items() if name in recipes}
    yield Figure(
        "f1-against-missampling",
        "F1 by missampling",
        "One mark per training: the share of its negatives that were unlabeled entities, mean over its epochs, and its "
        "test F1.",
        [Panel(title, partial(_plot_missampling, group, styles)) for title, group in groups.items()],
        legend,
    )
    yield Figure(
        "missampling",
        "Missampling by epoch",
        "Share of the sampled negatives that were unlabeled entities, mean over seeds.",
        _epoch_panels(groups, styles, _missampling, "per cent of negatives"),
        legend,
    )
    if len(sampled) < len(lines):  # otherwise these are the training curves
        yield Figure(
            "f1-of-samplers",
            "F1 of the samplers by epoch",
            "Dev F1 after each epoch of the recipes that sample negatives, mean over seeds.",
            _epoch_panels(groups, styles, _dev_f1, "dev F1", 100),
            legend,
        )


def _plot_missampling(lines: Sequence[TableLine], styles: Styles, axes: Axes) -> None:
    for line in lines:
        style = styles[line.condition.recipe]
        for row in line.rows.values():
            if "sampling" in row:
                mean = mean_std([epoch["missampling"] for epoch in row["sampling"]]).mean
                point = [100 * mean], [100 * row["test"]["f1"]]
                axes.plot(*point, color=style.colour, marker=style.marker, markersize=5.5)
    axes.set(xlabel="per cent of negatives that are entities", ylabel="test F1", xlim=(0, None), ylim=(0, 100))
