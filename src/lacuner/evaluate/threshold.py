"""How probable a span must be to be believed."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lacuner.data import Document
from lacuner.evaluate.align import align
from lacuner.evaluate.scores import Count

THRESHOLDS = 1 / (1 + np.exp(-np.arange(-7.0, 6.1, 0.5)))
"""From 0.0009 to 0.998, closer together where probabilities are near 0 or 1."""


def best_threshold(gold: Iterable[Document], predicted: Iterable[Document]) -> tuple[float, Count]:
    """The threshold with the best exact F1, and its score; of equally good ones that which is nearest to a half.

    There are few to choose from, so that chance has little to say. Spans without a score are always believed.
    """
    right: list[float] = []
    wrong: list[float] = []
    there = 0
    for truth, found in align(gold, predicted):
        known = {span[:3] for span in truth.spans}
        there += len(known)
        for span in found.spans:
            score = 1.0 if span.score is None else span.score
            (right if span[:3] in known else wrong).append(score)
    correct, mistaken = (
        len(scores) - np.searchsorted(np.sort(scores), THRESHOLDS) for scores in (right, wrong)
    )  # how many have at least that score
    f1 = 2 * correct / np.maximum(correct + mistaken + there, 1)
    order = np.argsort(np.abs(THRESHOLDS - 0.5), kind="stable")
    best = order[np.argmax(f1[order])]
    return float(THRESHOLDS[best]), Count(int(correct[best]), int(correct[best] + mistaken[best]), there)
