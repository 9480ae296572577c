from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from lacuner.corpus import read
from lacuner.data import Document, Span
from lacuner.noise import measure

TEXT = "Mara Teel left Halden for the Bank of Oslo on Lake Vorn"
GOLD = Document(
    "1",
    TEXT,
    spans=(Span(0, 9, "PER"), Span(15, 21, "LOC"), Span(30, 42, "ORG"), Span(46, 55, "LOC")),
    complete=True,
)


def test_each_entity_counts_as_one_kind() -> None:
    weak = replace(
        GOLD,
        spans=(Span(0, 9, "PER"), Span(15, 21, "PER"), Span(38, 42, "LOC"), Span(51, 55, "LOC"), Span(10, 14, "X")),
    )
    result = measure([weak], [GOLD])
    assert result.kinds["PER"] == {"correct": 1}
    assert result.kinds["LOC"] == {"wrong type": 1, "wrong boundary": 1}
    assert result.kinds["ORG"] == {"wrong type and boundary": 1}
    assert result.kinds["X"] == {"spurious": 1}
    assert result.confusion == {
        ("PER", "PER"): 1,
        ("LOC", "PER"): 1,
        ("LOC", "LOC"): 1,
        ("ORG", "LOC"): 1,
        ("-", "X"): 1,
    }
    assert result.scores.exact.correct == 1


def test_exact_matches_are_not_stolen_by_larger_overlaps() -> None:
    gold = Document("1", TEXT, spans=(Span(0, 4, "PER"), Span(0, 9, "PER")))
    weak = replace(gold, spans=(Span(0, 4, "PER"),))
    result = measure([weak], [gold])
    assert result.total == {"correct": 1, "missing": 1}


def test_density_counts_sentences_against_the_root_of_their_length() -> None:
    dense = Document("2", "a b c d", spans=tuple(Span(i, i + 1, "X") for i in (0, 2, 4)))
    sparse = Document("3", "a b c d", spans=(Span(0, 1, "X"), Span(2, 3, "X")))
    result = measure([dense, sparse], [dense, sparse])
    assert (result.density.sentences, result.density.sparse) == (2, 1)
    assert result.density.by_length == {0: (2, 2.5)}


def test_published_noise_of_the_benchmark_corpora(data: Callable[[str], Path]) -> None:
    result = measure(read(data("wikigold/train.weak.conll")), read(data("wikigold/train.gold.conll"), complete=True))
    exact = result.scores.exact
    assert [round(100 * value, 1) for value in (exact.precision, exact.recall, exact.f1)] == [47.9, 47.6, 47.8]
    result = measure(read(data("bc5cdr/train.weak.conll")), read(data("bc5cdr/train.gold.conll"), complete=True))
    exact = result.scores.exact
    assert [round(100 * value, 1) for value in (exact.precision, exact.recall, exact.f1)] == [89.5, 66.9, 76.6]
