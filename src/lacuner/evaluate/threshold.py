"""The decision threshold: the probability from which a predicted span is kept."""

from collections.abc import Iterable

import numpy as np

from lacuner.data import Document
from lacuner.errors import ConfigError
from lacuner.evaluate.align import align
from lacuner.evaluate.scores import Count

THRESHOLDS = 1 / (1 + np.exp(-np.arange(-7.0, 6.1, 0.5)))
"""Candidates from 0.0009 to 0.998, denser near 0 and 1. There are few, so that tuning overfits little."""


def tune_threshold(gold: Iterable[Document], predicted: Iterable[Document]) -> tuple[float, Count]:
    """The threshold with the best exact F1, and its counts; ties go to the one nearest to 0.5.

    Spans without a score are always kept.
    """
    correct_scores: list[float] = []
    wrong_scores: list[float] = []
    total = 0
    for gold_doc, doc in align(gold, predicted):
        gold_keys = {span.key for span in gold_doc.spans}
        total += len(gold_keys)
        for span in doc.spans:
            score = 1.0 if span.score is None else span.score
            (correct_scores if span.key in gold_keys else wrong_scores).append(score)
    correct, wrong = (  # number of spans at or above each threshold
        len(scores) - np.searchsorted(np.sort(scores), THRESHOLDS) for scores in (correct_scores, wrong_scores)
    )
    f1 = 2 * correct / np.maximum(correct + wrong + total, 1)
    order = np.argsort(np.abs(THRESHOLDS - 0.5), kind="stable")
    best = order[np.argmax(f1[order])]
    return float(THRESHOLDS[best]), Count(int(correct[best]), int(correct[best] + wrong[best]), total)


def check_threshold(threshold: float | None) -> None:
    """Refuse a threshold that is not a probability between 0 and 1.

    >>> check_threshold(1.5)
    Traceback (most recent call last):
    lacuner.errors.ConfigError: a threshold must be between 0 and 1, not 1.5
    """
    if threshold is not None and not 0 < threshold < 1:
        raise ConfigError(f"a threshold must be between 0 and 1, not {threshold}")
