"""Scores without a gold corpus: a random sample of documents is labeled completely by a reviewer.

The documents are divided into strata by how uncertain the model is there, and drawn at random within each stratum. From
what the reviewer labels, precision, recall and F1 on all documents are estimated as ratios of weighted totals. Their
variance is linearised; the interval is Wilson's for the effective sample size, which stays sensible near 0 and 1, where
a normal interval has no width.

Reference: Cochran (1977), "Sampling techniques"; Korn and Graubard (1998), "Confidence intervals for proportions with
small expected number of positive counts estimated from survey data".
"""

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from lacuner.data import Document, Span, labels_of
from lacuner.errors import ConfigError
from lacuner.review.decisions import ReviewState, sentence_target
from lacuner.review.progress import wilson_interval
from lacuner.review.queue import ReviewQueue, Sentence

STRATA = 4
MIN_PER_STRATUM = 5
MIN_REVIEWED = 10
"""Documents that must be labeled before anything is estimated."""
_CONFIDENCE = 0.95


def draw_sample(
    docs: Sequence[Document],
    predictions: Sequence[Document],
    size: int,
    *,
    labels: Sequence[str] = (),
    seed: int = 1,
) -> ReviewQueue:
    """A queue of `size` documents to label completely, drawn at random and stratified by the model's uncertainty.

    Documents have distinct ids. Any number of the first sentences is a stratified random sample as well, so a reviewer
    may stop at any time. `labels`: entity types beside those of documents and predictions. Of documents on disk, only
    those that are drawn are kept in memory.

    >>> docs = [Document(str(n), "Mara left") for n in range(40)]
    >>> queue = draw_sample(docs, docs, 10)
    >>> len(queue.sentences), queue.facts["sample"]["strata"]
    (10, [40])
    """
    if not docs:
        raise ConfigError("there are no documents to draw a sample from")
    scores, lengths = _measure(predictions, len(docs))
    strata = _stratify(scores, lengths > 0)
    sizes = np.bincount(strata)
    spans = np.bincount(strata, 1 + lengths)
    # documents with many entities tell more, so they are drawn more often: half by number, half by content
    counts = _allocate(min(size, len(docs)), (sizes / sizes.sum() + spans / spans.sum()) / 2, sizes)
    rng = random.Random(seed)
    drawn: list[tuple[float, int]] = []
    for stratum, count in enumerate(counts.tolist()):
        members = np.flatnonzero(strata == stratum)
        chosen = members[rng.sample(range(len(members)), count)].tolist()
        drawn += [((rank + rng.random()) / count, number) for rank, number in enumerate(chosen)]
    used: dict[str, Document] = {}
    sentences = []
    for _, number in sorted(drawn):
        doc = docs[number]
        used[doc.id] = doc
        score = round(float(scores[number]), 6)
        sentences.append(Sentence(doc.id, score, predictions[number].spans, int(strata[number])))
    facts = {"sample": {"strata": sizes.tolist(), "seed": seed, "documents": len(docs)}}
    types = sorted({*labels, *labels_of(docs), *labels_of(predictions)})
    return ReviewQueue((), used, tuple(sentences), tuple(types), facts)


def _measure(predictions: Iterable[Document], count: int) -> tuple[np.ndarray, np.ndarray]:
    """The uncertainty of each prediction, and its number of spans."""
    scores, lengths = np.zeros(count), np.zeros(count, dtype=np.int64)
    for number, doc in enumerate(predictions):
        scores[number], lengths[number] = _uncertainty(doc.spans), len(doc.spans)
    return scores, lengths


def _uncertainty(spans: Sequence[Span]) -> float:
    return sum(4 * score * (1 - score) for score in (1.0 if span.score is None else span.score for span in spans))


