"""Build a review queue: evidence for each issue, and the sentences that are most useful to label completely."""

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from lacuner.annotate.gazetteer.entries import Entry
from lacuner.annotate.intervals import IntervalSet
from lacuner.annotate.matching.terms import normalise_surface
from lacuner.audit.issues import LabelIssue, group_issues, new_issue, normalise_space
from lacuner.corpus import words_of
from lacuner.data import Document, Span, labels_of, sort_spans
from lacuner.review.queue import ReviewQueue, Sentence
from lacuner.techniques.label_issues import count_unlabeled, find_unlabeled

MAX_ISSUES = 20_000
MAX_SENTENCES = 500
EXAMPLES = 5
"""Other mentions of the same string that are listed as evidence."""
PROBABLE = 0.2
"""Score from which other occurrences of a missing name are listed, too."""
PREFILLED = 0.5
"""Probability from which a prediction is pre-filled in a sentence."""


def number_equal_ids(docs: Iterable[Document]) -> list[Document]:
    """The documents with distinct ids: the second document with the id `7` gets the id `7 (2)`.

    Several files, or files without ids, may use the same ids. The result depends on the order of the documents only,
    so decisions find their document again.

    >>> [doc.id for doc in number_equal_ids([Document("7", "a"), Document("8", "b"), Document("7", "c")])]
    ['7', '8', '7 (2)']
    """
    docs = list(docs)
    given = {doc.id for doc in docs}
    seen: Counter[str] = Counter()
    numbered = []
    for doc in docs:
        seen[doc.id] += 1
        while seen[doc.id] > 1 and f"{doc.id} ({seen[doc.id]})" in given:
            seen[doc.id] += 1
        numbered.append(doc if seen[doc.id] == 1 else replace(doc, id=f"{doc.id} ({seen[doc.id]})"))
    return numbered


def build_queue(
    docs: Sequence[Document],
    issues: Iterable[LabelIssue],
    sentences: Iterable[Sentence] = (),
    *,
    gazetteer: Iterable[Entry] = (),
    facts: Mapping[str, Any] | None = None,
) -> ReviewQueue:
    """A queue of the most valuable issues, with evidence. Issues of equal strings follow each other.

    The value of a group is its highest probability times the square root of its size: a decision may hold for all equal
    strings, but a frequent string that is hardly ever an entity should not come first. Other occurrences of probable
    names are added at the end of their group (`find_unpredicted`).

    >>> doc = Document("1", "Teel met Mara.", spans=(Span(9, 13, "PER"),))
    >>> queue = build_queue([doc], [new_issue("missing", doc, Span(0, 4, "PER"), (), 0.9)])
    >>> queue.issues[0].evidence["unlabeled"], queue.labels
    (1, ('PER',))
    """
    issues = list(issues)
    groups = sorted(group_issues(issues), key=lambda group: -group.issues[0].score * math.sqrt(len(group.issues)))
    others: defaultdict[tuple[str, ...], list[LabelIssue]] = defaultdict(list)
    for issue in find_unpredicted(docs, issues):
        others[issue.group].append(issue)
    ordered = [issue for group in groups for issue in (*group.issues, *others[group.issues[0].group])][:MAX_ISSUES]
    sentences = tuple(sentences)
    labels = {*labels_of(docs), *(issue.label for issue in ordered)}
    listed = tuple(_add_evidence(docs, ordered, gazetteer))
    return ReviewQueue(listed, {doc.id: doc for doc in docs}, sentences, tuple(sorted(labels)), facts or {})


def find_unpredicted(docs: Sequence[Document], issues: Iterable[LabelIssue]) -> list[LabelIssue]:
    """Further missing issues: unlabeled occurrences of probable missing names that no model has predicted.

    Otherwise a decision for all equal strings would leave them out. Their score is half of that of the name. (BC5CDR,
    800 sentences, seed 1, `tiny-en`: 81 of 229 such occurrences are entities.)

    >>> doc = Document("1", "Teel met Teel.")
    >>> [issue.start for issue in find_unpredicted([doc], [new_issue("missing", doc, Span(0, 4, "PER"), (), 0.9)])]
    [9]
    """
    names: dict[str, LabelIssue] = {}
    taken: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for issue in issues:
        taken[issue.doc_id].append((issue.start, issue.end))
        surface = normalise_space(issue.text)
        if issue.kind == "missing" and issue.score >= max(PROBABLE, names[surface].score if surface in names else 0):
            names[surface] = issue
    found: list[LabelIssue] = []
    incomplete = [doc for doc in docs if not doc.complete]
    for doc, group in groupby(find_unlabeled(incomplete, names), key=lambda occurrence: occurrence[0]):
        closed = IntervalSet([*taken[doc.id], *(span[:2] for span in (*doc.rejected, *doc.unsure))])
        last = 0
        for _, start, end in sorted(group, key=lambda place: (place[1], -place[2])):
            name = names.get(normalise_space(doc.text[start:end]))  # None for another apostrophe or dash
            if name is not None and start >= last and not closed.overlaps(start, end):
                last = end
                span = Span(start, end, name.label)
                found.append(new_issue("missing", doc, span, (), name.score / 2, {"probability": 0.0}))
    return found


