"""The pictures of a bench."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lacuner.bench.grid import Place
from lacuner.bench.spec import LITTLE, Spec
from lacuner.bench.summary import Line, figure
from lacuner.reporting.svg import DASHES, INK, SOFT, Axes, Figure, LineStyle, Panel, figure_svg, line_style, plot_epochs

Values = Callable[[Line], list[float]]
"""A number after each epoch."""


def looks(spec: Spec) -> dict[str, LineStyle]:
    """The same look for a recipe in all pictures: colour and marker tell the recipe, the dashes its variants.

    Where there are more variants than dashes, or nothing but variants, each has a colour of its own.
    """
    by_recipe: dict[str, list[str]] = {}
    for name, each in spec.recipes.items():
        by_recipe.setdefault(each.recipe, []).append(name)
    if len(by_recipe) == 1 or max(map(len, by_recipe.values())) > len(DASHES):
        return {name: line_style(number) for number, name in enumerate(spec.recipes)}
    found = {
        name: line_style(number, variant)
        for number, names in enumerate(by_recipe.values())
        for variant, name in enumerate(names)
    }
    return {name: found[name] for name in spec.recipes}


def pictures(lines: Sequence[Line], spec: Spec) -> list[Figure]:
    """All pictures that these lines allow."""
    drawn = [line for line in lines if line.rows]
    look = looks(spec)
    made = [
        Figure(
            "f1-against-masking",
            "F1 against masking",
            "Test F1 when a growing share of the training entities has lost its label. Lines are means over seeds, "
            "bands one standard deviation.",
            list(_masking(drawn, spec, look)),
            look,
        ),
        Figure(
            "f1-against-amounts",
            "F1 against the amount of gold, and of weak labels",
            "Test F1 with more and more of gold, and with more and more weak sentences beside the same gold. Lines are "
            "means over seeds, bands one standard deviation.",
            list(_amounts(drawn, spec, look)),
            look,
        ),
        Figure(
            "precision-against-recall",
            "Precision against recall",
            "Grey lines join points of equal F1. The larger the mark, the more labels were missing; hollow marks: "
            "labels as given.",
            [Panel(title, _Trade(group, look)) for title, group in _groups(drawn, spec)],
            look,
        ),
        Figure(
            "training-curves",
            "Training curves",
            "Dev F1 after each epoch, mean over seeds, as far as all seeds went.",
            list(_curves(drawn, spec, look, _dev, "dev F1")),
            look,
        ),
        Figure(
            "cost-against-quality",
            "Cost against quality",
            "CPU seconds of training on one thread, and test F1. A column joins the results of one recipe; the larger "
            "the mark, the more labels were missing; hollow marks: labels as given.",
            [Panel(title, _Cost(group, look)) for title, group in _groups(drawn, spec)],
            look,
        ),
        *_sampling(drawn, spec, look),
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


def _masking(lines: Sequence[Line], spec: Spec, look: Mapping[str, LineStyle]) -> Iterator[Panel]:
    for title, group in _groups(lines, spec):
        for kind, note in (("masked", ""), ("surface", " (whole names)"), ("wrong", " (others wrong)")):
            mine = [line for line in group if line.place.gaps.kind == kind]
            if len({line.place.gaps.rate for line in mine}) > 1:
                yield Panel(title + note, _Rising(mine, look, "share of entities without label"))


def _amounts(lines: Sequence[Line], spec: Spec, look: Mapping[str, LineStyle]) -> Iterator[Panel]:
    for title, group in _groups(lines, spec):
        mine = [line for line in group if line.place.gaps.kind == LITTLE]
        for weak in dict.fromkeys(line.place.gaps.weak for line in mine):
            same = [line for line in mine if line.place.gaps.weak == weak]
            for number in (False, True):  # shares and numbers of sentences have no scale in common
                part = [line for line in same if (line.place.gaps.rate > 1) == number]
                if len({line.place.gaps.rate for line in part}) > 1:
                    note = "" if weak is None else f", weak {weak}"
                    what = "gold sentences" if number else "share of gold"
                    yield Panel(title + note, _Rising(part, look, what, log=True))
        for rate in dict.fromkeys(line.place.gaps.rate for line in mine):
            same = [line for line in mine if line.place.gaps.rate == rate]
            if len({line.place.gaps.weak for line in same}) > 1:
                gold = same[0].place.gaps._replace(weak=None)
                yield Panel(f"{title}, {gold}", _Rising(same, look, "weak sentences", log=True, of=_weak))


def _rate(line: Line) -> float:
    return line.place.gaps.rate


def _weak(line: Line) -> float:
    return float(line.place.gaps.weak or 0)


@dataclass(frozen=True)
class _Rising:
    """F1 against something that there is more and more of."""

    lines: Sequence[Line]
    look: Mapping[str, LineStyle]
    xlabel: str
    log: bool = False
    of: Callable[[Line], float] = _rate

    def __call__(self, axes: Axes) -> None:
        for name, mine in _by_recipe(self.lines):
            mine = sorted(mine, key=self.of)
            rates, means = [self.of(line) for line in mine], [100 * line.f1.mean for line in mine]
            spreads = [100 * (line.f1.spread or 0.0) for line in mine]
            look = self.look[name]
            low, high = ([m + sign * s for m, s in zip(means, spreads, strict=True)] for sign in (-1, 1))
            axes.fill_between(rates, low, high, color=look.colour, alpha=0.15, linewidth=0)
            axes.plot(rates, means, color=look.colour, marker=look.marker, linestyle=look.dash, markersize=4.5)
        if self.log:
            axes.set_xscale("log")
            axes.minorticks_off()
        ticks = sorted({self.of(line) for line in self.lines})
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_xlabel(self.xlabel)
        axes.set_ylabel("test F1")
        axes.set_ylim(0, 100)


def _sizes(lines: Sequence[Line]) -> dict[Any, float]:
    """A mark's size for each kind of noise, growing with the rate."""
    rates = sorted({line.place.gaps.rate for line in lines})
    return {gaps: 3.5 + 2.5 * rates.index(gaps.rate) for gaps in {line.place.gaps for line in lines}}


