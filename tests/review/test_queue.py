"""The review queue: what a decision on each kind of issue means, and the way to disk and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from lacuner.audit.issues import Kind, LabelIssue, new_issue
from lacuner.data import Document, Span
from lacuner.errors import ConfigError, CorpusError
from lacuner.review.decisions import Action
from lacuner.review.queue import ReviewQueue, Sentence, open_queue, save_queue

TEXT = "Doctor Mara Teel met Teel in Halden."
DOC = Document("1", TEXT, spans=(Span(29, 35, "PLACE", None, "gazetteer"),))
SECOND = Document("2", "So did Doctor Mara Teel of Oslo.")


def queue_of(*issues: LabelIssue) -> ReviewQueue:
    return ReviewQueue(issues, {"1": DOC, "2": SECOND}, (), ("PERSON", "PLACE"))


def issue_of(kind: Kind) -> LabelIssue:
    if kind == "missing":
        return new_issue(kind, DOC, Span(21, 25, "PERSON"), (), 0.9)
    proposed = {"wrong_type": Span(29, 35, "PERSON"), "wrong_boundary": Span(26, 35, "PLACE"), "spurious": DOC.spans[0]}
    return new_issue(kind, DOC, proposed[kind], DOC.spans, 0.9)


TEEL, HALDEN = (21, 25), (29, 35)


@pytest.mark.parametrize(
    ("kind", "action", "spans", "rejected"),
    [
        ("missing", "accept", [(*TEEL, "PERSON")], []),
        ("missing", "reject", [], [TEEL]),
        ("missing", "skip", [], []),
        ("wrong_type", "accept", [(*HALDEN, "PERSON")], []),
        ("wrong_type", "reject", [(*HALDEN, "PLACE")], []),
        ("wrong_type", "change", [], [HALDEN]),
        ("wrong_boundary", "accept", [(26, 35, "PLACE")], [HALDEN]),
        ("wrong_boundary", "reject", [(*HALDEN, "PLACE")], [(26, 35)]),
        ("spurious", "accept", [], [HALDEN]),
        ("spurious", "reject", [(*HALDEN, "PLACE")], []),
    ],
)
def test_what_a_decision_means(
    kind: Kind, action: Action, spans: list[tuple[int, int, str]], rejected: list[tuple[int, int]]
) -> None:
    issue = issue_of(kind)
    [edit] = queue_of(issue).decide(issue.id, action).edits
    assert [span.key for span in edit.spans] == spans
    assert [span.key for span in edit.rejected] == [(*place, "") for place in rejected]
    assert (edit.issue, edit.doc_id, edit.complete) == (issue.id, "1", False)
    assert all(span.source == "review" for span in (*edit.spans, *edit.rejected))


def test_a_change_rules_out_what_was_proposed() -> None:
    issue = issue_of("missing")
    [edit] = queue_of(issue).decide(issue.id, "change", span=Span(12, 16, "PLACE")).edits
    assert [span.key for span in edit.spans] == [(12, 16, "PLACE")]
    assert [span[:2] for span in edit.rejected] == [TEEL]


def test_the_same_for_all_equal_strings_shifts_changed_boundaries() -> None:
    place = SECOND.text.index("Mara Teel")
    issues = [
        new_issue("missing", DOC, Span(7, 16, "PERSON"), (), 0.9),
        new_issue("missing", SECOND, Span(place, place + 9, "PERSON"), (), 0.8),
    ]
    queue = queue_of(*issues)
    assert [len(queue.decide(issues[1].id, "accept", everywhere=flag).edits) for flag in (False, True)] == [1, 2]
    decision = queue.decide(issues[1].id, "change", span=Span(place - 7, place + 9, "PERSON"), everywhere=True)
    assert [edit.issue for edit in decision.edits] == [issues[1].id, issues[0].id]
    assert [span.key for edit in decision.edits for span in edit.spans] == [(7, 23, "PERSON"), (0, 16, "PERSON")]
    longer = queue.decide(issues[1].id, "change", span=Span(place, place + 17, "PERSON"), everywhere=True)
    assert [edit.issue for edit in longer.edits] == [issues[1].id]  # the words that follow differ


@pytest.mark.parametrize(
    ("span", "problem"),
    [
        (Span(3, 3, "PLACE"), "empty or outside"),
        (Span(0, 99, "PLACE"), "empty or outside"),
        (Span(6, 11, "PLACE"), "white space"),
        (Span(0, 6, "TITLE"), "no label 'TITLE'"),
    ],
)
def test_impossible_spans_are_refused(span: Span, problem: str) -> None:
    issue = issue_of("missing")
    with pytest.raises(ConfigError, match=problem):
        queue_of(issue).decide(issue.id, "change", span=span)


def test_unknown_issues_documents_and_actions_are_refused() -> None:
    queue = queue_of(issue_of("missing"))
    with pytest.raises(ConfigError, match="no issue 'x'"):
        queue.decide("x", "accept")
    with pytest.raises(ConfigError, match="no document 'x'"):
        queue.label_sentence("x", [])
    with pytest.raises(ConfigError, match="cannot be decided by"):
        queue.decide(queue.issues[0].id, "undo")
    with pytest.raises(ConfigError, match="a new span is a change"):
        queue.decide(queue.issues[0].id, "accept", span=Span(0, 6, "PERSON"))


def test_a_labeled_sentence_is_complete_and_has_no_overlaps() -> None:
    queue = queue_of()
    [edit] = queue.label_sentence("1", [Span(29, 35, "PLACE"), Span(7, 16, "PERSON", 0.4)]).edits
    assert edit.complete and edit.issue is None
    assert edit.spans == (Span(7, 16, "PERSON", None, "review"), Span(29, 35, "PLACE", None, "review"))
    with pytest.raises(ConfigError, match="overlap"):
        queue.label_sentence("1", [Span(7, 16, "PERSON"), Span(12, 16, "PERSON")])


def test_a_queue_survives_the_way_to_disk(tmp_path: Path) -> None:
    issues = tuple(issue_of(kind) for kind in ("missing", "wrong_type", "wrong_boundary", "spurious"))
    sentences = (Sentence("2", 0.7, (Span(14, 23, "PERSON", 0.3),)), Sentence("1", 0.1, (), stratum=2))
    queue = ReviewQueue(issues, {"1": DOC, "2": SECOND}, sentences, ("PERSON", "PLACE"), {"folds": 3})
    folder = save_queue(queue, tmp_path)
    assert open_queue(tmp_path) == queue
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "review").write_text("a file")
    with pytest.raises(CorpusError, match="cannot write in this folder"):
        save_queue(queue_of(), tmp_path)


def test_missing_and_damaged_queues_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="audit issues"):
        open_queue(tmp_path)
    folder = save_queue(queue_of(issue_of("missing")), tmp_path)
    lines = (folder / "queue.jsonl").read_text()
    (folder / "queue.jsonl").write_text(lines + '{"kind": "missing"}\n')
    with pytest.raises(CorpusError, match=r"queue.jsonl:2: this line is not part"):
        open_queue(tmp_path)
    (folder / "queue.jsonl").write_text(lines)
    (folder / "documents.jsonl").write_text("")
    with pytest.raises(CorpusError, match="document '1' is missing"):
        open_queue(tmp_path)
