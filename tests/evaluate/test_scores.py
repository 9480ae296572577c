from __future__ import annotations

from dataclasses import replace

from lacuner.data import Document, Span
from lacuner.evaluate import Count, score
from lacuner.noise import measure
from tests.growth import assert_linear

TEXT = "Mara Teel left Halden for the Bank of Oslo"
GOLD = Document("1", TEXT, spans=(Span(0, 9, "PER"), Span(15, 21, "LOC"), Span(30, 42, "ORG")), complete=True)


def test_counts_of_every_kind() -> None:
    guess = replace(GOLD, spans=(Span(0, 9, "PER", 0.9), Span(15, 21, "ORG"), Span(38, 42, "ORG"), Span(10, 14, "LOC")))
    scores = score([GOLD], [guess])
    assert scores.exact == Count(correct=1, predicted=4, gold=3)
    assert scores.boundary == Count(correct=2, predicted=4, gold=3)
    assert scores.type_only == Count(correct=2, predicted=4, gold=3)
    assert scores.per_type["ORG"] == Count(0, 2, 1)
    assert scores.words == 9
    # wrong: left, Halden, Bank and of (now O), Oslo (now B-ORG)
    assert scores.words_correct == 4
    assert scores.documents_correct == 0
    assert scores.incomplete == 0


def test_no_gold_and_no_predictions() -> None:
    empty = replace(GOLD, spans=())
    scores = score([empty], [empty])
    assert (scores.exact.precision, scores.exact.recall, scores.exact.f1) == (0, 0, 0)
    assert scores.words_correct == scores.words
    assert scores.documents_correct == 1
    assert scores.macro == (0, 0, 0)
    assert score([], []).as_json()["token_accuracy"] == 0


def test_incomplete_gold_is_marked_and_precision_is_a_range() -> None:
    gold = replace(GOLD, spans=(Span(0, 9, "PER"),), rejected=(Span(10, 14, ""),), complete=None)
    guess = replace(
        GOLD,
        spans=(Span(0, 9, "PER"), Span(5, 9, "PER"), Span(10, 14, "LOC"), Span(15, 21, "LOC")),
    )
    scores = score([gold], [guess])
    assert scores.incomplete == 1
    assert scores.unjudged == 1, "only Halden: one contradicts a known span, one was ruled out"
    assert scores.precision_range == (0.25, 0.5)
    assert scores.as_json()["gold_complete"] is False


def test_predictions_on_unsure_spans_are_unjudged() -> None:
    gold = replace(GOLD, unsure=(Span(10, 14, ""),))
    scores = score([gold], [replace(GOLD, spans=(*GOLD.spans, Span(10, 14, "LOC"), Span(22, 25, "LOC")))])
    assert (scores.incomplete, scores.unjudged, scores.final) == (0, 1, False)
    assert scores.precision_range == (3 / 5, 4 / 5)


def test_long_documents_are_scored_in_time() -> None:
    def long_document(words: int) -> Document:
        spans = tuple(Span(i, i + 1, "X") for i in range(0, 2 * words, 4))
        return Document("1", "w " * words, spans=spans, complete=True)

    doc = long_document(1000)
    assert measure([doc], [doc]).scores.type_only.correct == len(doc.spans)
    assert_linear(long_document, lambda doc: measure([doc], [doc]), 2500)


def test_thousands_of_labels_or_open_spans_in_one_document_are_scored_in_time() -> None:
    def pair(size: int) -> tuple[Document, Document]:
        """Gold is incomplete; every prediction has a type of its own and a place beside a label."""
        spans, unsure, rejected, guesses = [], [], [], []
        for at in range(0, 8 * size, 8):
            spans.append(Span(at, at + 1, f"L{at}"))
            unsure.append(Span(at + 2, at + 3, ""))
            rejected.append(Span(at + 4, at + 5, ""))
            guesses += [Span(at + place, at + place + 1, f"L{at}") for place in (0, 2, 4, 6)]
        gold = Document("1", "w " * 4 * size, spans=tuple(spans), unsure=tuple(unsure), rejected=tuple(rejected))
        return gold, replace(gold, spans=tuple(guesses), unsure=(), rejected=())

    gold, guess = pair(10)
    scores = score([gold], [guess])
    assert (scores.type_only.correct, scores.unjudged) == (10, 20), "unjudged: on unsure spans, and beside all others"
    assert_linear(pair, lambda docs: score(docs[:1], docs[1:]), 1_000)


def test_spans_that_do_not_fit_the_words_are_recorded_as_lost() -> None:
    guess = replace(GOLD, spans=(Span(1, 9, "PER"),))
    scores = score([GOLD], [guess])
    assert scores.exact.predicted == 1
    assert scores.lost.counts["span does not fit the words"] == 1
