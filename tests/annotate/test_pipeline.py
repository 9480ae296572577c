"""Labelling a corpus: statistics, workers, memory, and scores on real data."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from lacuner import corpus
from lacuner.annotate import (
    Entry,
    LabellingStatistics,
    annotate,
    function_source,
    gazetteer_source,
    load_gazetteer,
    regex_source,
)
from lacuner.annotate.label_model import LabelModel
from lacuner.annotate.pipeline import MAX_DOCUMENTS, _label_chunk
from lacuner.data import Document, Lost, Span
from lacuner.processes import map_in_order

ENTRIES = [Entry("aspirin", "Chemical"), Entry("lead", "Chemical"), Entry("gout", "Disease"), Entry("gout", "Finding")]


def make_docs(number: int) -> Iterator[Document]:
    rng = random.Random(number)
    words = ["aspirin", "lead", "gout", "and", "42", "Berlin"]
    for place in range(number):
        yield Document(str(place), " ".join(rng.choices(words, k=6)), spans=(Span(0, 1, "GOLD"),), complete=True)


def test_existing_annotation_is_dropped_and_not_shown_to_sources() -> None:
    seen: list[Document] = []
    spy = function_source("spy", lambda doc: seen.append(Document(doc.id, doc.text, spans=doc.spans)))
    docs = list(make_docs(3))
    weak = list(annotate(docs, [gazetteer_source(ENTRIES), spy]))
    assert [doc.id for doc in weak] == ["0", "1", "2"]
    assert all(doc.complete is False for doc in weak)
    assert all(span.label != "GOLD" for doc in weak for span in doc.spans)
    assert [doc.spans for doc in seen] == [(), (), ()]
    assert all(doc.spans == (Span(0, 1, "GOLD"),) for doc in docs)


def test_statistics() -> None:
    docs = [Document("1", "aspirin, aspirin and gout"), Document("2", "nothing"), Document("3", "lead 42")]
    sources = [gazetteer_source(ENTRIES), regex_source("Number", r"\d+"), regex_source("Drug", "aspirin")]
    statistics = LabellingStatistics()
    list(annotate(docs, sources, statistics=statistics))
    assert (statistics.documents, statistics.matched, statistics.characters) == (3, 2, 39)
    assert statistics.spans == {"Chemical": 3, "Number": 1}
    assert statistics.unsure == {"Disease": 1, "Finding": 1}
    table = {(row.source, row.label): row for row in statistics.table()}
    chemical = table["dictionary", "Chemical"]
    assert (chemical.spans, chemical.kept, chemical.documents, chemical.overlaps, chemical.conflicts) == (3, 3, 2, 2, 2)
    drug = table["regex Drug", "Drug"]
    assert (drug.spans, drug.kept, drug.documents, drug.overlaps, drug.conflicts) == (2, 0, 1, 2, 2)
    assert table["regex Number", "Number"].overlaps == 0
    assert [(entry.surface, matches) for _, entry, matches in statistics.top_entries(sources, 2)] == [
        ("aspirin", 2),
        ("lead", 1),
    ]
    assert len(statistics.lost) == 2


def run(docs: list[Document], workers: int) -> tuple[list[Document], LabellingStatistics]:
    statistics = LabellingStatistics()
    sources = [gazetteer_source(ENTRIES, stop=["lead"]), regex_source("Number", r"\d+")]
    return list(annotate(docs, sources, statistics=statistics, workers=workers)), statistics


@pytest.mark.integration
def test_workers_change_nothing() -> None:
    docs = list(make_docs(2 * MAX_DOCUMENTS + 7))
    one, statistics = run(docs, 1)
    assert len(one) == len(docs)
    for workers in (2, 3):
        many, counts = run(docs, workers)
        assert many == one
        assert [doc.spans for doc in many] == [doc.spans for doc in one]
        assert all(isinstance(span, Span) for doc in many for span in doc.spans)
        assert (counts.spans, counts.unsure, counts.entries, counts.by_source) == (
            statistics.spans,
            statistics.unsure,
            statistics.entries,
            statistics.by_source,
        )
        assert (counts.documents, counts.matched, counts.characters) == (
            statistics.documents,
            statistics.matched,
            statistics.characters,
        )
        assert (counts.lost.counts, counts.lost.spans) == (statistics.lost.counts, statistics.lost.spans)


@pytest.mark.integration
def test_sources_can_be_sent_to_spawned_workers() -> None:
    chunks = [list(make_docs(5)), list(make_docs(6))]
    work = partial(_label_chunk, LabelModel([gazetteer_source(ENTRIES)]))
    here = [result[0] for _, result in map_in_order(chunks, work, 1)]
    there = [result[0] for _, result in map_in_order(chunks, work, 2, start="spawn")]
    assert here == there
    assert list(map_in_order([1, 2], lambda number: number + 1, 2, start="spawn")) == [(1, 2), (2, 3)]


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.integration)])
def test_lost_rows_are_bounded(monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    monkeypatch.setattr(Lost, "MAX_ROWS", 1_000)
    doc = Document("1", "ab " * 10, tuple((start, start + 1) for start in range(0, 30, 3)))
    statistics = LabellingStatistics()
    list(annotate([doc] * 1_500, [regex_source("X", "ab")], statistics=statistics, workers=workers))
    assert len(statistics.lost.spans) == 1_000
    assert len(statistics.lost) == 15_000


@pytest.mark.parametrize(
    ("case", "spacing", "expected", "within"),
    [
        ("exact", "given", (86.1, 51.4, 64.4), 0.5),
        ("fold", "given", (None, None, 70.8), 0.7),
        ("exact", "tokens", (86.3, 52.5, 65.3), 0.1),
        ("smart", "given", (87.5, 59.8, 71.0), 0.1),
    ],
)
def test_scores_on_bc5cdr(
    data: Callable[[str], Path], case: str, spacing: str, expected: tuple[float | None, ...], within: float
) -> None:
    entries = load_gazetteer(data("bc5cdr/dictionary.tsv")).entries
    gold = list(corpus.read(data("bc5cdr/test.conll")))
    statistics = LabellingStatistics()
    weak = annotate(gold, [gazetteer_source(entries, case=case, spacing=spacing)], statistics=statistics)  # type: ignore[arg-type]
    right = given = true = 0
    for one, other in zip(weak, gold, strict=True):
        ours, theirs = {span[:3] for span in one.spans}, {span[:3] for span in other.spans}
        right, given, true = right + len(ours & theirs), given + len(ours), true + len(theirs)
    precision, recall = right / given, right / true
    scores = (precision, recall, 2 * precision * recall / (precision + recall))
    for score, wanted in zip(scores, expected, strict=True):
        assert wanted is None or 100 * score == pytest.approx(wanted, abs=within)
    assert statistics.documents == 4797


def test_a_span_without_a_label_conflicts_with_nothing() -> None:
    sources = [
        function_source("kb", lambda doc: [(0, 4, "PER"), (5, 9, "LOC")]),
        function_source("other", lambda doc: [(5, 9, "ORG")]),
        function_source("any", lambda doc: [(0, 4, ""), (5, 12, "")]),
    ]
    statistics = LabellingStatistics()
    list(annotate([Document("1", "Mara Oslo by")], sources, statistics=statistics))
    assert {(row.source, row.label): (row.overlaps, row.conflicts) for row in statistics.table()} == {
        ("kb", "PER"): (1, 0),
        ("kb", "LOC"): (1, 1),
        ("other", "ORG"): (1, 1),
        ("any", ""): (2, 0),
    }
