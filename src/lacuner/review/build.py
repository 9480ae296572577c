"""Build a review queue: evidence for each issue, and the sentences that are most useful to label completely."""

import hashlib
import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from lacuner.annotate.gazetteer.entries import Entry
from lacuner.annotate.matching.terms import normalise_surface
from lacuner.audit.issues import LabelIssue, group_issues, new_issue, normalise_space
from lacuner.corpus import words_of
from lacuner.corpus.intervals import IntervalSet
from lacuner.corpus.stored import StoredDocuments, open_documents, store_documents
from lacuner.data import Document, Span, labels_of, sort_spans
from lacuner.review.queue import ReviewQueue, Sentence, keep_documents, named_documents
from lacuner.techniques.label_issues import count_unlabeled, find_unlabeled

MAX_ISSUES = 20_000
MAX_SENTENCES = 500
EXAMPLES = 5
"""Other mentions of the same string that are listed as evidence."""
MAX_LABELS = 20
"""Labels of the same string that are listed as evidence, the most frequent ones."""
PROBABLE = 0.2
"""Score from which other occurrences of a missing name are listed, too."""
PREFILLED = 0.5
"""Probability from which a prediction is pre-filled in a sentence."""


def number_equal_ids(docs: Iterable[Document]) -> Sequence[Document]:
    """The documents with distinct ids: the second document with the id `7` gets the id `7 (2)`.

    Several files, or files without ids, may use the same ids. The result depends on the order of the documents only,
    so decisions find their document again.

    >>> [doc.id for doc in number_equal_ids([Document("7", "a"), Document("8", "b"), Document("7", "c")])]
    ['7', '8', '7 (2)']
    """
    docs = docs if isinstance(docs, StoredDocuments) else list(docs)
    # 8 bytes per document: the ids themselves may need more memory than a stream of documents should
    hashes = np.unique(np.fromiter((_hash_id(doc.id) for doc in docs), np.uint64, len(docs)))
    if len(hashes) == len(docs):
        return docs
    numbered = _number_ids(docs, hashes)
    if isinstance(docs, StoredDocuments):
        folder = docs.folder / "numbered"
        return open_documents(folder, docs.key) or store_documents(numbered, folder, docs.key, ordered=True)
    return list(numbered)


def _number_ids(docs: Iterable[Document], hashes: np.ndarray) -> Iterator[Document]:
    """`hashes` are those of all ids, sorted and distinct."""
    latest = np.zeros(len(hashes), dtype=np.int64)
    for doc in docs:
        place = int(np.searchsorted(hashes, _hash_id(doc.id)))
        number = int(latest[place]) + 1
        while number > 1 and _contains(hashes, _hash_id(f"{doc.id} ({number})")):
            number += 1
        latest[place] = number
        yield doc if number == 1 else replace(doc, id=f"{doc.id} ({number})")


