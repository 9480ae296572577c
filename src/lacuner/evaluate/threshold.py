"""Below which score it is better not to believe a span."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lacuner.evaluate.pairing import pair
from lacuner.types import Document


def best_threshold(gold: Iterable[Document], predicted: Iterable[Document]) -> tuple[float, float]:
    """The score that a span should at least have, and the exact F1 that comes of it; 0 if all should stay.

    Of thresholds that are equally good the lowest is taken. Spans without a score are always believed; whatever touches
    an unsure span of gold counts neither way.
    """
    scores: list[float] = []
    right: list[bool] = []
    there = 0
    for truth, found in pair(gold, predicted):
        known = {span[:3] for span in truth.spans}
        there += len(known)
        for span in found.spans:
            correct = span[:3] in known
            if correct or not any(span.start < other.end and other.start < span.end for other in truth.unsure):
                scores.append(1.0 if span.score is None else span.score)
                right.append(correct)
    if not scores:
        return 0.0, 0.0
    order = np.argsort(-np.array(scores), kind="stable")
    ranked, correct_so_far = np.array(scores)[order], np.cumsum(np.array(right)[order])
    f1 = 2 * correct_so_far / (np.arange(1, len(ranked) + 1) + there)
    f1[:-1][ranked[:-1] == ranked[1:]] = -1.0  # one cannot cut between equal scores
    best = len(f1) - 1 - int(np.argmax(f1[::-1]))
    return (0.0 if best == len(f1) - 1 else float(ranked[best])), float(f1[best])
