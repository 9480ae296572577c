"""Cross-fitting over gazetteer entries: hide a fifth of the names from a model, and see what it predicts for them.

To a model, labels that are missing because the gazetteer lacks a name look like labels that were hidden from it. So:

1. The hidden names show which share of the missing entities a model finds at each decision threshold, without any gold.
2. Span classifiers that were trained for few epochs are roughly calibrated: at a threshold of 0.5 about as many of the
   predictions are wrong as entities are missed. So the number of predictions where nothing is labeled estimates the
   number of missing entities, and the share of hidden names that are found estimates precision and recall alike. With
   half of a gazetteer (`tiny-en` and `tiny-zh`, seed 11) it gave about 850, 750, 350 and 740 missing entities on the
   training texts of bc5cdr, wikigold, ec and resume; there were 946, 813, 508 and 1,438.
3. A model that has learned too many missing entities as negatives finds few names above 0.5. The threshold is then
   lowered until most of the hidden names that it can find at all are found.
"""

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np

from lacuner.atomic import atomic_write
from lacuner.data import Document
from lacuner.errors import ModelFileError
from lacuner.evaluate.calibration import SpanCalibration, fit_monotone
from lacuner.evaluate.threshold import THRESHOLDS

FILE = "operating_point.json"
FOLDS = 5
MIN_HIDDEN = 20
"""Minimum number of hidden mentions for choosing a threshold."""
MIN_FOUND = 0.1
"""Share of the hidden mentions that must be found, rightly or with wrong boundaries, to estimate what is missing."""
BALANCED = 0.5
"""Decision threshold at which mistakes and missed entities are about equally many."""
MIN_SHARE = 0.6
"""Share of the hidden mentions found at the lowest threshold that must be found at the chosen one."""


def entry_fold(surface: str) -> int:
    """The fold of a name, whatever its case and white space.

    >>> entry_fold("Heart  Attack") == entry_fold("heart attack")
    True
    """
    return zlib.crc32(" ".join(surface.casefold().split()).encode("utf-8", "surrogatepass")) % FOLDS


def hide_entries(docs: Iterable[Document], fold: int) -> list[Document]:
    """The documents without the labels of one fold of the names; these become unlabeled text.

    Complete documents stay as they are: what is not labeled in them is a negative.

    >>> from lacuner.data import Span
    >>> doc = Document("1", "Mara left", spans=(Span(0, 4, "PER"),))
    >>> [len(hide_entries([doc], fold)[0].spans) for fold in range(FOLDS)].count(0)
    1
    """
    return [
        doc
        if doc.complete
        else replace(doc, spans=tuple(s for s in doc.spans if entry_fold(doc.text[s.start : s.end]) != fold))
        for doc in docs
    ]


@dataclass(frozen=True)
class HiddenCounts:
    """What a model predicted at each of `THRESHOLDS`; add the counts of several models with `+`."""

    hidden: int
    """Mentions of hidden names."""
    labeled: int
    """Labels in the documents, hidden ones included."""
    correct: np.ndarray
    """Hidden mentions that were predicted with the right boundaries and label."""
    inexact: np.ndarray
    """Other predictions that overlap a hidden mention."""
    new: np.ndarray
    """Predictions where nothing is labeled."""

    def __add__(self, other: "HiddenCounts") -> "HiddenCounts":
        return HiddenCounts(
            self.hidden + other.hidden,
            self.labeled + other.labeled,
            self.correct + other.correct,
            self.inexact + other.inexact,
            self.new + other.new,
        )


def count_hidden(docs: Sequence[Document], predicted: Iterable[Document], fold: int) -> HiddenCounts:
    """Compare a model's predictions with all labels of the documents, those hidden from it included.

    Complete documents do not count: nothing is hidden or missing in them.

    `predicted` has a score on every span, and all spans down to the lowest threshold.
    """
    correct: list[float] = []
    inexact: list[float] = []
    new: list[float] = []
    hidden = 0
    pairs = [(doc, prediction) for doc, prediction in zip(docs, predicted, strict=True) if not doc.complete]
    for doc, prediction in pairs:
        own = [span for span in doc.spans if entry_fold(doc.text[span.start : span.end]) == fold]
        keys = {span.key for span in own}
        hidden += len(own)
        for span in prediction.spans:
            score = 1.0 if span.score is None else span.score
            if span.key in keys:
                correct.append(score)
            elif any(span.overlaps(other) for other in own):
                inexact.append(score)
            elif not any(span.overlaps(other) for other in (*doc.spans, *doc.rejected, *doc.unsure)):
                new.append(score)
    counts = [len(scores) - np.searchsorted(np.sort(scores), THRESHOLDS) for scores in (correct, inexact, new)]
    return HiddenCounts(hidden, sum(len(doc.spans) for doc, _ in pairs), *counts)