def _hash_id(doc_id: str) -> np.uint64:
    """A hash that is the same in every process. Should two ids share one, the second id gets a number, too."""
    digest = hashlib.blake2b(doc_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def _contains(hashes: np.ndarray, wanted: np.uint64) -> bool:
    place = int(np.searchsorted(hashes, wanted))
    return place < len(hashes) and bool(hashes[place] == wanted)


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
    names are added at the end of their group (`find_unpredicted`). What comes after the first `MAX_ISSUES` is left out,
    and counted in `facts` as `unlisted`.

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
    ordered = [issue for group in groups for issue in (*group.issues, *others[group.issues[0].group])]
    facts = dict(facts or {})
    facts["unlisted"] = facts.get("unlisted", 0) + max(0, len(ordered) - MAX_ISSUES)
    ordered, sentences = ordered[:MAX_ISSUES], tuple(sentences)
    labels = {*labels_of(docs), *(issue.label for issue in ordered)}
    listed = tuple(_add_evidence(docs, ordered, gazetteer))
    kept = keep_documents(docs, named_documents(listed, sentences))
    return ReviewQueue(listed, kept, sentences, tuple(sorted(labels)), facts)


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
    further: list[LabelIssue] = []
    counts: Counter[str] = Counter()
    incomplete = (doc for doc in docs if not doc.complete)
    for doc, group in groupby(find_unlabeled(incomplete, names), key=lambda occurrence: occurrence[0]):
        closed = IntervalSet([*taken[doc.id], *(span[:2] for span in (*doc.rejected, *doc.unsure))])
        last = 0
        for _, start, end in sorted(group, key=lambda place: (place[1], -place[2])):
            name = names.get(normalise_space(doc.text[start:end]))  # None for another apostrophe or dash
            if name is not None and start >= last and not closed.overlaps(start, end):
                last = end
                counts[name.id] += 1
                if counts[name.id] > MAX_ISSUES:  # as many would be listed of this name alone
                    continue
                span = Span(start, end, name.label)
                further.append(new_issue("missing", doc, span, (), name.score / 2, {"probability": 0.0}))
    return further


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
    forms = {normalise_surface(surface) for surface in surfaces}
    entries: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for entry in gazetteer:
        if (key := normalise_surface(entry.surface)) in forms:
            entries[key].add((entry.surface, entry.label))
    for issue in issues:
        surface = normalise_space(issue.text)
        own = [{"term": term, "label": label} for term, label in sorted(entries[normalise_surface(surface)])]
        evidence = {
            **issue.evidence,
            "gazetteer": own,
            "labeled": dict(sorted(labels[surface].most_common(MAX_LABELS))),
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
    pairs = zip(docs, predictions, strict=True)
    values = np.array(
        [-1.0 if doc.complete else sum(_worth(doc, spans, calibrate)[1].values()) for doc, spans in pairs]
    )
    # values only fall while sentences are chosen, so the first value of a sentence is an upper bound
    by_value = iter([number for number in np.argsort(-values, kind="stable").tolist() if values[number] >= 0])
    waiting: list[tuple[float, int]] = []
    chosen: Counter[str] = Counter()
    sentences: list[Sentence] = []
    next_number = _push_next(waiting, by_value, values)
    while waiting and len(sentences) < limit:
        _, number = heapq.heappop(waiting)
        if number == next_number:
            next_number = _push_next(waiting, by_value, values)
        spans, worth = _worth(docs[number], predictions[number], calibrate)
        value = sum(w * 0.5 ** chosen[name] for name, w in worth.items())
        if waiting and value < -waiting[0][0]:
            heapq.heappush(waiting, (-value, number))
            continue
        chosen.update(worth.keys())
        sentences.append(Sentence(docs[number].id, round(value, 6), spans))
    return sentences


def _push_next(waiting: list[tuple[float, int]], by_value: Iterator[int], values: np.ndarray) -> int | None:
    """Move a sentence to those that wait on the heap; returns its number."""
    number = next(by_value, None)
    if number is not None:
        heapq.heappush(waiting, (-float(values[number]), number))
    return number


def _worth(
    doc: Document, prediction: Document, calibrate: Callable[[np.ndarray], np.ndarray] | None
) -> tuple[tuple[Span, ...], dict[str, float]]:
    """What a sentence is pre-filled with, and what labeling it is worth, by surface string."""
    labeled = IntervalSet(span[:2] for span in doc.spans)
    free = [span for span in prediction.spans if not labeled.overlaps(*span[:2])]
    scores = np.array([span.score if span.score is not None else 1.0 for span in free], dtype=float)
    probs = (scores if calibrate is None else calibrate(scores)).tolist()
    worth: defaultdict[str, float] = defaultdict(float)
    for span, prob in zip(free, probs, strict=True):
        worth[normalise_space(doc.text[span.start : span.end])] += 4 * prob * (1 - prob)
    likely = [span for span, prob in zip(free, probs, strict=True) if prob >= PREFILLED]
    scale = 1 / math.sqrt(max(len(words_of(doc)), 1))
    return sort_spans([*doc.spans, *likely]), {name: value * scale for name, value in worth.items()}
