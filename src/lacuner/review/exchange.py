"""The queue in other annotation tools: pre-annotated documents go out, annotated ones come back as decisions.

The formats are those of `lacuner.corpus`. Documents are matched by their text, because many tools give them ids of
their own.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from lacuner.audit.issues import LabelIssue, new_issue
from lacuner.corpus.intervals import DisjointIntervals, SpanIndex
from lacuner.data import Document, Lost, Span, sort_spans
from lacuner.errors import CorpusError
from lacuner.review.decisions import Decision, Edit, ReviewState, confirmed, ruled_out, sentence_target, text_hash
from lacuner.review.queue import ReviewQueue

PREFILLED = 0.5
"""Score from which the proposal of an issue is part of the pre-annotation."""


def documents_to_annotate(queue: ReviewQueue, state: ReviewState) -> list[Document]:
    """The documents of the queue that are not decided yet, pre-annotated, in the order of review.

    Documents of issues come first, then the sentences to label. The spans are the labels of the document, changed by
    the probable issues; those that come from a model have their score.

    >>> doc = Document("1", "Mara met Teel.", spans=(Span(9, 13, "PER"),))
    >>> queue = ReviewQueue((new_issue("missing", doc, Span(0, 4, "PER"), (), 0.9),), {"1": doc})
    >>> [[span.key for span in doc.spans] for doc in documents_to_annotate(queue, ReviewState())]
    [[(0, 4, 'PER'), (9, 13, 'PER')]]
    """
    issues: dict[str, list[LabelIssue]] = {}
    for issue in queue.issues:
        if issue.id not in state.current:
            issues.setdefault(issue.doc_id, []).append(issue)
    prefilled = {doc_id: _prefill(queue.document(doc_id), own) for doc_id, own in issues.items()}
    for sentence in queue.sentences:
        prefilled.setdefault(sentence.doc_id, sentence.spans)
    open_ids = [doc_id for doc_id in prefilled if sentence_target(doc_id) not in state.current]
    return [_new_task(queue.document(doc_id), prefilled[doc_id]) for doc_id in open_ids]


def _new_task(doc: Document, spans: Sequence[Span]) -> Document:
    return Document(doc.id, doc.text, doc.words, sort_spans(spans), doc.rejected, doc.unsure, False, dict(doc.meta))


def _prefill(doc: Document, issues: Sequence[LabelIssue]) -> tuple[Span, ...]:
    labels = SpanIndex(doc.spans)
    for issue in issues:
        if issue.score < PREFILLED:
            continue
        for disputed in issue.current:
            for span in labels.overlapping(*disputed[:2]):
                if span.key == disputed.key:
                    labels.remove(span)
        if issue.kind != "spurious" and not labels.overlapping(*issue.span[:2]):
            labels.add(issue.span._replace(source="model"))
    return tuple(labels.spans)


def decisions_from(queue: ReviewQueue, annotated: Iterable[Document], lost: Lost, reviewer: str = "") -> list[Decision]:
    """The decisions that follow from annotated documents, ready for `DecisionLog.append`.

    A complete document is a labeled sentence. In an incomplete one, spans that are `rejected` are ruled out, and spans
    that were not part of the pre-annotation are entities; pre-annotated spans are not decisions, because the
    annotator may not have looked at them. `lost` counts documents and spans that lead to no decision.
    """
    by_text = {doc.text: doc for doc in queue.documents.values()}
    prefilled = {doc.id: {span.key for span in doc.spans} for doc in documents_to_annotate(queue, ReviewState())}
    issues_at: defaultdict[tuple[str, int, int], list[LabelIssue]] = defaultdict(list)
    for issue in queue.issues:
        issues_at[issue.doc_id, issue.start, issue.end].append(issue)
    decisions = []
    for annotated_doc in annotated:
        doc = queue.documents.get(annotated_doc.id)
        doc = doc if doc is not None and doc.text == annotated_doc.text else by_text.get(annotated_doc.text)
        if doc is None:
            raise CorpusError(f"document {annotated_doc.id!r} is not in this queue: no document there has its text")
        if annotated_doc.complete:
            decisions.append(queue.label_sentence(doc.id, _without_overlaps(annotated_doc, lost), reviewer))
            continue
        known = {span.key for span in doc.spans} | prefilled.get(doc.id, set())
        new = [span for span in annotated_doc.spans if span.key not in known]
        old = {span.key for span in doc.rejected}
        rejected = [span for span in annotated_doc.rejected if span.key not in old]
        if not new and not rejected:
            lost.count("document without a decision: it is not complete, and nothing was added or rejected")
        for is_entity, spans in ((True, new), (False, rejected)):
            for span in spans:
                decision = _decide_span(queue, doc, span, is_entity, issues_at[doc.id, span.start, span.end])
                decisions.append(replace(decision, reviewer=reviewer))
    return decisions


def _decide_span(
    queue: ReviewQueue, doc: Document, span: Span, is_entity: bool, issues: Sequence[LabelIssue]
) -> Decision:
    """The decision on one span: on one of the `issues` at its place, otherwise as if its label had been missing."""
    same = next((issue for issue in issues if issue.kind != "spurious" and span.label in ("", issue.label)), None)
    if same is not None:
        return queue.decide(same.id, "accept" if is_entity else "reject")
    spurious = next((issue for issue in issues if issue.kind == "spurious"), None)
    if spurious is not None and not is_entity:
        return queue.decide(spurious.id, "accept")
    queue.check_spans(doc, [span] if is_entity else [])
    issue = new_issue("missing", doc, span, (), 1.0)
    spans, rejected = ((confirmed(span),), ()) if is_entity else ((), (ruled_out(span),))
    edit = Edit(doc.id, text_hash(doc.text), issue.id, spans, rejected)
    return Decision("accept" if is_entity else "reject", (edit,))


def _without_overlaps(doc: Document, lost: Lost) -> list[Span]:
    """The spans of a document, the longest where they overlap: a decision has no overlapping entities."""
    kept: list[Span] = []
    taken = DisjointIntervals()
    for span in sorted(doc.spans, key=lambda span: (span.start - span.end, span.start)):
        if taken.first_overlap(*span[:2]):
            lost.span(doc, span, "span overlaps a longer one")
        else:
            kept.append(span)
            taken.add(*span[:2])
    return kept
