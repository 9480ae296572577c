"""The entity ratio: which share of the words belongs to entities, with an interval and where it comes from.

Recipes that correct for missing labels need it. The best estimate is the share in complete documents of the same kind.
Without any there are three other estimates, from weak labels and text. Each function returns None if its data do not
suffice.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from lacuner.corpus.words import words_of, words_touching
from lacuner.data import Document, Span, labels_of, sort_spans

MIN_ENTITIES = 20
"""Minimum number of entities in complete documents for an estimate from them."""
NORMAL = 1.645
"""Standard errors on either side of a 90 % interval."""
CLUSTERING = 2.0
"""Factor on standard errors, because neighbouring sentences are alike, and which are neighbours is unknown.

Between parts of 300 consecutive sentences of a corpus, 90 % of the differences are within 1.645 standard errors times
1.3 (Wikigold), 1.4 (Resume), 1.9 (WNUT-17), 2.0 (BC5CDR) and 3.9 (EC, whose file is not shuffled)."""
MIN_CAPITALS = 0.6
"""Share of the labeled words that begin with a capital letter, from which capitals are used as evidence: 0.81 to 0.92
in Wikigold, WNUT-17 and the demo corpus, 0.12 in BC5CDR, whose entities are chemicals and diseases."""
_ENDS_SENTENCE = frozenset(".!?:\"'`“”„«»…") | {"``", "''"}


@dataclass(frozen=True)
class EntityRatio:
    """The share of words that belong to entities, with a 90 % interval.

    >>> EntityRatio(0.1, 0.08, 0.12, "dev", {"PER": 0.1}).describe()
    '10.0 % of the words belong to entities (8.0 to 12.0 %, from dev)'
    """

    value: float
    low: float
    high: float
    source: str
    """Where it comes from: `dev`, `gold`, `hidden names`, `label counts`, `capitals`, or `given`."""
    by_label: Mapping[str, float]
    """The share of each label; they add up to `value`."""

    def describe(self) -> str:
        """The ratio, its interval and its source, as a sentence without full stop."""
        interval = "given" if self.source == "given" else f"{_percent(self.low, self.high)}, from {self.source}"
        return f"{_percent(self.value)} of the words belong to entities ({interval})"


def _percent(*shares: float) -> str:
    return " to ".join(f"{100 * share:.1f}" for share in shares) + " %"


def entity_ratio(docs: Iterable[Document], labels: Collection[str]) -> float:
    """The share of words that belong to entities with one of these labels.

    >>> from lacuner.data import Span
    >>> entity_ratio([Document("1", "Mara left Halden .", spans=(Span(0, 4, "PER"), Span(10, 16, "LOC")))], ["PER"])
    0.25
    """
    words = inside = 0
    for doc in docs:
        words += len(words_of(doc))
        inside += _count_entity_words(doc, labels).total()
    return inside / max(words, 1)


def entity_ratios(docs: Iterable[Document], labels: Iterable[str]) -> dict[str, float]:
    """The share of words that belong to entities of each label.

    >>> from lacuner.data import Span
    >>> entity_ratios([Document("1", "Mara left Halden .", spans=(Span(0, 4, "PER"), Span(10, 16, "LOC")))], ["PER"])
    {'PER': 0.25}
    """
    words, counts = 0, dict.fromkeys(labels, 0)
    for doc in docs:
        words += len(words_of(doc))
        for label, new in _new_words(doc, [span for span in doc.spans if span.label in counts], by_label=True):
            counts[label] += len(new)
    return {label: count / max(words, 1) for label, count in counts.items()}


def _count_entity_words(doc: Document, labels: Collection[str]) -> Counter[str]:
    """Number of words in entities of each label; a word in several entities counts for the first."""
    counts = Counter[str]()
    for label, words in _new_words(doc, [span for span in doc.spans if span.label in labels]):
        counts[label] += len(words)
    return counts


def _new_words(doc: Document, spans: Iterable[Span], by_label: bool = False) -> Iterator[tuple[str, range]]:
    """The label of each span, and its words that are not part of an earlier one: nested spans share most of theirs.

    `by_label`: of an earlier one with the same label.
    """
    own, furthest = words_of(doc), Counter[str]()
    for span in sort_spans(spans):
        key = span.label if by_label else ""
        words = range(*words_touching(own, span.start, span.end))
        if words.stop > furthest[key]:
            yield span.label, range(max(words.start, furthest[key]), words.stop)
            furthest[key] = words.stop


def _add_up(counts: Iterable[Counter[str]]) -> Counter[str]:
    """The sum of many counters; `sum` would copy it each time."""
    total = Counter[str]()
    for count in counts:
        total.update(count)
    return total


def entity_width(docs: Iterable[Document]) -> float | None:
    """Mean number of words of an entity; None if there is none.

    >>> from lacuner.data import Span
    >>> entity_width([Document("1", "Mara Teel left Halden", spans=(Span(0, 9, "PER"), Span(15, 21, "LOC")))])
    1.5
    """
    entities = words = 0
    for doc in docs:
        own = words_of(doc)
        entities += len(doc.spans)
        words += sum(len(range(*words_touching(own, span.start, span.end))) for span in doc.spans)
    return words / entities if entities else None


def estimate_entity_ratio(
    weak: Sequence[Document], gold: Sequence[Document] | None = None, dev: Sequence[Document] | None = None
) -> EntityRatio | None:
    """What can be told without training: from gold and dev, or else from capital letters.

    Incomplete documents of gold and dev do not count, nor do documents of dev whose text is also in weak.
    """
    texts = {doc.text for doc in weak} if dev else set()
    parts = {
        "gold": [doc for doc in gold or () if doc.complete is not False],
        "dev": [doc for doc in dev or () if doc.complete is not False and doc.text not in texts],
    }
    source = " and ".join(name for name, docs in parts.items() if docs)
    ratio = ratio_from_complete(weak, [*parts["gold"], *parts["dev"]], source) if source else None
    return ratio_from_capitals(weak) if ratio is None else ratio


def ratio_from_complete(
    weak: Sequence[Document], complete: Sequence[Document], source: str = "dev"
) -> EntityRatio | None:
    """The ratio in complete documents, if they are of the same kind as the weak ones.

    The interval is that of the weak texts: it allows for the chance in both. A label that the complete documents lack
    gets its share in the weak labels, divided by the share of the other labels that are there.

    >>> from lacuner.data import Span
    >>> doc = Document("1", "Mara left Halden .", spans=(Span(0, 4, "PER"), Span(10, 16, "LOC")))
    >>> ratio_from_complete([doc], 20 * [doc]).value
    0.5
    """
    labels = set(labels_of(weak))
    counts = [_count_entity_words(doc, labels) for doc in complete]
    entities = sum(span.label in labels for doc in complete for span in doc.spans)
    lengths = np.array([len(words_of(doc)) for doc in complete], dtype=float)
    if entities < MIN_ENTITIES or not lengths.sum():
        return None
    totals = _add_up(counts)
    words = float(lengths.sum())
    by_label = {label: totals[label] / words for label in sorted(labels) if totals[label]}
    value = sum(by_label.values())
    residuals = np.array([count.total() for count in counts]) - value * lengths
    weak_words = sum(len(words_of(doc)) for doc in weak)
    scale = len(counts) / max(len(counts) - 1, 1) * (1 + words / max(weak_words, 1))
    error = CLUSTERING * sqrt(float((residuals**2).sum()) * scale) / words
    by_label |= _ratios_of_other_labels(weak, by_label)
    whole = sum(by_label.values())
    low, high = value - NORMAL * error, value + NORMAL * error
    factor = whole / value
    return EntityRatio(whole, max(low, 0.0) * factor, min(high * factor, 1.0), source, by_label)


def _ratios_of_other_labels(weak: Sequence[Document], by_label: Mapping[str, float]) -> dict[str, float]:
    """Ratios of the weak documents' other labels, if as large a share of them is labeled."""
    if not (others := set(labels_of(weak)) - set(by_label)):
        return {}
    labeled = entity_ratios(weak, (*by_label, *sorted(others)))
    factor = sum(by_label.values()) / max(sum(labeled[label] for label in by_label), 1e-9)
    return {label: labeled[label] * max(factor, 1.0) for label in sorted(others)}