def _marks(
    axes: Axes, points: Sequence[tuple[float, float]], lines: Sequence[Line], look: LineStyle, size: Any
) -> None:
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
    look: Mapping[str, LineStyle]

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
    look: Mapping[str, LineStyle]

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


def _curves(
    lines: Sequence[Line], spec: Spec, look: Mapping[str, LineStyle], values: Values, ylabel: str
) -> Iterator[Panel]:
    for title, group in _groups(lines, spec):
        for gaps in dict.fromkeys(line.place.gaps for line in group):
            found = [(look[line.place.recipe], values(line)) for line in group if line.place.gaps == gaps]
            if any(each for _, each in found):
                yield Panel(f"{title}, {gaps}", _Curves([(drawn, each) for drawn, each in found if each], ylabel))


def _dev(line: Line) -> list[float]:
    """Mean dev F1 after each epoch of all stages, as far as all seeds went."""
    return _by_epoch([row["dev"]["f1"] for row in found["epochs"] if "dev" in row] for found in line.rows.values())


def _missampling(line: Line) -> list[float]:
    """Mean share of the drawn negatives that are entities, in each epoch."""
    return _by_epoch([row["missampling"] for row in found.get("sampling", ())] for found in line.rows.values())


def _by_epoch(seeds: Iterable[Sequence[float]]) -> list[float]:
    return [100 * figure(values).mean for values in zip(*seeds, strict=False)]


@dataclass(frozen=True)
class _Curves:
    series: Sequence[tuple[LineStyle, Sequence[float]]]
    ylabel: str

    def __call__(self, axes: Axes) -> None:
        plot_epochs(axes, self.series, self.ylabel)
        if self.ylabel == "dev F1":
            axes.set_ylim(0, 100)


def _sampling(lines: Sequence[Line], spec: Spec, look: Mapping[str, LineStyle]) -> Iterator[Figure]:
    """What became of those that draw negatives, where gold knew which of them were entities."""
    drawn = [line for line in lines if any("sampling" in row for row in line.rows.values())]
    shown = {name: look[name] for name in look if any(line.place.recipe == name for line in drawn)}
    yield Figure(
        "f1-against-missampling",
        "F1 against missampling",
        "Each mark is one training: the share of its negatives that were unlabelled entities, mean over its epochs, "
        "and its test F1.",
        [Panel(title, _Missampling(group, look)) for title, group in _groups(drawn, spec)],
        shown,
    )
    yield Figure(
        "missampling",
        "Missampling by epoch",
        "The share of the drawn negatives that were unlabelled entities, mean over seeds.",
        list(_curves(drawn, spec, look, _missampling, "per cent of negatives")),
        shown,
    )
    if len(drawn) < len(lines):  # else these are the training curves
        yield Figure(
            "f1-of-samplers",
            "F1 of the samplers by epoch",
            "Dev F1 after each epoch of the recipes that draw negatives, mean over seeds.",
            list(_curves(drawn, spec, look, _dev, "dev F1")),
            shown,
        )


@dataclass(frozen=True)
class _Missampling:
    lines: Sequence[Line]
    look: Mapping[str, LineStyle]

    def __call__(self, axes: Axes) -> None:
        rows = [(self.look[line.place.recipe], row) for line in self.lines for row in line.rows.values()]
        for look, row in rows:
            if "sampling" in row:
                mean = figure([epoch["missampling"] for epoch in row["sampling"]]).mean
                axes.plot(
                    [100 * mean], [100 * row["test"]["f1"]], color=look.colour, marker=look.marker, markersize=5.5
                )
        axes.set_xlabel("per cent of negatives that are entities")
        axes.set_ylabel("test F1")
        axes.set_xlim(left=0)
        axes.set_ylim(0, 100)


def whole_pictures(lines: Sequence[Line], spec: Spec) -> dict[str, str]:
    """Each picture as an SVG file of its own."""
    return {picture.name: figure_svg(picture) for picture in pictures(lines, spec)}
