"""The queue in other tools: pre-annotations out, decisions back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lacuner.audit.issues import new_issue
from lacuner.corpus import read, write
from lacuner.data import Document, Lost, Span
from lacuner.errors import ConfigError, CorpusError
from lacuner.review.apply import apply_decisions
from lacuner.review.decisions import Decision, ReviewState, replay
from lacuner.review.exchange import decisions_from, documents_to_annotate
from lacuner.review.queue import ReviewQueue, Sentence

MARA, TEEL, HALDEN = Span(0, 4, "PER"), Span(9, 13, "PER"), Span(17, 23, "PER")
FIRST = Document("1", "Mara met Teel in Halden.", spans=(HALDEN._replace(source="list"),))
SECOND = Document("2", "Oslo is far from Teel.")
ISSUES = (
    new_issue("missing", FIRST, MARA, (), 0.9),
    new_issue("wrong_type", FIRST, HALDEN._replace(label="LOC"), FIRST.spans, 0.6),
    new_issue("missing", FIRST, TEEL, (), 0.2),
)
QUEUE = ReviewQueue(ISSUES, {"1": FIRST, "2": SECOND}, (Sentence("2", 1.0, (Span(0, 4, "LOC", 0.7),)),), ("LOC", "PER"))


def number(decisions: list[Decision]) -> list[Decision]:
    return [replace(decision, number=n) for n, decision in enumerate(decisions, 1)]


def test_pre_annotations_are_the_labels_changed_by_probable_issues() -> None:
    first, second = documents_to_annotate(QUEUE, ReviewState())
    assert [(span.key, span.score) for span in first.spans] == [(MARA.key, 0.9), ((17, 23, "LOC"), 0.6)]
    assert [span.key for span in second.spans] == [(0, 4, "LOC")]
    assert (first.id, first.complete) == ("1", False)


def test_what_is_decided_is_not_asked_again() -> None:
    state = replay(number([QUEUE.decide(issue.id, "reject") for issue in ISSUES]))
    assert [doc.id for doc in documents_to_annotate(QUEUE, state)] == ["2"]
    state = replay(number([QUEUE.label_sentence("1", [MARA])]))
    assert [doc.id for doc in documents_to_annotate(QUEUE, state)] == ["2"]


def test_a_complete_document_comes_back_as_a_labeled_sentence() -> None:
    annotated = Document("task 17", FIRST.text, spans=(MARA, TEEL), complete=True)
    [decision] = decisions_from(QUEUE, [annotated], Lost(), reviewer="tool")
    assert (decision.action, decision.reviewer, decision.edits[0].doc_id) == ("label_sentence", "tool", "1")
    [doc, _] = apply_decisions([FIRST, SECOND], number([decision])).docs
    assert doc.complete and [span.key for span in doc.spans] == [MARA.key, TEEL.key]


def test_an_incomplete_document_decides_on_single_spans() -> None:
    """ "Teel" was added and "Mara" rejected; the pre-annotated "Halden" was perhaps never looked at."""
    spans = (TEEL, HALDEN._replace(label="LOC", score=0.6))
    annotated = Document("1", FIRST.text, spans=spans, rejected=(MARA,), complete=False)
    added, rejected = decisions_from(QUEUE, [annotated], Lost())
    assert (added.action, added.edits[0].issue) == ("accept", ISSUES[2].id)
    assert (rejected.action, rejected.edits[0].issue) == ("reject", ISSUES[0].id)
    new = Document("2", SECOND.text, spans=(Span(17, 21, "PER"),), complete=False)
    [other] = decisions_from(QUEUE, [new], Lost())
    assert [span.key for span in other.edits[0].spans] == [(17, 21, "PER")]


def test_untouched_documents_decide_nothing() -> None:
    lost = Lost()
    assert decisions_from(QUEUE, documents_to_annotate(QUEUE, ReviewState()), lost) == []
    assert len(lost) == 2


def test_wrong_documents_and_labels_are_errors_and_overlaps_are_reported() -> None:
    with pytest.raises(CorpusError, match="no document there has its text"):
        decisions_from(QUEUE, [Document("1", "else", complete=True)], Lost())
    with pytest.raises(ConfigError, match="no label 'ORG'"):
        decisions_from(QUEUE, [replace(FIRST, spans=(Span(0, 4, "ORG"),), complete=True)], Lost())
    with pytest.raises(ConfigError, match="no label 'ORG'"):
        decisions_from(QUEUE, [replace(FIRST, spans=(Span(0, 4, "ORG"),), complete=False)], Lost())
    lost = Lost()
    [decision] = decisions_from(QUEUE, [replace(FIRST, spans=(MARA, Span(0, 8, "PER")), complete=True)], lost)
    assert [span.key for span in decision.edits[0].spans] == [(0, 8, "PER")]
    assert [row.text for row in lost.spans] == ["Mara"]


@pytest.mark.parametrize("tool", ["jsonl", "labelstudio", "doccano", "prodigy", "argilla"])
def test_files_of_other_tools_come_back_as_decisions(tmp_path: Path, tool: str) -> None:
    """Every pre-annotated document is confirmed as it is, written as the tool's own file, and read again."""
    tasks = documents_to_annotate(QUEUE, ReviewState())
    write(tasks, tmp_path / "tasks", format=tool)
    assert [doc.text for doc in read(tmp_path / "tasks", format=tool)] == [FIRST.text, SECOND.text]
    write([replace(doc, complete=True) for doc in tasks], tmp_path / "done", format=tool)
    decisions = decisions_from(QUEUE, list(read(tmp_path / "done", format=tool, complete=True)), Lost())
    assert [decision.action for decision in decisions] == ["label_sentence"] * 2
    assert [[span.key for span in d.edits[0].spans] for d in decisions] == [[s.key for s in t.spans] for t in tasks]
