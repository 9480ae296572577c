"""Apply decisions to the weak corpus that they are about: a better corpus to train on.

Accepted spans become entities with the source `review`; what was rejected becomes `rejected`; a sentence that was
labeled completely becomes a complete document. All other labels stay as they are.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from lacuner.annotate.gazetteer.entries import Entry
from lacuner.annotate.matching.terms import normalise_surface
from lacuner.audit.issues import normalise_space
from lacuner.corpus.intervals import SpanIndex
from lacuner.corpus.stored import StoredDocuments
from lacuner.data import Document, Lost, sort_spans
from lacuner.errors import CorpusError
from lacuner.models.gazetteer import TaggerGazetteer
from lacuner.review.build import number_equal_ids
from lacuner.review.decisions import SOURCE, Decision, Edit, replay, text_hash
from lacuner.techniques.label_issues import count_unlabeled


@dataclass
class Applied:
    """The corpus after the decisions, and what they changed."""

    docs: Sequence[Document]
    """In the order of the corpus. Of documents on disk, only those with decisions are in memory."""
    lost: Lost = field(default_factory=Lost)
    """Labels that overlap a reviewed span and that no decision is about."""
    added: int = 0
    """Entities that the labels lacked, or had with another type or other boundaries."""
    confirmed: int = 0
    """Labels that a reviewer confirmed."""
    removed: int = 0
    """Labels that are no longer there."""
    rejected: int = 0
    """Spans that were ruled out."""
    completed: int = 0
    """Documents that were labeled completely."""


def apply_decisions(docs: Iterable[Document], decisions: Iterable[Decision]) -> Applied:
    """Apply all decisions that still count; later ones win where they contradict each other.

    A decision on a document that is not in the corpus, or has another text there, is an error.

    >>> from lacuner.data import Span
    >>> weak = Document("1", "Mara met Teel.", spans=(Span(9, 13, "PLACE"),))
    >>> edit = Edit("1", text_hash(weak.text), "x", spans=(Span(9, 13, "PERSON", None, SOURCE),))
    >>> [doc] = apply_decisions([weak], [Decision("accept", (edit,), number=1)]).docs
    >>> doc.spans
    (Span(start=9, end=13, label='PERSON', score=None, source='review'),)
    """
    named = number_equal_ids(docs)
    current = sorted(replay(decisions).current.values(), key=lambda pair: pair[0].number)
    with_decisions = {edit.doc_id for _, edit in current}
    by_id = {doc.id: doc for doc in named if doc.id in with_decisions}
    hashes = cache(lambda doc_id: text_hash(by_id[doc_id].text))
    edits: defaultdict[str, list[Edit]] = defaultdict(list)
    for decision, edit in current:
        doc = by_id.get(edit.doc_id)
        if doc is None or hashes(doc.id) != edit.text_hash:
            problem = "is not in this corpus" if doc is None else "has another text in this corpus"
            raise CorpusError(f"decision {decision.number} is about document {edit.doc_id!r}, which {problem}")
        if any(span.end > len(doc.text) for span in (*edit.spans, *edit.rejected)):
            raise CorpusError(f"decision {decision.number} has a span outside document {edit.doc_id!r}")
        if decision.action != "skip":
            edits[edit.doc_id].append(edit)
    result = Applied([])
    edited = {doc.id: _edit_document(doc, edits[doc.id], result) for doc in by_id.values() if doc.id in edits}
    docs_now = _EditedDocuments(named, edited)
    result.docs = docs_now if isinstance(named, StoredDocuments) else list(docs_now)
    return result


@dataclass(frozen=True)
class _EditedDocuments(Sequence[Document]):
    """Documents, some of which are replaced by what they have become (`edited`, by id)."""

    docs: Sequence[Document]
    edited: Mapping[str, Document]

    def __len__(self) -> int:
        return len(self.docs)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self.edited.get(doc.id, doc) for doc in self.docs[at]]
        [doc] = self[at : at + 1 or None]
        return doc

    def __iter__(self) -> Iterator[Document]:
        return (self.edited.get(doc.id, doc) for doc in self.docs)


def _edit_document(doc: Document, edits: Sequence[Edit], result: Applied) -> Document:
    before = {span.key for span in doc.spans}
    edited = _EditedDocument(doc, result.lost)
    for edit in edits:
        edited.apply(edit)
    new = edited.finish()
    after = {span.key for span in new.spans}
    reviewed = {span.key for span in new.spans if span.source == SOURCE}
    result.added += len(after - before)
    result.confirmed += len(reviewed & before)
    result.removed += len(before - after)
    result.rejected += len(set(new.rejected) - set(doc.rejected))
    result.completed += bool(new.complete and not doc.complete)
    return new


class _EditedDocument:
    """A document on which one decision after the other is applied; each takes time for the spans that it touches."""

    def __init__(self, doc: Document, lost: Lost) -> None:
        self._doc, self._lost = doc, lost
        self._labels, self._unsure = SpanIndex(set(doc.spans)), SpanIndex(set(doc.unsure))
        self._rejected = {span[:2]: span for span in doc.rejected}

    def apply(self, edit: Edit) -> None:
        """One decision: entities replace what overlaps them, ruled-out spans remove the labels with their place."""
        if edit.complete:
            self._doc = replace(self._doc, unsure=(), complete=True)
            self._labels, self._unsure, self._rejected = SpanIndex(set(edit.spans)), SpanIndex(()), {}
            return
        places = {span[:2] for span in (*edit.rejected, *edit.spans)}
        for span in edit.spans:
            for label in self._labels.overlapping(*span[:2]):
                self._labels.remove(label)
                if label[:2] not in places:  # otherwise it was disputed, and is decided now
                    self._lost.span(self._doc, label, "label overlaps a reviewed span")
            for unsure in self._unsure.overlapping(*span[:2]):
                self._unsure.remove(unsure)
        for span in edit.rejected:
            for label in self._labels.overlapping(*span[:2]):
                if label[:2] == span[:2]:
                    self._labels.remove(label)
            for unsure in self._unsure.overlapping(*span[:2]):
                if span.contains(unsure):
                    self._unsure.remove(unsure)
        for place in places:
            self._rejected.pop(place, None)
        self._rejected |= {span[:2]: span for span in edit.rejected}
        for span in edit.spans:
            self._labels.add(span)

    def finish(self) -> Document:
        """The document with all decisions."""
        unsure = set(self._unsure.spans)
        return replace(
            self._doc,
            spans=sort_spans(self._labels.spans),
            rejected=sort_spans(self._rejected.values()),
            unsure=tuple(span for span in self._doc.unsure if span in unsure),
        )


def revise_gazetteer(gazetteer: TaggerGazetteer, docs: Sequence[Document]) -> tuple[TaggerGazetteer, int, int]:
    """The gazetteer after the decisions, and how many entries were added and removed.

    `docs` are those of `apply_decisions`. A name becomes an entry if a reviewer has confirmed it and every occurrence
    in the corpus has the same label. An entry is removed if a reviewer has ruled it out and no occurrence is labeled:
    otherwise the tagger would go on to label it, because matches win over predictions.

    >>> from lacuner.data import Span
    >>> doc = Document("1", "Mara met Teel.", spans=(Span(9, 13, "PER", None, SOURCE),), rejected=(Span(0, 4, ""),))
    >>> revised, added, removed = revise_gazetteer(TaggerGazetteer([Entry("Mara", "PER")]), [doc])
    >>> [entry.surface for entry in revised.entries], added, removed
    (['Teel'], 1, 1)
    """
    labels: defaultdict[str, Counter[str]] = defaultdict(Counter)
    confirmed: set[str] = set()
    ruled_out: set[str] = set()
    for doc in docs:
        for span in doc.spans:
            surface = normalise_space(doc.text[span.start : span.end])
            labels[surface][span.label] += 1
            if span.source == SOURCE:
                confirmed.add(surface)
        ruled_out |= {normalise_space(doc.text[span.start : span.end]) for span in doc.rejected if not span.label}
    unlabeled = count_unlabeled(docs, confirmed)
    labeled = {normalise_surface(surface) for surface in labels}
    wrong = {normalise_surface(surface) for surface in ruled_out} - labeled
    kept = [[entry for entry in part.own if normalise_surface(entry.surface) not in wrong] for part in gazetteer.parts]
    known = {normalise_surface(entry.surface) for own in kept for entry in own}
    new = [
        Entry(surface, next(iter(labels[surface])))
        for surface in sorted(confirmed)
        if len(labels[surface]) == 1 and not unlabeled[surface] and normalise_surface(surface) not in known
    ]
    removed = len(gazetteer) - sum(map(len, kept))
    return gazetteer.replace_entries([[*kept[0], *new], *kept[1:]]), len(new), removed
