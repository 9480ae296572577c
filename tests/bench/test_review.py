"""`python -m benchmarks.review`: the simulated reviewer sees what the page shows."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.review import decide_issues, review_in_rounds
from lacuner.audit.issues import new_issue
from lacuner.data import Document, Span
from lacuner.review.queue import ReviewQueue

GOLD = {
    "1": Document("1", "Mara Teel left Oslo.", spans=(Span(0, 9, "PER"), Span(15, 19, "LOC"))),
    "2": Document("2", "Oslo is large.", spans=(Span(0, 4, "LOC"),)),
}
WEAK = [Document(doc.id, doc.text) for doc in GOLD.values()]


def queue_of(docs: Sequence[Document]) -> ReviewQueue:
    """The whole name, a part of it, a word that is no entity, and two equal strings; without what is labeled."""
    by_id = {doc.id: doc for doc in docs}
    places = [("1", 0, 9), ("1", 0, 4), ("1", 10, 14), ("1", 15, 19), ("2", 0, 4)]
    issues = [
        new_issue("missing", by_id[doc_id], span, (), 0.9)
        for doc_id, *place in places
        for span in [Span(*place, "LOC" if place[0] in (0, 15) and place[1] != 9 else "PER")]
        if not any(span.overlaps(label) for label in (*by_id[doc_id].spans, *by_id[doc_id].rejected))
    ]
    return ReviewQueue(tuple(issues), by_id, labels=("LOC", "PER"))


def test_settled_issues_cost_no_decision() -> None:
    decisions = decide_issues(queue_of(WEAK), GOLD, 10)
    assert [decision.action for decision in decisions] == ["accept", "reject", "accept"]
    assert [len(decision.edits) for decision in decisions] == [1, 1, 2], "equal strings are one decision"


def test_each_round_has_a_queue_of_its_own() -> None:
    seen = []

    def make_queue(number: int, docs: Sequence[Document]) -> ReviewQueue:
        seen.append((number, sum(len(doc.spans) for doc in docs)))
        return queue_of(docs)

    rounds = list(review_in_rounds(WEAK, GOLD, (0, 1, 2, 3), 2, make_queue))
    assert seen == [(0, 0), (1, 1)]
    assert [(budget, sum(actions.values())) for budget, _, actions in rounds] == [(1, 1), (2, 2), (3, 3)]
    labels = [[span[:3] for doc in docs for span in doc.spans] for _, docs, _ in rounds]
    assert labels == [[(0, 9, "PER")], [(0, 9, "PER")], [(0, 9, "PER"), (15, 19, "LOC"), (0, 4, "LOC")]]
    assert len(list(review_in_rounds(WEAK, GOLD, (2, 3), 0, make_queue))) == 2
    assert seen[2:] == [(0, 0)], "a single queue"
