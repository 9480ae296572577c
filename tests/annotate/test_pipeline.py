"""Labelling a corpus: counts, workers, memory, and the numbers on real data."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lacuner import corpus
from lacuner.annotate import (
    Entry,
    EntryPrecision,
    LabellingStatistics,
    annotate,
    format_stop_list,
    function_source,
    gazetteer_source,
    lint,
    load_gazetteer,
    read_stop_list,
    regex_source,
)
from lacuner.annotate.label_model import LabelModel
from lacuner.annotate.lint import COMMON, NUMBER, SEVERAL, SHORT
from lacuner.annotate.pipeline import MAX_DOCUMENTS, _LabelChunk
from lacuner.data import Document, Lost, Span
from lacuner.processes import AHEAD, map_in_order

ENTRIES = [Entry("aspirin", "Chemical"), Entry("lead", "Chemical"), Entry("gout", "Disease"), Entry("gout", "Finding")]


def make_docs(number: int) -> Iterator[Document]:
    rng = random.Random(number)
    words = ["aspirin", "lead", "gout", "and", "42", "Berlin"]
    for place in range(number):
        yield Document(str(place), " ".join(rng.choices(words, k=6)), spans=(Span(0, 1, "GOLD"),), complete=True)


def test_weak_documents_have_nothing_of_the_gold_and_are_not_complete() -> None:
    seen: list[Document] = []
    spy = function_source("spy", lambda doc: seen.append(Document(doc.id, doc.text, spans=doc.spans)))
    docs = list(make_docs(3))
    weak = list(annotate(docs, [gazetteer_source(ENTRIES), spy]))
    assert [doc.id for doc in weak] == ["0", "1", "2"]
    assert all(doc.complete is False for doc in weak)
    assert all(span.label != "GOLD" for doc in weak for span in doc.spans)
    assert [doc.spans for doc in seen] == [(), (), ()]
    assert all(doc.spans == (Span(0, 1, "GOLD"),) for doc in docs)


def test_the_tally() -> None:
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
    assert [(count.entry.surface, count.matches) for count in statistics.top_entries(sources, 2)] == [
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
        assert (counts.spans, counts.unsure, counts.entries, counts.rows) == (
            statistics.spans,
            statistics.unsure,
            statistics.entries,
            statistics.rows,
        )
        assert (counts.documents, counts.matched, counts.characters) == (
            statistics.documents,
            statistics.matched,
            statistics.characters,
        )
        assert (counts.lost.counts, counts.lost.spans) == (statistics.lost.counts, statistics.lost.spans)


@pytest.mark.integration
def test_work_is_sent_where_it_cannot_be_inherited() -> None:
    chunks = [list(make_docs(5)), list(make_docs(6))]
    work = _LabelChunk(LabelModel([gazetteer_source(ENTRIES)]))
    here = [result[0] for _, result in map_in_order(chunks, work, 1)]
    there = [result[0] for _, result in map_in_order(chunks, work, 2, start="spawn")]
    assert here == there
    assert list(map_in_order([1, 2], lambda number: number + 1, 2, start="spawn")) == [(1, 2), (2, 3)]


def double(number: int) -> int:
    return 2 * number


@pytest.mark.integration
def test_only_a_few_items_are_under_way() -> None:
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        for number in range(100):
            taken += 1
            yield number

    given = 0
    for number, result in map_in_order(items(), double, 2):
        assert result == 2 * number == 2 * given
        given += 1
        assert taken - given <= 2 * AHEAD
    assert given == 100


def fail(number: int) -> int:
    raise ValueError(str(number))


@pytest.mark.integration
def test_an_error_in_a_worker_is_an_error_here() -> None:
    with pytest.raises(ValueError, match="1"):
        list(map_in_order([1, 2, 3], fail, 2))


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.integration)])
def test_lost_rows_are_bounded(monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    monkeypatch.setattr(Lost, "MAX_ROWS", 1_000)
    doc = Document("1", "ab " * 10, tuple((start, start + 1) for start in range(0, 30, 3)))
    statistics = LabellingStatistics()
    list(annotate([doc] * 1_500, [regex_source("X", "ab")], statistics=statistics, workers=workers))
    assert len(statistics.lost.spans) == 1_000
    assert len(statistics.lost) == 15_000


def test_lint() -> None:
    texts = ["lead lead lead aspirin", "gout and 42", "x x", "it IT"]
    entries = [*ENTRIES, Entry("42", "Number"), Entry("x", "Letter"), Entry("IT", "Field"), Entry("unused", "X")]
    source = gazetteer_source(entries)
    statistics, precision = LabellingStatistics(), EntryPrecision()
    gold = [Document(str(number), text, spans=(Span(15, 22, "Chemical"),)) for number, text in enumerate(texts)]
    for weak, true in zip(annotate(gold, [source], statistics=statistics), gold, strict=True):
        precision.add(weak, true)
    rows = {row.surface: row for row in lint(source, statistics)}
    assert {surface: row.reasons for surface, row in rows.items()} == {
        "lead": (COMMON,),
        "gout": (SEVERAL,),
        "42": (SHORT, NUMBER),
        "x": (SHORT,),
        "IT": (COMMON, SHORT),
    }
    assert next(iter(rows)) == "lead"
    assert rows["gout"].labels == ("Disease", "Finding")
    assert rows["gout"].matches == 1
    known = {row.surface: row for row in lint(source, statistics, precision=precision)}
    assert (known["lead"].wrong, known["lead"].precision, known["lead"].stop) == (3, 0.0, True)
    assert "aspirin" not in known
    assert (known["x"].wrong, known["x"].stop) == (2, True), "suspicious, and never right: too few to be sure, but"
    assert (known["42"].wrong, known["42"].stop) == (1, True)
    unjudged = {row.surface: row for row in lint(source, statistics, precision=EntryPrecision())}
    assert {(row.right, row.wrong) for row in unjudged.values()} == {(None, None)}
    assert unjudged["lead"].stop, "gold that does not mention it says nothing for it"


def test_the_suggested_stop_list_can_be_read(tmp_path: Path) -> None:
    source, statistics = gazetteer_source(ENTRIES), LabellingStatistics()
    list(annotate([Document("1", "lead and gout")], [source], statistics=statistics))
    (tmp_path / "stop.txt").write_text(format_stop_list(lint(source, statistics)))
    assert read_stop_list(tmp_path / "stop.txt") == {"lead"}


@pytest.mark.parametrize(
    ("case", "spacing", "expected", "within"),
    [
        ("exact", "given", (86.1, 51.4, 64.4), 0.5),
        ("fold", "given", (None, None, 70.8), 0.7),
        ("exact", "tokens", (86.3, 52.5, 65.3), 0.1),
        ("smart", "given", (87.5, 59.8, 71.0), 0.1),
    ],
)
def test_numbers_on_bc5cdr(
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


def test_a_span_without_a_label_contradicts_nothing() -> None:
    sources = [
        function_source("kb", lambda doc: [(0, 4, "PER"), (5, 9, "LOC")]),
        function_source("other", lambda doc: [(5, 9, "ORG")]),
        function_source("any", lambda doc: [(0, 4, ""), (5, 12, "")]),
    ]
    statistics = LabellingStatistics()
    list(annotate([Document("1", "Mara Oslo by")], sources, statistics=statistics))
    assert {key: (row.overlaps, row.conflicts) for key, row in statistics.rows.items()} == {
        ("kb", "PER"): (1, 0),
        ("kb", "LOC"): (1, 1),
        ("other", "ORG"): (1, 1),
        ("any", ""): (2, 0),
    }


KILLED = """
import os, time
from lacuner.processes import map_in_order

def work(number):
    if number > 2:
        time.sleep(60)
    time.sleep(0.2)
    return os.getpid()

for _, worker in map_in_order(range(9), work, 2):
    print(worker, flush=True)
"""


@pytest.mark.integration
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_workers_end_with_their_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = {int(parent.stdout.readline()) for _ in range(2)}
        parent.send_signal(signal.SIGTERM)
        assert parent.wait(10) == -signal.SIGTERM
        deadline = time.monotonic() + 10
        while any(map(alive, workers)) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not any(map(alive, workers))


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False
