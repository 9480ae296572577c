"""Cross-fitting over gazetteer entries: hide a fifth of the names from a model, and see what it predicts for them.

To a model, labels that are missing because the gazetteer lacks a name look like labels that were hidden from it. So:

1. The hidden names show which share of the missing entities a model finds at each decision threshold, without any gold.
2. Span classifiers that were trained for few epochs are roughly calibrated: at a threshold of 0.5 about as many of the
   predictions are wrong as entities are missed. So the number of predictions where nothing is labeled estimates the
   number of missing entities, and the share of hidden names that are found estimates precision and recall alike. With
   half of a gazetteer (`tiny-en` and `tiny-zh`, seed 11) it gave about 850, 750, 350 and 740 missing entities on the
   training texts of bc5cdr, wikigold, ec and resume; there were 946, 813, 508 and 1,438.
3. A model that has learned too many missing entities as negatives finds few names above 0.5. The threshold is then
   lowered until most of the hidden names that it can find at all are found, unless most of what it finds of them has
   wrong boundaries: such predictions would do more harm than good (250 demo sentences, `tiny`: F1 48.5 instead of 51.5
   for the gazetteer alone).
"""

import json
import zlib
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

import numpy as np

from lacuner.atomic import read_regular_file, write_json
from lacuner.corpus.intervals import IntervalSet
from lacuner.corpus.words import count_words
from lacuner.data import Document, Span
from lacuner.errors import explain_damage
from lacuner.evaluate.calibration import SpanCalibration, fit_monotone
from lacuner.evaluate.threshold import THRESHOLDS

FILE = "operating_point.json"
FOLDS = 5
MIN_HIDDEN = 20
"""Minimum number of hidden mentions for choosing a threshold."""
MIN_FOUND = 0.1
"""Share of the hidden mentions that must be found, even with wrong boundaries, to estimate what is missing."""
BALANCED = 0.5
"""Decision threshold at which there are about as many mistakes as missed entities."""
MIN_SHARE = 0.6
"""Share of the hidden mentions found at the lowest threshold that must be found at the chosen one."""
MIN_EXACT = 1 / 3
"""Share of exact ones among the predictions that overlap a hidden mention, for a threshold below `BALANCED`. It is an
upper bound of their precision. Predictions with a precision below half of the F1 lower the F1."""
MAX_LENGTH = 16
"""Number of words from which on predictions count as equally long."""
MAX_ODDS = 1e6
"""Largest length odds that are read from a file."""
LENGTH_PRIOR = 50
"""Predictions of average precision that are added to those of each length: with few mentions the odds stay near 1."""


def entry_fold(surface: str) -> int:
    """The fold of a name, whatever its case and white space.

    >>> entry_fold("Heart  Attack") == entry_fold("heart attack")
    True
    """
    return zlib.crc32(" ".join(surface.casefold().split()).encode("utf-8", "surrogatepass")) % FOLDS