def _add_evidence(
    docs: Sequence[Document], issues: Sequence[LabelIssue], gazetteer: Iterable[Entry]
) -> Iterable[LabelIssue]:
    """For each surface string: its labels and mentions elsewhere, unlabeled ones too, and its gazetteer entries."""
    surfaces = {normalise_space(issue.text) for issue in issues}
    labels: defaultdict[str, Counter[str]] = defaultdict(Counter)
    mentions: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for doc in docs:
        for span in doc.spans:
            surface = normalise_space(doc.text[span.start : span.end])
            if surface in surfaces:
                labels[surface][span.label] += 1
                if len(mentions[surface]) < EXAMPLES:
                    place = {"document": doc.id, "start": span.start, "end": span.end, "label": span.label}
                    mentions[surface].append(place | ({"source": span.source} if span.source else {}))
    unlabeled = count_unlabeled(docs, surfaces)
    wanted = {normalise_surface(surface) for surface in surfaces}
    entries: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for entry in gazetteer:
        if (key := normalise_surface(entry.surface)) in wanted:
            entries[key].add((entry.surface, entry.label))
    for issue in issues:
        surface = normalise_space(issue.text)
        own = [{"term": term, "label": label} for term, label in sorted(entries[normalise_surface(surface)])]
        evidence = {
            **issue.evidence,
            "gazetteer": own,
            "labeled": dict(sorted(labels[surface].items())),
            "unlabeled": unlabeled[surface],
            "mentions": mentions[surface],
        }
        yield replace(issue, evidence=evidence)


def useful_sentences(
    docs: Sequence[Document],
    predictions: Sequence[Document],
    calibrate: Callable[[np.ndarray], np.ndarray] | None = None,
    limit: int = MAX_SENTENCES,
) -> list[Sentence]:
    """The next sentences to label completely: uncertain ones that differ from each other, most useful first.

    The uncertainty of a predicted span is `4 p (1 - p)`. A sentence is worth the sum over its unlabeled predictions,
    divided by the square root of its length; but a surface string that occurs in a sentence chosen before counts half,
    after two such sentences a quarter, and so on.

    >>> docs = [Document(str(n), text) for n, text in enumerate(["Teel left", "Teel came", "Mara came"])]
    >>> predicted = [replace(doc, spans=(Span(0, 4, "PER", score),)) for doc, score in zip(docs, (0.5, 0.5, 0.7))]
    >>> [sentence.doc_id for sentence in useful_sentences(docs, predicted)]
    ['0', '2', '1']
    """
    candidates: list[tuple[Document, tuple[Span, ...], dict[str, float]]] = []
    for doc, prediction in zip(docs, predictions, strict=True):
        if doc.complete:
            continue
        free = [span for span in prediction.spans if not any(span.overlaps(other) for other in doc.spans)]
        scores = np.array([span.score if span.score is not None else 1.0 for span in free], dtype=float)
        probs = scores if calibrate is None else calibrate(scores)
        worth: defaultdict[str, float] = defaultdict(float)
        for span, prob in zip(free, probs.tolist(), strict=True):
            worth[normalise_space(doc.text[span.start : span.end])] += 4 * prob * (1 - prob)
        likely = [span for span, prob in zip(free, probs.tolist(), strict=True) if prob >= PREFILLED]
        scale = 1 / math.sqrt(max(len(words_of(doc)), 1))
        candidates.append((doc, sort_spans([*doc.spans, *likely]), {name: w * scale for name, w in worth.items()}))
    return _select_diverse(candidates, limit)


def _select_diverse(
    candidates: Sequence[tuple[Document, tuple[Span, ...], Mapping[str, float]]], limit: int
) -> list[Sentence]:
    """Greedy selection; values only fall while sentences are chosen, so a stale value on the heap is an upper bound."""
    chosen: Counter[str] = Counter()
    heap = [(-sum(worth.values()), number) for number, (_, _, worth) in enumerate(candidates)]
    heapq.heapify(heap)
    sentences: list[Sentence] = []
    while heap and len(sentences) < limit:
        _, number = heapq.heappop(heap)
        doc, spans, worth = candidates[number]
        value = sum(w * 0.5 ** chosen[name] for name, w in worth.items())
        if heap and value < -heap[0][0]:
            heapq.heappush(heap, (-value, number))
            continue
        chosen.update(worth.keys())
        sentences.append(Sentence(doc.id, round(value, 6), spans))
    return sentences
