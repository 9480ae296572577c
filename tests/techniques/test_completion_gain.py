"""The estimate of what completion does to weak labels, on gold."""

import numpy as np
import pytest

from lacuner.data import Document, Span
from lacuner.techniques.completion_gain import estimate_completion_gain, simulate_weak_labels

WEAK = [Document(name, "Ada and Bo", spans=(Span(0, 3, "P"),)) for name in "vw"]


def gold(text: str, *spans: tuple[int, int]) -> Document:
    return Document(text, text, spans=tuple(Span(a, b, "P") for a, b in spans), complete=True)


def predict(doc: Document, *spans: tuple[int, int], score: float = 1.0) -> Document:
    return Document(doc.id, doc.text, spans=tuple(Span(a, b, "P", score) for a, b in spans))


def test_weak_labels_are_simulated_with_the_labeled_names_only() -> None:
    docs = [gold("Ada met Bo", (0, 3), (8, 10)), gold("Bo ran", (0, 2))]
    assert [[span.key for span in doc.spans] for doc in simulate_weak_labels(docs, WEAK)] == [[(0, 3, "P")], []]


def test_gold_entities_stand_for_names_that_only_gold_has() -> None:
    """A third of the weak labels is a name of one document: so a third of the simulated labels are such names, too."""
    weak = [*WEAK, Document("x", "Eve left", spans=(Span(0, 3, "P"),))]
    docs = [gold("Ada met Bo", (0, 3), (8, 10)), gold("Ada met Cu", (0, 3), (8, 10))]
    labeled = [span.key for doc in simulate_weak_labels(docs, weak) for span in doc.spans]
    assert labeled.count((0, 3, "P")) == 2 and labeled.count((8, 10, "P")) == 1
    assert simulate_weak_labels(docs[::-1], weak) == simulate_weak_labels(docs, weak)[::-1]


def test_counts_before_and_after() -> None:
    docs = [gold("Ada met Bo", (0, 3), (8, 10)), gold("Ada met him", (0, 3)), gold("Bo ran", (0, 2))]
    predicted = [predict(docs[0], (8, 10)), predict(docs[1], (8, 11)), predict(docs[2], (0, 2))]
    gain = estimate_completion_gain(docs, predicted, WEAK)
    assert gain.documents == 2, "documents without a weak label are not trained on"
    assert vars(gain.before) == {"correct": 2, "predicted": 2, "gold": 3}
    assert vars(gain.after) == {"correct": 3, "predicted": 4, "gold": 3}
    assert gain.is_positive == (6 / 7 > 4 / 5)


@pytest.mark.parametrize(("score", "added"), [(0.95, 1), (0.5, 0)])
def test_the_minimum_probability_is_that_of_completion(score: float, added: int) -> None:
    docs = [gold("Ada met Bo", (0, 3), (8, 10))]
    gain = estimate_completion_gain(docs, [predict(docs[0], (8, 10), score=score)], WEAK, sure=0.9)
    assert gain.after.predicted - gain.before.predicted == added


def test_completion_that_adds_more_wrong_than_right_is_not_positive() -> None:
    rng = np.random.default_rng(1)
    docs = [gold("Ada met Bo at Cu", (0, 3), (8, 10)) for _ in range(50)]
    predicted = [predict(doc, (14, 16), *([(8, 10)] if rng.random() < 0.2 else [])) for doc in docs]
    assert not estimate_completion_gain(docs, predicted, WEAK).is_positive


def test_without_any_simulated_label_all_documents_count() -> None:
    docs = [gold("Bo ran", (0, 2))]
    gain = estimate_completion_gain(docs, [predict(docs[0], (0, 2))], WEAK)
    assert (gain.documents, gain.before.f1, gain.after.f1) == (1, 0.0, 1.0)