def hide_entries(docs: Iterable[Document], fold: int) -> Iterator[Document]:
    """The documents without the labels of one fold of the names; these become unlabeled text.

    Complete documents stay as they are: what is not labeled in them is a negative.

    >>> from lacuner.data import Span
    >>> doc = Document("1", "Mara left", spans=(Span(0, 4, "PER"),))
    >>> [len(next(hide_entries([doc], fold)).spans) for fold in range(FOLDS)].count(0)
    1
    """
    for doc in docs:
        visible = doc.spans if doc.complete else [s for s in doc.spans if entry_fold(doc.text[s.start : s.end]) != fold]
        yield replace(doc, spans=tuple(visible))


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
    correct_by_length: np.ndarray = field(default_factory=lambda: np.zeros(MAX_LENGTH, dtype=np.int64))
    """At threshold `BALANCED`: the correct ones of 1, 2 ... `MAX_LENGTH` or more words."""
    new_by_length: np.ndarray = field(default_factory=lambda: np.zeros(MAX_LENGTH, dtype=np.int64))
    """The same for predictions where nothing is labeled."""

    def __add__(self, other: "HiddenCounts") -> "HiddenCounts":
        return HiddenCounts(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


def count_hidden(docs: Iterable[Document], predicted: Iterable[Document], fold: int) -> HiddenCounts:
    """Compare a model's predictions with all labels of the documents, those hidden from it included.

    Complete documents do not count: nothing is hidden or missing in them.

    `predicted` has a score on every span, and all spans down to the lowest threshold.
    """
    correct, inexact, new = array("d"), array("d"), array("d")
    correct_by_length, new_by_length = np.zeros((2, MAX_LENGTH), dtype=np.int64)
    hidden = labeled = 0
    for doc, prediction in zip(docs, predicted, strict=True):
        if doc.complete:
            continue
        own = [span for span in doc.spans if entry_fold(doc.text[span.start : span.end]) == fold]
        keys, hidden_places = {span.key for span in own}, IntervalSet(span[:2] for span in own)
        hidden += len(own)
        labeled += len(doc.spans)
        for span in prediction.spans:
            if hidden_places.overlaps(span.start, span.end):
                (correct if span.key in keys else inexact).append(_score(span))
        unlabeled = find_new(doc, prediction.spans)
        new.extend(map(_score, unlabeled))
        _count_lengths(doc, (span for span in prediction.spans if span.key in keys), correct_by_length)
        _count_lengths(doc, unlabeled, new_by_length)
    at_thresholds = (len(scores) - np.searchsorted(np.sort(scores), THRESHOLDS) for scores in (correct, inexact, new))
    lengths = {"correct_by_length": correct_by_length, "new_by_length": new_by_length}
    return HiddenCounts(hidden, labeled, *at_thresholds, **lengths)


def _count_lengths(doc: Document, spans: Iterable[Span], counts: np.ndarray) -> None:
    """Add the probable ones of some predicted spans to the counts of their lengths."""
    for span in spans:
        if _score(span) >= BALANCED:
            counts[min(count_words(doc, span), MAX_LENGTH) - 1] += 1


def find_new(doc: Document, predicted: Iterable[Span]) -> list[Span]:
    """The predictions that overlap no annotation of a document: no label, and nothing ruled out or unsure.

    >>> doc = Document("1", "Mara met Teel.", spans=(Span(0, 4, "PER"),), unsure=(Span(5, 8, ""),))
    >>> [span.start for span in find_new(doc, [Span(0, 8, "PER"), Span(5, 8, "PER"), Span(9, 13, "PER")])]
    [9]
    """
    annotated = IntervalSet(span[:2] for span in (*doc.spans, *doc.rejected, *doc.unsure))
    return [span for span in predicted if not annotated.overlaps(span.start, span.end)]


def _score(span: Span) -> float:
    return 1.0 if span.score is None else span.score


@dataclass(frozen=True)
class OperatingPoint:
    """A decision threshold, and what to expect of one model that adds its predictions to the labels."""

    threshold: float
    """Decision threshold of the models from which names were hidden."""
    missing: float
    """Estimated number of missing entities."""
    new: float
    """Number of predictions where nothing is labeled."""
    recall: float
    """Share of the missing entities that are found."""
    f1: float
    """F1 of labels and predictions together, if all labels are right."""
    labels_f1: float
    """F1 of the labels alone, if all are right."""
    length_odds: tuple[float, ...] = ()
    """`estimate_length_odds`, to rank predictions where nothing is labeled; empty if an earlier version wrote it."""


def write_operating_point(point: OperatingPoint, folder: Path) -> None:
    """Keep an operating point in a run folder."""
    write_json(folder / FILE, asdict(point))


def read_operating_point(folder: Path) -> OperatingPoint | None:
    """The operating point that a recipe left in a run folder, if it did."""
    path = folder / FILE
    if not path.exists():
        return None
    with explain_damage("this is not the operating point of a run", path):
        stored = json.loads(read_regular_file(path))
        stored.setdefault("new", stored["missing"])  # not written by all earlier versions, some of which wrote more
        odds = tuple(stored.setdefault("length_odds", []))
        values = {each.name: stored[each.name] for each in fields(OperatingPoint)} | {"length_odds": odds}
        if not all(isinstance(value, int | float) for name, value in values.items() if name != "length_odds"):
            raise ValueError("not numbers")
        if not all(isinstance(factor, int | float) and 0 < factor <= MAX_ODDS for factor in odds):
            raise ValueError("not odds")
    return OperatingPoint(**values)


def choose_operating_point(counts: HiddenCounts, models: int = 1) -> OperatingPoint | None:
    """The threshold at which there are about as many mistakes as missed entities; None if it cannot be estimated.

    `counts` may be the sum of several `models`, with predictions for documents that they were trained on: for others
    they contain more mistakes, which would count as missing entities. There is no estimate with too few hidden
    mentions, or if too few of them are found.
    """
    if counts.hidden < MIN_HIDDEN:
        return None
    recall = counts.correct / counts.hidden
    if recall.max() < MIN_FOUND:
        return None
    chosen = int(np.flatnonzero((recall >= MIN_SHARE * recall.max()) & (THRESHOLDS <= BALANCED))[-1])
    missing, labeled = float(counts.new[chosen]), counts.labeled
    if counts.correct[chosen] < MIN_EXACT * (counts.correct[chosen] + counts.inexact[chosen]):
        chosen = int(np.flatnonzero(THRESHOLDS <= BALANCED)[-1])
    new, share = float(counts.new[chosen]), float(recall[chosen])
    return OperatingPoint(
        threshold=float(THRESHOLDS[chosen]),
        missing=missing / models,
        new=new / models,
        recall=share,
        f1=2 * (labeled + missing * share) / (2 * labeled + new + missing),
        labels_f1=2 * labeled / (2 * labeled + missing),
        length_odds=tuple(estimate_length_odds(counts).tolist()),
    )


def estimate_length_odds(counts: HiddenCounts) -> np.ndarray:
    """For 1, 2 ... `MAX_LENGTH` words: a factor on the odds that a prediction where nothing is labeled is right.

    Hidden names are like missing ones. So the share of a length among the hidden mentions that are found is its share
    among the right predictions.

    >>> lengths = np.zeros((2, MAX_LENGTH), dtype=int)
    >>> lengths[:, :2] = [[50, 50], [300, 100]]  # half of the hidden names found have two words, a quarter of the new
    >>> counts = HiddenCounts(200, 500, *np.zeros((3, len(THRESHOLDS))), *lengths)
    >>> estimate_length_odds(counts)[:3].round(2).tolist()
    [0.81, 1.44, 1.0]
    """
    correct, new = counts.correct_by_length, counts.new_by_length
    expected = (new.sum() * correct + LENGTH_PRIOR * new) / (correct.sum() + LENGTH_PRIOR)
    return np.asarray((expected + LENGTH_PRIOR) / (new + LENGTH_PRIOR))


def calibrate_on_hidden(counts: HiddenCounts, missing: float) -> SpanCalibration | None:
    """Map scores of predictions in unlabeled text to probabilities that they are right, without gold.

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
