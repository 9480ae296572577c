"""Lint: which entries are suspicious, without gold and with it."""

from __future__ import annotations

from pathlib import Path

from lacuner.annotate import (
    Entry,
    EntryPrecision,
    LabellingStatistics,
    annotate,
    format_stop_list,
    gazetteer_source,
    lint,
    per_document_source,
    read_stop_list,
)
from lacuner.annotate.lint import COMMON, NUMBER, SEVERAL, SHORT
from lacuner.data import Document, Span

ENTRIES = [Entry("aspirin", "Chemical"), Entry("lead", "Chemical"), Entry("gout", "Disease"), Entry("gout", "Finding")]


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
    assert (known["x"].wrong, known["x"].stop) == (2, True), "suspicious and never right, though rarely matched"
    assert (known["42"].wrong, known["42"].stop) == (1, True)
    unjudged = {row.surface: row for row in lint(source, statistics, precision=EntryPrecision())}
    assert {(row.right, row.wrong) for row in unjudged.values()} == {(None, None)}
    assert unjudged["lead"].stop, "gold that does not mention it says nothing for it"


def test_the_suggested_stop_list_can_be_read(tmp_path: Path) -> None:
    source, statistics = gazetteer_source(ENTRIES), LabellingStatistics()
    list(annotate([Document("1", "lead and gout")], [source], statistics=statistics))
    (tmp_path / "stop.txt").write_text(format_stop_list(lint(source, statistics)))
    assert read_stop_list(tmp_path / "stop.txt") == {"lead"}


def test_entries_per_document_are_counted_and_linted() -> None:
    lists = {
        "a": [Entry("red", "COLOUR"), Entry("lead", "METAL")],
        "none": [Entry("never seen", "X")],
        "b": [Entry("lead", "METAL"), Entry("lead", "LEASH"), Entry("tin", "METAL")],
    }
    source, statistics = per_document_source(lists), LabellingStatistics()
    docs = [Document("a", "lead and lead, lead"), Document("b", "lead, tin"), Document("c", "lead")]
    weak = list(annotate(docs, [source], statistics=statistics))
    assert [len(doc.spans) + len(doc.unsure) for doc in weak] == [3, 3, 0]
    assert {(source.entries[number], times) for number, times in statistics.entries[source.name].items()} == {
        (Entry("lead", "METAL"), 3),
        (Entry("lead", "METAL"), 1),
        (Entry("lead", "LEASH"), 1),
        (Entry("tin", "METAL"), 1),
    }
    (row,) = lint(source, statistics)
    apart = per_document_source({"a": [Entry("Halden", "PLACE")], "b": [Entry("Halden", "PERSON")]})
    many = LabellingStatistics()
    list(annotate([Document("a", "Halden"), Document("b", "Halden")], [apart], statistics=many))
    assert lint(apart, many) == [], "each document knows what it means"
    assert (row.surface, row.labels, row.matches) == ("lead", ("METAL", "LEASH"), 4)
    assert row.reasons == (SEVERAL, COMMON)
