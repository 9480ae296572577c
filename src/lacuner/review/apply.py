"""Apply decisions to the weak corpus that they are about: a better corpus to train on.

Accepted spans become entities with the source `review`; what was rejected becomes `rejected`; a sentence that was
labeled completely becomes a complete document. All other labels stay as they are.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from lacuner.annotate.gazetteer.entries import Entry
from lacuner.annotate.matching.terms import normalise_surface
from lacuner.audit.issues import normalise_space
from lacuner.data import Document, Lost, Span, sort_spans
from lacuner.errors import CorpusError
from lacuner.models.gazetteer import TaggerGazetteer
from lacuner.review.build import number_equal_ids
from lacuner.review.decisions import SOURCE, Decision, Edit, replay, text_hash
from lacuner.techniques.label_issues import count_unlabeled


@dataclass
class Applied:
    """The corpus after the decisions, and what they changed."""

    docs: list[Document]
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

    >>> weak = Document("1", "Mara met Teel.", spans=(Span(9, 13, "PLACE"),))
    >>> edit = Edit("1", text_hash(weak.text), "x", spans=(Span(9, 13, "PERSON", None, SOURCE),))
    >>> [doc] = apply_decisions([weak], [Decision("accept", (edit,), number=1)]).docs
    >>> doc.spans
    (Span(start=9, end=13, label='PERSON', score=None, source='review'),)
    """
    named = number_equal_ids(docs)
    by_id = {doc.id: doc for doc in named}
    edits: defaultdict[str, list[Edit]] = defaultdict(list)
    for decision, edit in sorted(replay(decisions).current.values(), key=lambda pair: pair[0].number):
        doc = by_id.get(edit.doc_id)
        if doc is None or text_hash(doc.text) != edit.text_hash:
            problem = "is not in this corpus" if doc is None else "has another text in this corpus"
            raise CorpusError(f"decision {decision.number} is about document {edit.doc_id!r}, which {problem}")
        if any(span.end > len(doc.text) for span in (*edit.spans, *edit.rejected)):
            raise CorpusError(f"decision {decision.number} has a span outside document {edit.doc_id!r}")
        if decision.action != "skip":
            edits[edit.doc_id].append(edit)
    result = Applied([])
    result.docs = [_edit_document(doc, edits[doc.id], result) if doc.id in edits else doc for doc in named]
    return result


def _edit_document(doc: Document, edits: Sequence[Edit], result: Applied) -> Document:
    before = {span.key for span in doc.spans}
    edited = replace(doc)
    for edit in edits:
        if edit.complete:
            edited = replace(edited, spans=edit.spans, rejected=(), unsure=(), complete=True)
        else:
            edited = _edit_spans(edited, edit, result.lost)
    after = {span.key for span in edited.spans}
    reviewed = {span.key for span in edited.spans if span.source == SOURCE}
    result.added += len(after - before)
    result.confirmed += len(reviewed & before)
    result.removed += len(before - after)
    result.rejected += len(set(edited.rejected) - set(doc.rejected))
    result.completed += bool(edited.complete and not doc.complete)
    return edited


def _edit_spans(doc: Document, edit: Edit, lost: Lost) -> Document:
    """One decision: entities replace what overlaps them, ruled-out spans remove the labels with their place."""
    places = {span[:2] for span in (*edit.rejected, *edit.spans)}
    kept: list[Span] = []
    for label in doc.spans:
        if label[:2] in places:
            continue  # it was disputed, and is decided now
        if any(label.overlaps(span) for span in edit.spans):
            lost.span(doc, label, "label overlaps a reviewed span")
        else:
            kept.append(label)
    rejected = {span[:2]: span for span in doc.rejected if span[:2] not in places}
    rejected |= {span[:2]: span for span in edit.rejected}
    unsure = [
        span
        for span in doc.unsure
        if not any(span.overlaps(entity) for entity in edit.spans)
        and not any(out.start <= span.start and span.end <= out.end for out in edit.rejected)
    ]
    return replace(
        doc,
        spans=sort_spans([*kept, *edit.spans]),
        rejected=sort_spans(rejected.values()),
        unsure=tuple(unsure),
    )


def revise_gazetteer(gazetteer: TaggerGazetteer, docs: Sequence[Document]) -> tuple[TaggerGazetteer, int, int]:
    """The gazetteer after the decisions, and how many entries were added and removed.

    `docs` are those of `apply_decisions`. A name becomes an entry if a reviewer has confirmed it and every occurrence
    in the corpus has the same label. An entry is removed if a reviewer has ruled it out and no occurrence is labeled:
    otherwise the tagger would go on to label it, because matches win over predictions.

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
