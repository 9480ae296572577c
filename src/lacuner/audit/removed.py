"""What two-step learning removed, drawn: how the O-values come apart, and what another share would have found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lacuner.pages.drawing import Axes, Look, Panel, Picture, look_of
from lacuner.recipes.removed import Judged

SHARES = tuple(0.1 * 2.0**power for power in range(-5, 4))
"""The shares that the paper tries, and larger ones: what is missing may be more than half."""


def pictures(runs: Mapping[str, Judged]) -> list[Picture]:
    """Pictures of one run, or of several side by side; `runs` are by the names to show."""
    kinds = {"no entity": look_of(0), "unlabelled entity": look_of(1)}
    looks = {name: look_of(number) for number, name in enumerate(runs)}
    words = [Panel(name, _Values(judged, tuple(kinds.values()))) for name, judged in runs.items()]
    found = [Panel(title, _Shares(runs, looks, part)) for part, title in enumerate(("precision", "recall"))]
    return [
        Picture(
            "o-values",
            "O-values, epoch by epoch",
            "Medians of the scores that the explored model gives O, for words of unlabelled entities and for words "
            "that are none; bands are the middle half. A run with each_epoch=true asks after each epoch.",
            words,
            kinds,
        ),
        Picture(
            "removed-words",
            "Removed words against the share that is removed",
            "Precision: how many of the removed words belong to unlabelled entities; recall: how many of those words "
            "are removed. The large mark is the share that the run removed.",
            found,
            looks,
        ),
    ]


@dataclass(frozen=True)
class _Values:
    judged: Judged
    looks: Sequence[Look]

    def __call__(self, axes: Axes) -> None:
        from matplotlib.ticker import MaxNLocator

        epochs = self.judged.epochs
        for look, mine in zip(self.looks, (~self.judged.missing, self.judged.missing), strict=True):
            if mine.any():
                low, middle, high = np.quantile(self.judged.values[:, mine], (0.25, 0.5, 0.75), axis=1)
                axes.fill_between(epochs, low, high, color=look.colour, alpha=0.18, linewidth=0)
                if len(epochs) == 1:  # nobody asked before the end: a band would have no width
                    axes.vlines(epochs, low, high, color=look.colour, alpha=0.5)
                axes.plot(epochs, middle, color=look.colour, marker=look.marker, markersize=4)
        axes.set_xlabel("epoch")
        axes.set_ylabel("O-value")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


@dataclass(frozen=True)
class _Shares:
    runs: Mapping[str, Judged]
    looks: Mapping[str, Look]
    part: int
    """0: precision, 1: recall."""

    def __call__(self, axes: Axes) -> None:
        for name, judged in self.runs.items():
            look = self.looks[name]
            values = [100 * judged.if_removed(share)[self.part] for share in SHARES]
            axes.plot([100 * share for share in SHARES], values, color=look.colour, marker=look.marker, markersize=3)
            share = float(judged.removed.mean()) if len(judged.removed) else 0.0
            if share:
                value = 100 * (judged.precision, judged.recall)[self.part]
                axes.plot([100 * share], [value], color=look.colour, marker=look.marker, markersize=7)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_xlabel("per cent of the unlabelled words that are removed")
        axes.set_ylabel(("precision", "recall")[self.part])
        axes.set_ylim(0, 101)


def table(runs: Mapping[str, Judged]) -> Iterator[tuple[str, float, float, float]]:
    """A row a run and share: its name, the share, precision and recall."""
    for name, judged in runs.items():
        for share in SHARES:
            yield (name, share, *judged.if_removed(share))
