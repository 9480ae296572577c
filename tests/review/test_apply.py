"""Decisions become labels: which spans are there afterwards, and that they reach the losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from lacuner.annotate.gazetteer.entries import Entry
from lacuner.audit.issues import Kind, LabelIssue, new_issue
from lacuner.data import Document, Lost, Span
from lacuner.errors import CorpusError
from lacuner.losses.crf import crf_loss
from lacuner.losses.cross_entropy import cross_entropy
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.models.gazetteer import TaggerGazetteer
from lacuner.models.heads import build_head
from lacuner.models.model import Model
from lacuner.review.apply import Applied, apply_decisions, revise_gazetteer
from lacuner.review.decisions import SOURCE, Action, Decision, Edit, text_hash
from lacuner.review.queue import ReviewQueue
from lacuner.training.dataset import TrainingSet, training_set, weak_training_set
from tests.growth import assert_linear

TEXT = "Mara Teel left Halden for Oslo Works"
MARA, HALDEN, OSLO, WORKS = Span(0, 9, "PER"), Span(15, 21, "LOC"), Span(26, 30, "LOC"), Span(26, 36, "ORG")
WEAK = Document("1", TEXT, spans=(HALDEN._replace(source="list"), OSLO._replace(source="list")), unsure=(WORKS,))


def number(decisions: Sequence[Decision]) -> list[Decision]:
    return [Decision(d.action, d.edits, d.undoes, d.reviewer, n, 0.0) for n, d in enumerate(decisions, 1)]


def issue_of(kind: Kind, span: Span, *current: Span) -> LabelIssue:
    return new_issue(kind, WEAK, span, current, 0.5)


def decide(*pairs: tuple[LabelIssue, Action], span: Span | None = None) -> list[Decision]:
    queue = ReviewQueue(tuple(issue for issue, _ in pairs), {"1": WEAK}, labels=("LOC", "ORG", "PER"))
    return number(
        [queue.decide(issue.id, action, span=span if action == "change" else None) for issue, action in pairs]
    )


def apply(*pairs: tuple[LabelIssue, Action], span: Span | None = None) -> Applied:
    return apply_decisions([WEAK], decide(*pairs, span=span))


def keys(spans: Sequence[Span]) -> list[tuple[int, int, str]]:
    return [span.key for span in spans]


def test_an_accepted_missing_span_is_added() -> None:
    result = apply((issue_of("missing", MARA), "accept"))
    [doc] = result.docs
    assert doc.spans == (MARA._replace(source="review"), *WEAK.spans)
    assert (doc.rejected, doc.unsure, doc.complete) == ((), (WORKS,), None)
    assert (result.added, result.removed, result.rejected, len(result.lost)) == (1, 0, 0, 0)


def test_a_rejected_missing_span_is_ruled_out() -> None:
    result = apply((issue_of("missing", MARA), "reject"))
    assert keys(result.docs[0].rejected) == [(0, 9, "")]
    assert result.docs[0].spans == WEAK.spans
    assert result.rejected == 1


def test_wrong_types_and_boundaries_are_replaced() -> None:
    [doc] = apply((issue_of("wrong_type", HALDEN._replace(label="PER"), HALDEN), "accept")).docs
    assert keys(doc.spans) == [(15, 21, "PER"), OSLO.key]
    result = apply((issue_of("wrong_boundary", WORKS, OSLO), "accept"))
    assert keys(result.docs[0].spans) == [HALDEN.key, WORKS.key]
    assert keys(result.docs[0].rejected) == [(26, 30, "")]
    assert result.docs[0].unsure == ()  # it is decided now
    assert len(result.lost) == 0


def test_a_spurious_label_is_removed_or_confirmed() -> None:
    issue = issue_of("spurious", HALDEN, HALDEN)
    removed, confirmed = apply((issue, "accept")), apply((issue, "reject"))
    assert keys(removed.docs[0].spans) == [OSLO.key] and keys(removed.docs[0].rejected) == [(15, 21, "")]
    assert confirmed.docs[0].spans[0] == HALDEN._replace(source="review")
    assert (removed.removed, confirmed.confirmed) == (1, 1)


def test_a_label_that_no_decision_is_about_is_reported_when_it_gives_way() -> None:
    result = apply((issue_of("missing", MARA), "change"), span=Span(10, 21, "LOC"))
    assert keys(result.docs[0].spans) == [(10, 21, "LOC"), OSLO.key]
    assert [(row.text, row.reason) for row in result.lost.spans] == [("Halden", "label overlaps a reviewed span")]


def test_a_later_decision_wins_where_two_contradict_each_other() -> None:
    whole, part = issue_of("missing", MARA), issue_of("missing", Span(5, 9, "PER"))
    assert keys(apply((whole, "accept"), (part, "accept")).docs[0].spans)[0] == (5, 9, "PER")
    assert keys(apply((part, "accept"), (whole, "accept")).docs[0].spans)[0] == MARA.key


def test_skipped_and_undone_decisions_change_nothing() -> None:
    assert apply((issue_of("missing", MARA), "skip")).docs == [WEAK]
    accepted = decide((issue_of("missing", MARA), "accept"))
    assert apply_decisions([WEAK], [*accepted, Decision("undo", undoes=1, number=2)]).docs == [WEAK]


def test_a_labeled_sentence_is_a_complete_document() -> None:
    queue = ReviewQueue((), {"1": WEAK}, labels=("LOC", "ORG", "PER"))
    result = apply_decisions([WEAK], number([queue.label_sentence("1", [MARA, HALDEN])]))
    [doc] = result.docs
    assert doc.complete is True and keys(doc.spans) == [MARA.key, HALDEN.key] and doc.unsure == ()
    assert result.completed == 1


def test_decisions_are_applied_once() -> None:
    decisions = decide((issue_of("missing", MARA), "accept"), (issue_of("wrong_boundary", WORKS, OSLO), "accept"))
    once = apply_decisions([WEAK], decisions).docs
    assert apply_decisions(once, decisions).docs == once


def test_decisions_about_other_texts_are_errors() -> None:
    decisions = decide((issue_of("missing", MARA), "accept"))
    with pytest.raises(CorpusError, match="decision 1 is about document '1', which is not in this corpus"):
        apply_decisions([Document("2", TEXT)], decisions)
    with pytest.raises(CorpusError, match="which has another text"):
        apply_decisions([Document("1", TEXT + "!")], decisions)


def revise(*docs: Document, entries: Sequence[str] = ("Halden", "Oslo")) -> list[str]:
    gazetteer = TaggerGazetteer([Entry(surface, "LOC") for surface in entries])
    revised, added, removed = revise_gazetteer(gazetteer, docs)
    assert len(revised) == len(gazetteer) + added - removed
    return [entry.surface for entry in revised.entries]


def test_the_gazetteer_follows_decisions_that_hold_for_every_occurrence() -> None:
    accepted = apply((issue_of("missing", MARA), "accept")).docs[0]
    assert revise(accepted) == ["Halden", "Oslo", "Mara Teel"]
    unlabeled = Document("2", "Mara Teel again")
    assert revise(accepted, unlabeled) == ["Halden", "Oslo"]
    assert revise(accepted, replace(unlabeled, spans=(Span(0, 9, "ORG"),))) == ["Halden", "Oslo"]
    refused = apply((issue_of("spurious", HALDEN, HALDEN), "accept")).docs[0]
    assert revise(refused) == ["Oslo"]
    assert revise(refused, Document("2", "Halden", spans=(Span(0, 6, "LOC"),))) == ["Halden", "Oslo"]
    assert revise(WEAK) == ["Halden", "Oslo"]


def model_of(kind: str) -> Model:
    torch.manual_seed(1)
    encoder = TinyEncoder(TinyConfig())
    return Model(encoder, build_head({"kind": kind, "labels": ["LOC", "ORG", "PER"]}, encoder.width))


def reviewed() -> list[Document]:
    """ "Mara Teel" was accepted, "Halden" was found to be no entity; "left" and "for" stay unknown."""
    weak = apply((issue_of("missing", MARA), "accept"), (issue_of("spurious", HALDEN, HALDEN), "accept")).docs
    return [Document(doc.id, doc.text, spans=doc.spans, rejected=doc.rejected, complete=False) for doc in weak]


def prepared(kind: str) -> TrainingSet:
    lost = Lost()
    data = training_set(model_of(kind), reviewed(), lost)
    assert len(lost) == 0
    return data


def test_words_of_decided_spans_are_known_to_the_partial_crf() -> None:
    """Words: Mara Teel left Halden for Oslo Works."""
    data = prepared("crf")
    targets = data.targets.collate([0])
    assert targets.known[0].tolist() == [True, True, False, True, False, True, False]
    assert targets.labels[0, 0] > 0 and targets.labels[0, 1] > 0 and targets.labels[0, 3] == 0


def test_spans_that_were_decided_are_known_to_span_classifiers() -> None:
    data = prepared("span")
    targets = data.targets.collate([0])
    assert targets.known[0, 0, 1] and targets.labels[0, 0, 1] == 3  # Mara Teel: PER
    assert targets.known[0, 3, 0] and targets.labels[0, 3, 0] == 0  # Halden: no entity
    assert not targets.known[0, 2].any() and not targets.known[0, 4].any()


def test_they_are_not_sampled_as_unlabeled() -> None:
    weak = weak_training_set(model_of("span"), reviewed(), Lost())
    unlabeled = weak.unlabeled_in([0])  # type: ignore[arg-type]
    assert not unlabeled[0, 3, 0] and not unlabeled[0, 0, 1]
    assert unlabeled[0, 2, 0] and unlabeled[0, 4, 0]


@pytest.mark.parametrize("kind", ["crf", "span"])
def test_one_step_moves_the_model_towards_the_decisions(kind: str) -> None:
    data = prepared(kind)
    loss_of = crf_loss if kind == "crf" else cross_entropy
    optimizer = torch.optim.SGD(data.model.parameters(), lr=0.001)
    data.model.eval()
    losses = []
    for _ in range(3):
        batch, targets = data.batch([0])  # type: ignore[arg-type]
        loss = loss_of(data.model(batch), targets).sum()
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert losses[0] > losses[1] > losses[2] > 0


@pytest.mark.parametrize("spans_per_decision", [1, 1_000_000])
def test_thousands_of_decided_spans_in_one_document_are_applied_in_time(spans_per_decision: int) -> None:
    def data(size: int) -> tuple[list[Document], list[Decision]]:
        text = "ab " * 2 * size
        labels = tuple(Span(at, at + 2, "X") for at in range(0, 6 * size, 3))
        doc = Document("1", text, spans=labels, unsure=tuple(span._replace(label="") for span in labels))
        moved = [Span(at, at + 1, "X", None, SOURCE) for at in range(0, 3 * size, 3)]
        parts = [tuple(moved[at : at + spans_per_decision]) for at in range(0, size, spans_per_decision)]
        edits = [Edit("1", text_hash(text), f"issue{number}", part, ()) for number, part in enumerate(parts)]
        return [doc], number([Decision("accept", (edit,)) for edit in edits])

    docs, decisions = data(10)
    [edited] = apply_decisions(docs, decisions).docs
    assert len(edited.spans) == 20 and len(edited.unsure) == 10
    assert_linear(data, lambda pair: apply_decisions(*pair), 500)