@dataclass(frozen=True)
class OperatingPoint:
    """A decision threshold, and what to expect of one model that adds its predictions to the labels."""

    threshold: float
    """Of the models from which names were hidden."""
    missing: float
    """Estimated number of missing entities: the predictions where nothing is labeled."""
    recall: float
    """Share of the missing entities that are found, and of the predictions that are right."""
    f1: float
    """F1 of labels and predictions together, if all labels are right."""
    labels_f1: float
    """F1 of the labels alone, if all are right."""


def write_operating_point(point: OperatingPoint, folder: Path) -> None:
    """Keep an operating point in a run folder."""
    with atomic_write(folder / FILE) as stream:
        stream.write(json.dumps(asdict(point), indent=1).encode())


def read_operating_point(folder: Path) -> OperatingPoint | None:
    """The operating point that a recipe left in a run folder, if it did."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        stored = json.loads(path.read_bytes())
        values = {field.name: stored[field.name] for field in fields(OperatingPoint)}  # earlier versions wrote more
        if not all(isinstance(value, int | float) for value in values.values()):
            raise ValueError("not numbers")
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise ModelFileError("this is not the operating point of a run", file=path) from error
    return OperatingPoint(**values)


def choose_operating_point(counts: HiddenCounts, models: int = 1) -> OperatingPoint | None:
    """The threshold at which mistakes and missed entities are about equally many; None if it cannot be estimated.

    `counts` may be the sum of several `models`. There is no estimate with too few hidden mentions, or if too few of
    them are found.
    """
    if counts.hidden < MIN_HIDDEN:
        return None
    recall = counts.correct / counts.hidden
    if recall.max() < MIN_FOUND:
        return None
    chosen = int(np.flatnonzero((recall >= MIN_SHARE * recall.max()) & (THRESHOLDS <= BALANCED))[-1])
    missing, share, labeled = float(counts.new[chosen]), float(recall[chosen]), counts.labeled
    return OperatingPoint(
        threshold=float(THRESHOLDS[chosen]),
        missing=missing / models,
        recall=share,
        f1=(labeled + missing * share) / (labeled + missing),
        labels_f1=2 * labeled / (2 * labeled + missing),
    )


def estimate_missing(counts: HiddenCounts) -> float | None:
    """Estimated number of missing entities; None if there are too few hidden mentions, or too few are found.

    The predictions must be those of models for documents that they were trained on: for other documents they contain
    more mistakes, which would count as missing entities.
    """
    if counts.hidden < MIN_HIDDEN:
        return None
    found = (counts.correct + counts.inexact) / counts.hidden
    at = int(np.argmin(np.abs(found - found.max() / 2)))
    if found[at] < MIN_FOUND / 2 or not counts.new[at]:
        return None
    return float(counts.new[at] / found[at])


def calibrate_on_hidden(counts: HiddenCounts, missing: float) -> SpanCalibration | None:
    """From the score of a prediction where nothing is labeled to the probability that it is right, without gold.

    The share of the hidden mentions that are found with scores between two thresholds, times the number of `missing`
    entities, is the number of right predictions there. `counts` may be of documents that no model was trained on. None
    if there are too few hidden mentions.
    """
    if counts.hidden < MIN_HIDDEN or not counts.new[0]:
        return None
    highest = np.append(THRESHOLDS[1:], 1.0)
    correct, new = (values - np.append(values[1:], 0) for values in (counts.correct, counts.new))
    used = new > 0
    right = np.minimum(missing * correct / counts.hidden, new)[used] / new[used]
    return fit_monotone(((THRESHOLDS + highest) / 2)[used], right, new[used].astype(float))
