"""Labelling functions: gazetteers, patterns, functions, stop lists."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lacuner.annotate import (
    Entry,
    LabellingStatistics,
    annotate,
    apply_stop_list,
    capitalised_source,
    function_source,
    gazetteer_source,
    per_document_source,
    read_stop_list,
    regex_source,
)
from lacuner.annotate.label_model import MISALIGNED
from lacuner.data import Document, Span, Words
from lacuner.errors import ConfigError, GazetteerError

TEXT = "John Smith saw Paris in May 2020"


DOC = Document("1", TEXT)


def shown(spans: tuple[Span, ...], text: str = TEXT) -> list[tuple[str, str]]:
    return [(text[span.start : span.end], span.label) for span in spans]


def test_gazetteer_spans_have_source_name_and_weight() -> None:
    source = gazetteer_source([Entry("john smith", "PER", 0.9), Entry("Paris", "LOC")], name="kb")
    found = source.find(DOC)
    assert found.spans == [Span(0, 10, "PER", 0.9, "kb"), Span(15, 20, "LOC", None, "kb")]
    assert found.entries == [0, 1]


@pytest.mark.parametrize("words", [None, ((0, 4), (5, 10), (11, 14), (15, 20), (21, 32))])
def test_an_entry_with_thousands_of_labels_is_one_unsure_span_of_any_type(words: Words | None) -> None:
    """One span per label and match would fill the memory."""
    entries = [Entry("Paris", f"L{number}") for number in range(3_000)]
    found = gazetteer_source([*entries, Entry("John", "PER"), Entry("John", "LOC")]).find(replace(DOC, words=words))
    assert found.unsure == [Span(15, 20, "", None, "dictionary")] and len(found.entries) < 200
    assert [[span.label for span in spans] for spans in found.ambiguous] == [["PER", "LOC"]]
    [doc] = annotate([DOC], [gazetteer_source(entries)], ambiguous="first")
    assert (doc.spans, doc.unsure) == ((), tuple(found.unsure))


def test_entries_per_document() -> None:
    source = per_document_source({"1": [Entry("paris", "LOC")]})
    assert [span.label for span in source.find(DOC).spans] == ["LOC"]
    assert source.find(Document("2", TEXT)).spans == ()


def test_unmatched_entries_are_counted() -> None:
    source = gazetteer_source([Entry("Paris", "LOC"), Entry("\u00ad", "X")], stop=["PARIS"])
    assert (source.stopped, source.empty) == (1, 1)
    assert source.find(DOC).spans == []
    terms = {"1": [Entry("Paris", "LOC"), Entry("\u00ad", "X")], "2": [Entry("PARIS", "LOC"), Entry("May", "X")]}
    source = per_document_source(terms, stop=["paris"])
    assert (source.stopped, source.empty) == (2, 1)
    assert source.find(DOC).spans == []


def test_regex_sources() -> None:
    assert [span[:3] for span in regex_source("DATE", r"\b\d{4}\b").find(DOC).spans] == [(28, 32, "DATE")]
    assert [span[:3] for span in regex_source("LOC", r"saw (?P<entity>\w+)").find(DOC).spans] == [(15, 20, "LOC")]
    assert regex_source("X", r"\b").find(DOC).spans == []
    assert [span[:3] for span in regex_source("", "May").find(DOC).unsure] == [(24, 27, "")]
    with pytest.raises(ConfigError, match=r"the pattern '\(' of X is not a regular expression"):
        regex_source("X", "(")


def test_function_sources() -> None:
    assert function_source("f", lambda doc: None).find(DOC).spans == []
    found = function_source("f", lambda doc: [Span(0, 4, "PER", 0.5), (15, 20, "")]).find(DOC)
    assert found.spans == [Span(0, 4, "PER", 0.5, "f")]
    assert found.unsure == [Span(15, 20, "", None, "f")]
    for bad in [(0, 99, "X"), (3, 3, "X"), (-1, 2, "X"), ("a", 1, "X"), 5, (1, 2)]:
        with pytest.raises(ConfigError, match=r"document '1': the source 'f' gave"):
            function_source("f", lambda doc, bad=bad: [bad]).find(DOC)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Yesterday we met Angela Merkel in Berlin.", ["Angela Merkel", "Berlin"]),
        ("Berlin is big. Munich too.", []),
        ("The University of Oxford and I won.", ["University of Oxford"]),
        ("Angela Merkel spoke. In Paris it rained.", ["Angela Merkel", "Paris"]),
        ("He said: “Well, Jean-Luc O’Neill!”", ["Jean-Luc O’Neill"]),
        ("nothing here, 中文", []),
        ("", []),
    ],
)
def test_capitalised_phrases(text: str, expected: list[str]) -> None:
    found = capitalised_source().find(Document("1", text))
    assert [text[span.start : span.end] for span in found.unsure] == expected
    assert all(span.label == "" for span in found.unsure)


def test_stop_lists(tmp_path: Path) -> None:
    path = tmp_path / "stop.txt"
    path.write_text("paris\t12 matches: a common word\n\n May \n")
    assert read_stop_list(path) == {"paris", "May"}
    source = apply_stop_list(regex_source("X", "Paris|John"), read_stop_list(path))
    assert shown(tuple(source.find(DOC).spans)) == [("John", "X")]
    with pytest.raises(GazetteerError, match="cannot read this file"):
        read_stop_list(tmp_path / "none.txt")


def test_spans_align_with_given_words_and_others_are_counted() -> None:
    words = ((0, 4), (5, 10), (11, 14), (15, 23), (24, 27), (28, 32))
    doc = Document("1", TEXT, words)
    kb = gazetteer_source([Entry("John Smith", "PER"), Entry("Paris", "LOC")])
    statistics = LabellingStatistics()
    (weak,) = annotate([doc], [kb, regex_source("DATE", "02")], statistics=statistics)
    assert shown(weak.spans) == [("John Smith", "PER")]
    assert [(row.text, row.reason) for row in statistics.lost.spans] == [("Paris", MISALIGNED), ("02", MISALIGNED)]
    (without_words,) = annotate([DOC], [kb])
    assert without_words.words is None
    assert DOC.words is None
