"""Two pictures that a run with a little gold leaves behind: what became of the labels, and how far to trust them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lacuner.reporting.svg import SOFT, Axes, Look, Panel, Picture, look_of, whole_picture


def labels_picture(counts: Mapping[str, Mapping[str, Any]]) -> str:
    """How often each label occurs in gold, weak, completed and pseudo labels: an SVG file."""
    looks = {kind: look_of(number) for number, kind in enumerate(counts)}
    caption = "Entities of each label in a thousand words."
    panel = Panel("entities in 1,000 words", _Labels(counts, looks))
    return whole_picture(Picture("labels", "Labels before and after completion", caption, [panel], looks))


@dataclass(frozen=True)
class _Labels:
    counts: Mapping[str, Mapping[str, Any]]
    looks: Mapping[str, Look]

    def __call__(self, axes: Axes) -> None:
        labels = sorted({label for each in self.counts.values() for label in each["entities"]})
        high = 0.8 / max(len(self.counts), 1)
        for number, (kind, each) in enumerate(self.counts.items()):
            places = [place + (number - (len(self.counts) - 1) / 2) * high for place in range(len(labels))]
            rates = [1000 * each["entities"].get(label, 0) / max(each["words"], 1) for label in labels]
            axes.barh(places, rates, high, color=self.looks[kind].colour)
        axes.set_yticks(range(len(labels)), labels)
        axes.invert_yaxis()


def reliability_picture(means: np.ndarray, right: np.ndarray, sizes: np.ndarray, confidence: np.ndarray) -> str:
    """The share of held-out sentences that were wholly right against the model's score, and the confidences: SVG."""
    looks = {"held-out gold": look_of(0), "completed weak sentences": look_of(1)}
    panels = [
        Panel("held-out gold", _Reliability(means, right, sizes, looks["held-out gold"])),
        Panel("confidence of weak sentences", _Confidence(confidence, looks["completed weak sentences"])),
    ]
    caption = (
        "Each mark is a bin, the larger the more sentences; on the line the model's score would need no correction."
    )
    return whole_picture(Picture("reliability", "How far to trust a prediction", caption, panels, looks))


@dataclass(frozen=True)
class _Reliability:
    means: np.ndarray
    right: np.ndarray
    sizes: np.ndarray
    look: Look

    def __call__(self, axes: Axes) -> None:
        axes.plot([0, 1], [0, 1], color=SOFT, linewidth=1)
        if len(self.means):
            largest = self.sizes.max()
            axes.plot(self.means, self.right, color=self.look.colour, linewidth=1)
            axes.scatter(self.means, self.right, 12 + 40 * self.sizes / largest, color=self.look.colour)
        axes.set_xlabel("probability of the prediction")
        axes.set_ylabel("share wholly right")
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)


@dataclass(frozen=True)
class _Confidence:
    confidence: np.ndarray
    look: Look

    def __call__(self, axes: Axes) -> None:
        axes.hist(self.confidence, bins=np.linspace(0, 1, 21), color=self.look.colour)
        axes.set_xlabel("confidence")
        axes.set_ylabel("sentences")
        axes.set_xlim(-0.02, 1.02)