def _stratify(scores: np.ndarray, has_spans: np.ndarray) -> np.ndarray:
    """The stratum of each document: no prediction, then equal shares by uncertainty; strata are never tiny."""
    strata = np.zeros(len(scores), dtype=int)
    predicted = np.flatnonzero(has_spans)
    order = predicted[np.argsort(scores[predicted], kind="stable")]
    parts = min(STRATA - 1, len(order) // (4 * MIN_PER_STRATUM))
    for number, part in enumerate(np.array_split(order, parts) if parts else [], 1):
        strata[part] = number
    _, numbers = np.unique(strata, return_inverse=True)  # without empty strata
    return np.asarray(numbers.reshape(-1))


def _allocate(size: int, shares: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """How many documents to draw from each stratum: by share, but a few from each and never more than there are."""
    counts = np.minimum(sizes, min(MIN_PER_STRATUM, size // len(sizes)))
    while counts.sum() < size:
        lacking = np.where(counts < sizes, shares * size - counts, -np.inf)
        counts[int(lacking.argmax())] += 1
    return np.asarray(counts)


@dataclass(frozen=True)
class Estimate:
    """An estimated ratio with its 95 % confidence interval."""

    value: float
    low: float
    high: float
    halving: int | None
    """Further documents to label for an interval of half the width; None if that is impossible."""

    def as_json(self) -> dict[str, Any]:
        return {key: round(value, 4) if isinstance(value, float) else value for key, value in vars(self).items()}


@dataclass(frozen=True)
class SampleScores:
    """Estimated scores on all documents that the sample was drawn from."""

    precision: Estimate
    recall: Estimate
    f1: Estimate
    reviewed: int
    """Documents that were labeled."""
    skipped: int
    """Documents that the reviewer skipped: scores assume that they are like the others."""
    left: int
    """Documents of the sample that were not reviewed yet."""
    documents: int
    """Documents that the sample was drawn from."""


def score_sample(queue: ReviewQueue, state: ReviewState, predictions: Mapping[str, Sequence[Span]]) -> SampleScores:
    """Estimate precision, recall and F1 from the decisions on a sample.

    `predictions` are the spans of the model that is evaluated, by document id, for the documents of the queue. It need
    not be the model that the sample was drawn with.
    """
    sample = queue.facts.get("sample")
    if not isinstance(sample, Mapping):
        raise ConfigError("this queue is not a random sample: `lacuner audit sample` draws one")
    rows, strata, skipped = [], [], 0
    for sentence in queue.sentences:
        decision, edit = state.current.get(sentence_target(sentence.doc_id), (None, None))
        if decision is None or edit is None:
            continue
        if not edit.complete:
            skipped += 1
            continue
        gold, predicted = ({span.key for span in spans} for spans in (edit.spans, predictions[sentence.doc_id]))
        rows.append((len(gold & predicted), len(predicted), len(gold)))
        strata.append(sentence.stratum or 0)
    if len(rows) < MIN_REVIEWED:
        needed = MIN_REVIEWED - len(rows)
        raise ConfigError(f"{len(rows)} sentences of the sample are labeled: label at least {needed} more")
    counts, sizes = np.array(rows, dtype=float), np.array(sample["strata"], dtype=float)
    precision, recall, f1 = estimate_scores(counts, np.array(strata), sizes)
    left = len(queue.sentences) - len(rows) - skipped
    return SampleScores(precision, recall, f1, len(rows), skipped, left, int(sample["documents"]))


def estimate_scores(counts: np.ndarray, strata: np.ndarray, sizes: np.ndarray) -> tuple[Estimate, Estimate, Estimate]:
    """Precision, recall and F1 from reviewed documents.

    Arguments:
        counts: correct, predicted and gold spans of each reviewed document, `[documents, 3]`.
        strata: the stratum of each reviewed document, `[documents]`.
        sizes: the number of documents in each stratum, reviewed or not, `[strata]`.

    >>> counts = np.array([[1, 1, 1]] * 15 + [[0, 1, 1]] * 5)
    >>> precision, recall, f1 = estimate_scores(counts, np.zeros(20, dtype=int), np.array([1000]))
    >>> precision.value, round(precision.low, 2), round(precision.high, 2), precision.halving
    (0.75, 0.51, 0.9, 56)
    """
    strata, sizes = _merge_strata(strata, sizes)
    correct, predicted, gold = counts.T
    return (
        _estimate_ratio(correct, predicted, strata, sizes),
        _estimate_ratio(correct, gold, strata, sizes),
        _estimate_ratio(2 * correct, predicted + gold, strata, sizes),
    )


def _merge_strata(strata: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Merge each stratum with fewer than two reviewed documents, which has no variance, into a neighbour."""
    strata, sizes = strata.copy(), sizes.astype(float).copy()
    while len(sizes) > 1 and (seen := np.bincount(strata, minlength=len(sizes))).min() < 2:
        small = int(seen.argmin())
        into = small - 1 if small else 1
        sizes[into] += sizes[small]
        strata[strata == small] = into
        strata[strata > small] -= 1
        sizes = np.delete(sizes, small)
    return strata, sizes


def _estimate_ratio(part: np.ndarray, whole: np.ndarray, strata: np.ndarray, sizes: np.ndarray) -> Estimate:
    reviewed = np.bincount(strata, minlength=len(sizes))
    weights = (sizes / reviewed)[strata]
    total = float((weights * whole).sum())
    if not total:
        return Estimate(0.0, 0.0, 1.0, None)
    value = float((weights * part).sum()) / total
    residuals = part - value * whole
    variance = 0.0
    for stratum, (size, count) in enumerate(zip(sizes.tolist(), reviewed.tolist(), strict=True)):
        own = residuals[strata == stratum]
        spread = float(own.var(ddof=1)) if count > 1 else float(residuals.var(ddof=1))
        variance += max(1 - count / size, 0.0) * size**2 / count * spread
    variance /= total**2
    # without any mistake in the sample the variance is 0: take that of independent spans
    spans = float(whole.sum())
    effective = value * (1 - value) / variance if variance > 0 and 0 < value < 1 else spans
    low, high = _wilson(value, min(effective, spans * 4), len(part) - len(sizes))
    count, population = len(part), float(sizes.sum())
    quarter = (1 / count - 1 / population) / 4
    halving = math.ceil(1 / (quarter + 1 / population) - 1e-9) - count if quarter > 0 else None
    return Estimate(value, low, high, halving)


def _wilson(value: float, size: float, freedom: int) -> tuple[float, float]:
    """Wilson's interval for a proportion with an effective sample size, widened for few degrees of freedom."""
    z = NormalDist().inv_cdf((1 + _CONFIDENCE) / 2)
    z *= 1 + (z**2 + 1) / (4 * max(freedom, 1))  # first term of the expansion of Student's quantile
    return wilson_interval(value, size, z)
