"""Whether completion improves weak labels, estimated on gold that the completing model has not seen.

Gold has no weak labels, so they are simulated: the names that the weak documents label are matched in the gold texts.
That misses names which the source of the labels knows but which occur in gold only. How many that are is seen in the
weak documents: names that a single document labels would be missed there. As many gold entities are labeled in
addition.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from lacuner.corpus.intervals import IntervalSet
from lacuner.data import Document, Span, sort_spans
from lacuner.evaluate.scores import Count, count_exact
from lacuner.models.lookup import build_lookup_tagger
from lacuner.techniques.label_completion import complete_all


class CompletionGain(NamedTuple):
    """Simulated weak labels of some gold documents against gold, before and after completion."""

    documents: int
    before: Count
    after: Count

    @property
    def is_positive(self) -> bool:
        """Whether completion raises the F1 of the labels."""
        return self.after.f1 > self.before.f1

    def __str__(self) -> str:
        change = f"from {100 * self.before.f1:.1f} to {100 * self.after.f1:.1f}"
        return f"on {self.documents:,} held-out gold documents it changes the F1 of the labels {change}"


def simulate_weak_labels(gold: Sequence[Document], weak: Sequence[Document]) -> list[Document]:
    """Gold documents with the labels that the source of the weak labels would probably give them.

    >>> from lacuner.data import Span
    >>> weak = [Document(name, "Mara left Halden", spans=(Span(10, 16, "LOC"),)) for name in "ab"]
    >>> [doc] = simulate_weak_labels([Document("c", "Halden is old", complete=True)], weak)
    >>> doc.spans[0].key, doc.complete
    ((0, 6, 'LOC'), False)
    """
    labeled = list(build_lookup_tagger(weak).predict(gold))
    correct, missed = 0, []
    for number, (doc, gold_doc) in enumerate(zip(labeled, gold, strict=True)):
        keys = {span.key for span in doc.spans}
        labeled_places = IntervalSet(span[:2] for span in doc.spans)
        correct += sum(span.key in keys for span in gold_doc.spans)
        missed += [(number, s) for s in gold_doc.spans if not labeled_places.overlaps(*s[:2])]
    share = known_elsewhere(weak)
    more = round(correct * (1 - share) / share) if share else 0
    added: dict[int, list[Span]] = {}
    for number, span in sorted(missed, key=lambda item: _rank(gold[item[0]], item[1]))[:more]:
        added.setdefault(number, []).append(span)
    return [
        replace(doc, spans=sort_spans([*doc.spans, *added.get(number, ())]), complete=False)
        for number, doc in enumerate(labeled)
    ]


def known_elsewhere(weak: Sequence[Document]) -> float:
    """Share of the weak labels whose name is labeled in another document, too; 0 without labels.

    >>> from lacuner.data import Span
    >>> docs = [Document("1", "Bo, Bo"), Document("2", "Bo"), Document("3", "Cu")]
    >>> spans = [(Span(0, 2, "P"), Span(4, 6, "P")), (Span(0, 2, "P"),), (Span(0, 2, "P"),)]
    >>> known_elsewhere([replace(doc, spans=own) for doc, own in zip(docs, spans, strict=True)])
    0.75
    """
    mentions, documents = Counter[str](), Counter[str]()
    for doc in weak:
        names = [doc.text[span.start : span.end] for span in doc.spans]
        mentions.update(names)
        documents.update(set(names))
    shared = sum(count for name, count in mentions.items() if documents[name] > 1)
    return shared / max(mentions.total(), 1)


def _rank(doc: Document, span: Span) -> bytes:
    """A pseudo-random order of entities that does not depend on the order of documents."""
    text = f"{doc.text}/{span.start}/{span.end}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=8).digest()


def estimate_completion_gain(
    gold: Sequence[Document],
    predicted: Sequence[Document],
    weak: Sequence[Document],
    broken: Literal["repair", "drop"] = "repair",
    sure: float = 0.0,
) -> CompletionGain:
    """Complete simulated weak labels of gold documents with predictions for them, and count both against gold.

    As in completion itself, documents without any weak label are left out (unless none has one).

    >>> from lacuner.data import Span
    >>> gold = [Document("1", "Ada met Bo", spans=(Span(0, 3, "PER"), Span(8, 10, "PER")), complete=True)]
    >>> weak = [Document(name, "Ada left", spans=(Span(0, 3, "PER"),)) for name in "ab"]
    >>> gain = estimate_completion_gain(gold, gold, weak)
    >>> round(gain.before.f1, 2), gain.after.f1, gain.is_positive
    (0.67, 1.0, True)
    """
    simulated = simulate_weak_labels(gold, weak)
    labeled = [number for number, doc in enumerate(simulated) if doc.spans] or list(range(len(gold)))
    completed = complete_all(
        [simulated[i] for i in labeled], [predicted[i] for i in labeled], np.zeros(len(labeled)), broken, sure
    )
    kept_gold = [gold[labeled[place]] for place in completed.kept.tolist()]
    before, after = count_exact(kept_gold, completed.weak), count_exact(kept_gold, completed.docs)
    return CompletionGain(len(kept_gold), before, after)
