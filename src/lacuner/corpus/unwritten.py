"""Counting what a target format cannot express: the same reasons in the same words for every writer."""

from lacuner.data import Document, Lost


def count_unwritten(doc: Document, lost: Lost, keeps: str = "") -> None:
    """Count what a writer drops from a document; `keeps` names what it keeps beside text and spans.

    >>> from lacuner.data import Span
    >>> doc = Document("1", "Mara", ((0, 4),), unsure=(Span(0, 4, ""),), complete=True)
    >>> count_unwritten(doc, lost := Lost(), "words meta")
    >>> print(lost)
    lost: complete or not: not written: 1; unsure span not written: 1
    """
    kept = keeps.split()
    written = doc.spans
    for state, spans in (("rejected", doc.rejected), ("unsure", doc.unsure)):
        if state in kept:
            written += spans
        else:
            for span in spans:
                lost.span(doc, span, f"{state} span not written")
    if "words" not in kept:
        lost.count("words not written", doc.words is not None)
    if "score" not in kept:
        lost.count("score not written", sum(span.score is not None for span in written))
    if "source" not in kept:
        lost.count("source not written", sum(span.source is not None for span in written))
    if "complete" not in kept:
        lost.count("complete or not: not written", doc.complete is not None)
    if "meta" not in kept:
        lost.count("meta not written", bool(doc.meta))
