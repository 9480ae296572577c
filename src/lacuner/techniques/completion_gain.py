"""Whether completion improves weak labels, estimated on gold that the completing model has not seen.

Gold has no weak labels, so they are simulated: the names that the weak documents label are matched in the gold texts.
Names that only gold has are missing there, as names that a gazetteer lacks are missing in weak documents.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from lacuner.data import Document
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
    """Gold texts labeled with the names that weak documents label, each with its most frequent label.

    >>> from lacuner.data import Span
    >>> weak = [Document("1", "Mara left Halden", spans=(Span(10, 16, "LOC"),))]
    >>> [doc] = simulate_weak_labels([Document("2", "Halden is old", complete=True)], weak)
    >>> doc.spans[0].key, doc.complete
    ((0, 6, 'LOC'), False)
    """
    return [replace(doc, complete=False) for doc in build_lookup_tagger(weak).predict(gold)]


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
    >>> weak = [Document("2", "Ada left", spans=(Span(0, 3, "PER"),))]
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
