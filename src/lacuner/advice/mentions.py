"""Names: the words of labelled spans, and what becomes of the same words where they stand elsewhere.

Every figure here asks, of one label, about other mentions of its name, and is a mean over labels. A label is never
compared with itself, so that names that are mentioned once say nothing instead of saying that all is well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import fsum, sqrt
from typing import NamedTuple

from lacuner.annotate.gazetteer.entries import Entry
from lacuner.annotate.intervals import IntervalSet
from lacuner.annotate.matching.matcher import Matcher
from lacuner.data import Document, sort_spans

Names = dict[str, Counter[str]]
"""How often each name has each label."""
PLAIN = ""
"""The label of a mention that has none."""


class Share(NamedTuple):
    """A mean between 0 and 1, and the number of labels that it was taken over."""

    value: float
    of: int


def labelled_names(docs: Iterable[Document]) -> Names:
    """The names of some documents."""
    names: Names = {}
    for doc in docs:
        for span in doc.spans:
            names.setdefault(doc.text[span.start : span.end], Counter())[span.label] += 1
    return names


def mentions(names: Iterable[str], docs: Iterable[Document]) -> Names:
    """How often each name is mentioned in the documents, and under which label.

    A mention inside a longer label is none of the name's own (the `York` of `New York`), and nobody knows of one that
    touches what is unsure or ruled out.
    """
    wanted = sorted(set(names))
    found: Names = {name: Counter() for name in wanted}
    matcher = Matcher([Entry(name, PLAIN) for name in wanted], case="exact")
    for doc in docs:
        labels = {(span.start, span.end): span.label for span in sort_spans(doc.spans)}
        for (start, end), label in labels.items():
            if (name := doc.text[start:end]) in found:
                found[name][label] += 1
        labelled, unknown = IntervalSet(labels), IntervalSet(span[:2] for span in (*doc.unsure, *doc.rejected))
        for start, end in _places(matcher, doc):
            inside, touched = labelled.covers(start, end), unknown.overlaps(start, end)
            if (name := doc.text[start:end]) in found and not inside and not touched:
                found[name][PLAIN] += 1
    return found


def _places(matcher: Matcher, doc: Document) -> Iterator[tuple[int, int]]:
    return ((start, end) for _, start, end in matcher.hits(doc.text, doc.words))


def forgotten(found: Mapping[str, Counter[str]]) -> Share | None:
    """Of the other mentions of a labelled name, the share without a label.

    Where every mention of an entity loses its label with the same probability, this is that probability, a little more
    where names are also plain words. Where names are missing as a whole, it says nothing about them.
    """
    rows = [
        (labelled, votes[PLAIN] / (votes.total() - 1))
        for votes in found.values()
        if votes.total() > 1 and (labelled := votes.total() - votes[PLAIN])
    ]
    return _mean(rows)


def contradicting(names: Mapping[str, Counter[str]]) -> Share | None:
    """Of the other labels of a name, the share that are of another type."""
    rows = [
        (times, (votes.total() - times) / (votes.total() - 1))
        for votes in names.values()
        if votes.total() > 1
        for times in votes.values()
    ]
    return _mean(rows)


def agreement(names: Mapping[str, Counter[str]], found: Mapping[str, Counter[str]]) -> Share | None:
    """How often a mention, elsewhere, of a labelled name has the same label: a mean over the labels."""
    rows = [
        (times, found[name][label] / found[name].total())
        for name, votes in names.items()
        if name in found and found[name].total()
        for label, times in votes.items()
    ]
    return _mean(rows)


def own_agreement(found: Mapping[str, Counter[str]]) -> Share | None:
    """The same for documents and their own names: what labels without any mistake would reach."""
    rows = [
        (times, (times - 1) / (votes.total() - 1))
        for votes in found.values()
        if votes.total() > 1
        for label, times in votes.items()
        if label != PLAIN
    ]
    return _mean(rows)


def bounds(names: Iterable[str], docs: Iterable[Document]) -> Counter[str]:
    """How many labels documents have, how many begin and end as a mention of a name does (`same`), and how many others
    share words with one (`other`)."""
    wanted = set(names)
    matcher = Matcher([Entry(name, PLAIN) for name in sorted(wanted)], case="exact")
    found: Counter[str] = Counter()
    for doc in docs:
        places = [place for place in _places(matcher, doc) if doc.text[slice(*place)] in wanted]
        exact, reach = set(places), IntervalSet(places)
        for span in doc.spans:
            found["labels"] += 1
            if span[:2] in exact:
                found["same"] += 1
            elif reach.overlaps(span.start, span.end):
                found["other"] += 1
    return found


def well_bounded(docs: Sequence[Document], complete: Iterable[Document]) -> Share | None:
    """How many labels begin and end where they should, by the names of complete documents.

    A label that is a part of such a name, or such a name and a word besides, is wrong, or a longer or shorter name of
    its own. How many labels of unknown names are the latter, one half of the complete documents tells of the other. If
    that is r, and of n labels s are known names and d others share words with one, w being the share of wrong bounds,
    which befall known names as often as unknown ones, then d = r (n - s / (1 - w)) + w s / (1 - w). Labels have the
    benefit of the doubt: r is what it may be at most, by two standard errors.
    """
    ordered = sorted(complete, key=lambda doc: (doc.text, repr(doc.spans)))
    halves = ordered[::2], ordered[1::2]
    theirs: Counter[str] = Counter()
    its: Counter[str] = Counter()
    for half, rest in (halves, halves[::-1]):
        names = labelled_names(half)
        theirs += bounds(names, rest)
        its += bounds(names, docs)
    unknown = theirs["labels"] - theirs["same"]
    if not unknown or not its["same"]:
        return None
    rate = theirs["other"] / unknown
    rate += 2 * sqrt(rate * (1 - rate) / unknown)
    total = its["same"] + its["other"] - rate * its["labels"]
    right = its["same"] * (1 - rate) / total if rate < 1 and total > 0 else 1.0
    return Share(min(right, 1.0), min(its["same"] + its["other"], unknown))


def _mean(rows: list[tuple[int, float]]) -> Share | None:
    """A weighted mean that does not depend on the order of its rows."""
    total = sum(weight for weight, _ in rows)
    return Share(fsum(weight * value for weight, value in rows) / total, total) if total else None
