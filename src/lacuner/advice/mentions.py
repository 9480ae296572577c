"""Mentions of labeled names: what label, if any, the same name has elsewhere.

A *name* is the text of a labeled span. Every statistic looks at one label and the other mentions of its name, and is a
mean over labels. A label is never compared with itself, so names that occur once contribute nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import fsum, sqrt
from typing import NamedTuple

from lacuner.annotate.gazetteer.entries import MAX_SURFACE, Entry
from lacuner.annotate.matching.matcher import Matcher
from lacuner.corpus.intervals import IntervalSet
from lacuner.data import Document, sort_spans

LabelCounts = Mapping[str, Counter[str]]
"""How often each name has each label."""
UNLABELED = ""
"""The label of a mention that has none."""


class Share(NamedTuple):
    """A mean between 0 and 1, and the number of labels that it is based on."""

    value: float
    of: int


def count_labels(docs: Iterable[Document]) -> LabelCounts:
    """The labels of each labeled name; what is longer than an entry of a gazetteer may be is no name."""
    counts: dict[str, Counter[str]] = {}
    for doc in docs:
        for span in doc.spans:
            if span.end - span.start <= MAX_SURFACE:
                counts.setdefault(doc.text[span.start : span.end], Counter())[span.label] += 1
    return counts


def count_mentions(names: Iterable[str], docs: Iterable[Document]) -> LabelCounts:
    """The labels of all mentions of the names, `UNLABELED` included.

    Mentions inside a longer labeled span are not counted (the `York` of `New York`), nor are unlabeled mentions that
    overlap an unsure or rejected span.
    """
    counts: dict[str, Counter[str]] = {name: Counter() for name in sorted(set(names))}
    matcher = Matcher([Entry(name, UNLABELED) for name in counts], case="exact")
    for doc in docs:
        labels = {(span.start, span.end): span.label for span in sort_spans(doc.spans)}
        for (start, end), label in labels.items():
            if (name := doc.text[start:end]) in counts:
                counts[name][label] += 1
        labeled, excluded = IntervalSet(labels), IntervalSet(span[:2] for span in (*doc.unsure, *doc.rejected))
        for start, end in _places(matcher, doc):
            known = labeled.covers(start, end) or excluded.overlaps(start, end)
            if (name := doc.text[start:end]) in counts and not known:
                counts[name][UNLABELED] += 1
    return counts


def _places(matcher: Matcher, doc: Document) -> Iterator[tuple[int, int]]:
    return ((start, end) for _, start, end in matcher.hits(doc.text, doc.words))


def unlabeled_share(mentions: LabelCounts) -> Share | None:
    """Share of the other mentions of a labeled name that have no label.

    If every mention loses its label with the same probability, this estimates that probability; it is slightly too
    high where names are also ordinary words. It cannot see names of which no mention is labeled.
    """
    return _share_of_others(mentions, lambda counts, times: counts[UNLABELED])


def conflicting_share(labels: LabelCounts) -> Share | None:
    """Share of the other labels of a name that are of another type."""
    return _share_of_others(labels, lambda counts, times: counts.total() - times)


def self_agreement(mentions: LabelCounts) -> Share | None:
    """Share of the other mentions of a labeled name that have the same label."""
    return _share_of_others(mentions, lambda counts, times: times - 1)


def _share_of_others(names: LabelCounts, count: Callable[[Counter[str], int], int]) -> Share | None:
    """Mean over labels of the share of other mentions that `count` selects, given a name's counts and the label's."""
    rows = [
        (times, count(counts, times) / (counts.total() - 1))
        for counts in names.values()
        if counts.total() > 1
        for label, times in counts.items()
        if label != UNLABELED
    ]
    return _mean(rows)


def agreement(labels: LabelCounts, mentions: LabelCounts) -> Share | None:
    """Share of the mentions of a labeled name, in other documents, that have the same label."""
    rows = [
        (times, mentions[name][label] / mentions[name].total())
        for name, counts in labels.items()
        if name in mentions and mentions[name].total()
        for label, times in counts.items()
    ]
    return _mean(rows)


def count_boundaries(names: Iterable[str], docs: Iterable[Document]) -> Counter[str]:
    """Compare labeled spans with mentions of the names.

    Counts all spans (`labels`), those at the boundaries of a mention (`same`), and others that overlap one (`other`).
    """
    names = set(names)
    matcher = Matcher([Entry(name, UNLABELED) for name in sorted(names)], case="exact")
    counts: Counter[str] = Counter()
    for doc in docs:
        places = [place for place in _places(matcher, doc) if doc.text[slice(*place)] in names]
        exact, intervals = set(places), IntervalSet(places)
        for span in doc.spans:
            counts["labels"] += 1
            if span[:2] in exact:
                counts["same"] += 1
            elif intervals.overlaps(span.start, span.end):
                counts["other"] += 1
    return counts


def boundary_precision(docs: Sequence[Document], complete: Iterable[Document]) -> Share | None:
    """Share of labels with correct boundaries, estimated from the names of complete documents.

    A label that overlaps a known name at other boundaries is either wrong or a different name (`New York Times`). How
    often a different name overlaps a known one, `overlap_rate`, is measured between two halves of the complete
    documents. Let a share `wrong` of the labels have wrong boundaries, equally for known and other names. Then there
    are `known = same / (1 - wrong)` labels of known names among all `labels`, and

        other = overlap_rate * (labels - known) + wrong * known

    which is solved for `1 - wrong`. `overlap_rate` is taken two standard errors too high, in favour of the labels.
    """
    ordered = sorted(complete, key=lambda doc: (doc.text, repr(doc.spans)))
    halves = ordered[::2], ordered[1::2]
    reference: Counter[str] = Counter()
    weak: Counter[str] = Counter()
    for half, rest in (halves, halves[::-1]):
        names = count_labels(half)
        reference += count_boundaries(names, rest)
        weak += count_boundaries(names, docs)
    other_names = reference["labels"] - reference["same"]
    if not other_names or not weak["same"]:
        return None
    overlap_rate = reference["other"] / other_names
    overlap_rate += 2 * sqrt(overlap_rate * (1 - overlap_rate) / other_names)
    explained = weak["same"] + weak["other"] - overlap_rate * weak["labels"]
    correct = weak["same"] * (1 - overlap_rate) / explained if overlap_rate < 1 and explained > 0 else 1.0
    return Share(min(correct, 1.0), min(weak["same"] + weak["other"], other_names))


def _mean(rows: list[tuple[int, float]]) -> Share | None:
    """The weighted mean of (weight, value) rows, independent of their order."""
    total = sum(weight for weight, _ in rows)
    return Share(fsum(weight * value for weight, value in rows) / total, total) if total else None
