"""Several annotators of one text: what they agree on is an entity, what they disagree on is unsure."""

from collections.abc import Sequence
from typing import NamedTuple

from lacuner.data import Document, Lost, Span, sort_spans


class Judgement(NamedTuple):
    """What one annotator, or one answer, says about a text."""

    spans: tuple[Span, ...] = ()
    rejected: tuple[Span, ...] = ()
    unsure: tuple[Span, ...] = ()
    complete: bool | None = None


def apply_judgements(doc: Document, judgements: Sequence[Judgement], lost: Lost) -> None:
    """Set the annotation of a document to what its judgements have in common.

    A span is an entity unless an annotator rules it out, by rejecting it or by a complete annotation without it. It is
    then unsure, and `lost` counts it.

    >>> doc = Document("1", "Mara Teel left Halden.")
    >>> name, place = Span(0, 9, "PER"), Span(15, 21, "LOC")
    >>> judgements = [Judgement((name, place), complete=True), Judgement((name,), complete=True)]
    >>> apply_judgements(doc, judgements, lost := Lost())
    >>> doc.spans == (name,), doc.unsure == (place,), doc.complete
    (True, True, True)
    >>> print(lost)
    lost: annotators disagree, so the span became unsure: 1
    """
    if len(judgements) == 1:
        doc.spans, doc.rejected, doc.unsure, doc.complete = judgements[0]
        return
    accepted = {span.key: span for judgement in judgements for span in judgement.spans}
    rejected = {span.key: span for judgement in judgements for span in judgement.rejected}
    unsure = {span.key: span for judgement in judgements for span in judgement.unsure}
    complete = [{span.key for span in judgement.spans} for judgement in judgements if judgement.complete]
    disputed = {key for key in accepted if key in rejected or not all(key in keys for keys in complete)}
    for key, span in accepted.items():
        if key in disputed:
            lost.span(doc, span, "annotators disagree, so the span became unsure")
    doc.spans = sort_spans(span for key, span in accepted.items() if key not in disputed)
    doc.rejected = sort_spans(span for key, span in rejected.items() if key not in accepted)
    open_keys = (unsure.keys() - accepted.keys() - rejected.keys()) | disputed
    doc.unsure = sort_spans(accepted.get(key) or unsure[key] for key in open_keys)
    answers = {judgement.complete for judgement in judgements}
    doc.complete = True if True in answers else False if False in answers else None
