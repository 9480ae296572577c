"""Label issues from weak labels and predictions: kinds, scores, groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lacuner.audit import issues as issues_module
from lacuner.audit.issues import apply_label_prior, group_issues, label_issues, new_issue
from lacuner.data import Document, Lost, Span
from lacuner.errors import CorpusError

TEXT = "Mara Teel of Halden met Oslo Works."
DOC = Document("1", TEXT, spans=(Span(13, 19, "PLACE", source="gazetteer"),))


def kinds(doc: Document, *predicted: Span, **options: float) -> list[tuple[str, int, int, str]]:
    issues = label_issues([doc], [replace(doc, spans=predicted)], **options)  # type: ignore[arg-type]
    return [(issue.kind, issue.start, issue.end, issue.label) for issue in issues]


def test_each_kind() -> None:
    halden = Span(13, 19, "PLACE", 0.9)
    assert kinds(DOC, halden, Span(0, 9, "PERSON", 0.8)) == [("missing", 0, 9, "PERSON")]
    assert kinds(DOC, halden._replace(label="PERSON")) == [("wrong_type", 13, 19, "PERSON")]
    assert kinds(DOC, Span(10, 19, "PLACE", 0.9)) == [("wrong_boundary", 10, 19, "PLACE")]
    assert kinds(DOC) == [("spurious", 13, 19, "PLACE")]
    assert kinds(DOC, halden._replace(score=0.999)) == []


def test_a_prediction_that_joins_two_labels_is_no_issue() -> None:
    doc = replace(DOC, spans=(*DOC.spans, Span(24, 28, "PLACE")))
    assert kinds(doc, Span(13, 28, "PLACE", 0.99)) == []


def test_what_a_reviewer_has_decided_is_no_issue() -> None:
    assert kinds(replace(DOC, spans=(DOC.spans[0]._replace(source="review"),))) == []
    assert kinds(replace(DOC, spans=(), rejected=(Span(0, 9, ""),)), Span(0, 9, "PERSON", 0.9)) == []
    assert kinds(replace(DOC, complete=True), Span(0, 9, "PERSON", 0.9)) == []
    longer = Span(0, 19, "PERSON", 0.9)  # only a part of it was ruled out
    assert kinds(replace(DOC, spans=(), rejected=(Span(0, 9, ""),)), longer) == [("missing", 0, 19, "PERSON")]


def test_scores_are_calibrated_and_low_ones_are_left_out() -> None:
    predicted = replace(DOC, spans=(Span(0, 9, "PERSON", 0.8), Span(13, 19, "PLACE", 1.0), Span(24, 28, "PLACE", 0.1)))
    issues = label_issues([DOC], [predicted], calibrate=lambda scores: scores / 2)
    assert [(issue.text, issue.score) for issue in issues if issue.kind == "missing"] == [
        ("Mara Teel", 0.4),
        ("Oslo", 0.05),
    ]
    few = label_issues([DOC], [predicted], calibrate=lambda scores: scores / 2, min_score=0.3)
    assert [issue.text for issue in few if issue.kind == "missing"] == ["Mara Teel"]


def test_a_prediction_without_a_score_is_certain() -> None:
    doc = Document("1", "Mara met Teel.")
    [issue] = label_issues([doc], [replace(doc, spans=(Span(0, 4, "PER"),))])
    assert issue.score == 1.0


def test_a_label_with_a_low_probability_is_more_suspicious() -> None:
    docs = [replace(DOC, id=str(number)) for number in range(3)]
    scores = [0.98, 0.3, 0.01]
    predicted = [replace(d, spans=(DOC.spans[0]._replace(score=s),)) for d, s in zip(docs, scores, strict=True)]
    issues = label_issues(docs, predicted, min_score=0.0)
    assert [issue.doc_id for issue in issues] == ["2", "1", "0"]
    assert issues[0].score > 0.3 and issues[2].score < 0.05
    noisy = label_issues(docs, predicted, min_score=0.0, label_precision=0.5)
    assert noisy[0].score == pytest.approx(0.8)


def test_the_label_prior_gives_calibrated_probabilities() -> None:
    """Scores of right and of wrong labels from two distributions; calibrated where half are right, applied to 80 %."""
    rng = np.random.default_rng(1)
    right = rng.random(4000) < 0.8
    x = np.where(right, np.sqrt(rng.random(4000)), 1 - np.sqrt(rng.random(4000)))  # densities 2x and 2(1 - x)
    posterior = apply_label_prior(x, base_rate=0.5, label_precision=0.8)
    for low, high in ((0.2, 0.4), (0.4, 0.6), (0.6, 0.8)):  # where the evidence is within its limits
        inside = (x >= low) & (x < high)
        assert abs(posterior[inside].mean() - right[inside].mean()) < 0.07


def test_ids_follow_from_the_content() -> None:
    make = lambda doc, span: new_issue("missing", doc, span, (), 0.5).id  # noqa: E731
    assert make(DOC, Span(0, 9, "PERSON", 0.1)) == make(DOC, Span(0, 9, "PERSON", 0.9))
    assert (
        len({make(DOC, Span(0, 9, label)) for label in ("A", "B")} | {make(replace(DOC, id="2"), Span(0, 9, "A"))}) == 3
    )


def test_groups_join_equal_strings_and_labels() -> None:
    text = "Teel saw Teel  and  Teel."
    docs = [Document("1", text), Document("2", text)]
    predicted = [replace(doc, spans=(Span(0, 4, "PER", 0.5), Span(9, 13, "ORG", 0.9))) for doc in docs]
    groups = group_issues(label_issues(docs, predicted))
    assert [(group.text, group.label, len(group.issues)) for group in groups] == [
        ("Teel", "ORG", 2),
        ("Teel", "PER", 2),
    ]
    assert groups[1].expected == pytest.approx(1.0)


def test_other_texts_and_equal_ids_are_errors() -> None:
    with pytest.raises(CorpusError, match="belong to another text"):
        label_issues([DOC], [replace(DOC, text="else", spans=())])
    with pytest.raises(CorpusError, match="the id '1'"):
        label_issues([DOC, DOC], [DOC, DOC])


def test_the_most_probable_issues_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issues_module, "MOST_ISSUES", 3)
    docs = [Document(str(number), "Mara left") for number in range(20)]
    scores = [((7 * number) % 20 + 1) / 20 for number in range(20)]
    predictions = [replace(doc, spans=(Span(0, 4, "PER", score),)) for doc, score in zip(docs, scores, strict=True)]
    lost = Lost()
    assert [issue.score for issue in label_issues(docs, predictions, lost=lost)] == [1.0, 0.95, 0.9]
    assert dict(lost) == {"label issue that is not among the most probable": 17}