def ratio_from_capitals(weak: Sequence[Document]) -> EntityRatio | None:
    """The ratio that capital letters inside sentences allow, for text in which most labeled words have one.

    The lower limit is the share of the labeled words, the upper one that of all capitalised words, divided by the share
    of labeled words that are capitalised. The estimate is their geometric mean. Labels have their shares of the labeled
    words.
    """
    labels = set(labels_of(weak))
    capitals = labeled_capitals = labeled = words = 0
    for doc in weak:
        own = words_of(doc)
        inside = {at for _, words_of_span in _new_words(doc, doc.spans) for at in words_of_span}
        for at in range(1, len(own)):
            start, end = own[at]
            if doc.text[slice(*own[at - 1])] in _ENDS_SENTENCE:
                continue
            is_capital = doc.text[start:end][:1].isupper()
            words += 1
            capitals += is_capital
            labeled += at in inside
            labeled_capitals += is_capital and at in inside
    if labeled < MIN_ENTITIES or labeled_capitals < MIN_CAPITALS * labeled:
        return None
    lowest, highest = labeled / words, min(capitals / labeled_capitals * labeled / words, 1.0)
    value = sqrt(lowest * highest)
    return EntityRatio(value, lowest, highest, "capitals", share_out(weak, labels, value))


def share_out(weak: Sequence[Document], labels: Collection[str], value: float) -> dict[str, float]:
    """A ratio divided among the labels as the labeled words are.

    >>> from lacuner.data import Span
    >>> doc = Document("1", "Mara Teel left Halden", spans=(Span(0, 9, "PER"), Span(15, 21, "LOC")))
    >>> {label: round(share, 2) for label, share in share_out([doc], ["LOC", "PER"], 0.3).items()}
    {'LOC': 0.1, 'PER': 0.2}
    """
    counts = _add_up(_count_entity_words(doc, labels) for doc in weak)
    return {label: value * counts[label] / max(counts.total(), 1) for label in sorted(labels)}
