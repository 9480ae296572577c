"""Sources, and one layer made of several."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuner.annotate import (
    Entry,
    LabellingStatistics,
    LabelModel,
    Source,
    annotate,
    apply_stop_list,
    capitalised_source,
    function_source,
    gazetteer_source,
    lint,
    per_document_source,
    read_stop_list,
    regex_source,
)
from lacuner.annotate.intervals import DisjointIntervals, IntervalSet
from lacuner.annotate.label_model import AMBIGUOUS, LOWER_PRIORITY, MISALIGNED, OUTVOTED, RULED_OUT, SHORTER
from lacuner.annotate.lint import COMMON, SEVERAL
from lacuner.data import Document, Span
from lacuner.errors import ConfigError, GazetteerError


def fixed(name: str, *spans: tuple[int, int, str]) -> Source:
    return function_source(name, lambda doc: spans)


TEXT = "John Smith saw Paris in May 2020"
DOC = Document("1", TEXT)


def shown(spans: tuple[Span, ...], text: str = TEXT) -> list[tuple[str, str]]:
    return [(text[span.start : span.end], span.label) for span in spans]


def test_a_dictionary_source_gives_spans_with_name_and_weight() -> None:
    source = gazetteer_source([Entry("john smith", "PER", 0.9), Entry("Paris", "LOC")], name="kb")
    found = source.find(DOC)
    assert found.spans == [Span(0, 10, "PER", 0.9, "kb"), Span(15, 20, "LOC", None, "kb")]
    assert found.entries == [0, 1]


def test_an_ambiguous_match_is_a_choice_and_policies_decide() -> None:
    source = gazetteer_source([Entry("Paris", "PER"), Entry("Paris", "LOC"), Entry("John Smith", "PER")])
    assert [[span.label for span in choice] for choice in source.find(DOC).ambiguous] == [["PER", "LOC"]]
    unsure = LabelModel([source])(DOC)
    assert shown(unsure.spans) == [("John Smith", "PER")]
    assert shown(unsure.unsure) == [("Paris", "LOC"), ("Paris", "PER")]
    assert unsure.lost == []
    first = LabelModel([source], ambiguous="first")(DOC)
    assert shown(first.spans) == [("John Smith", "PER"), ("Paris", "PER")]
    assert [(span.label, reason) for span, reason in first.lost] == [("LOC", AMBIGUOUS)]
    drop = LabelModel([source], ambiguous="drop")(DOC)
    assert (shown(drop.spans), drop.unsure) == ([("John Smith", "PER")], ())
    assert len(drop.lost) == 2


def test_terms_of_a_document() -> None:
    source = per_document_source({"1": [Entry("paris", "LOC")]})
    assert [span.label for span in source.find(DOC).spans] == ["LOC"]
    assert source.find(Document("2", TEXT)).spans == ()


def test_the_terms_of_documents_are_counted_and_linted() -> None:
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


def test_entries_that_are_not_looked_for_are_counted() -> None:
    source = gazetteer_source([Entry("Paris", "LOC"), Entry("\u00ad", "X")], stop=["PARIS"])
    assert source.skipped == {"on the stop list": 1, "of invisible characters": 1}
    assert source.find(DOC).spans == []
    terms = {"1": [Entry("Paris", "LOC"), Entry("\u00ad", "X")], "2": [Entry("PARIS", "LOC"), Entry("May", "X")]}
    source = per_document_source(terms, stop=["paris"])
    assert source.skipped == {"on the stop list": 2, "of invisible characters": 1}
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
    with pytest.raises(GazetteerError, match="cannot read this stop list"):
        read_stop_list(tmp_path / "none.txt")


def test_priority() -> None:
    one, two = fixed("one", (0, 10, "PER")), fixed("two", (5, 10, "ORG"), (15, 20, "LOC"), (0, 10, "PER"))
    layer = LabelModel([one, two])(DOC)
    assert [span[:3] for span in layer.spans] == [(0, 10, "PER"), (15, 20, "LOC")]
    assert layer.spans[0].source == "one"
    assert [(span[:3], reason) for span, reason in layer.lost] == [((5, 10, "ORG"), SHORTER)]
    layer = LabelModel([fixed("short", (5, 10, "ORG")), fixed("long", (0, 10, "PER"))])(DOC)
    assert [span[:3] for span in layer.spans] == [(5, 10, "ORG")]
    assert [(span[:3], reason) for span, reason in layer.lost] == [((0, 10, "PER"), LOWER_PRIORITY)]


def test_a_later_source_settles_what_an_earlier_could_not() -> None:
    unsettled = gazetteer_source([Entry("Paris", "PER"), Entry("Paris", "LOC")])
    layer = LabelModel([unsettled, fixed("rule", (15, 20, "LOC"))])(DOC)
    assert (shown(layer.spans), layer.unsure) == ([("Paris", "LOC")], ())
    assert [(span.label, reason) for span, reason in layer.lost] == [("PER", RULED_OUT)]
    layer = LabelModel([unsettled, fixed("rule", (15, 20, "ORG"))])(DOC)
    assert (layer.spans, len(layer.unsure), len(layer.lost)) == ((), 2, 1)


def test_votes() -> None:
    a, b, c = fixed("a", (0, 10, "PER")), fixed("b", (0, 10, "PER")), fixed("c", (0, 10, "ORG"), (15, 20, "LOC"))
    layer = LabelModel([a, b, c, fixed("silent")], by="vote")(DOC)
    assert layer.spans == (Span(0, 10, "PER", 2 / 3, "a+b"), Span(15, 20, "LOC", 1.0, "c"))
    assert [(span[:3], reason) for span, reason in layer.lost] == [((0, 10, "ORG"), OUTVOTED)]
    draw = LabelModel([a, c], by="vote")(DOC)
    assert [span[:3] for span in draw.unsure] == [(0, 10, "ORG"), (0, 10, "PER")]
    assert {span.score for span in draw.unsure} == {0.5}
    longer = LabelModel([fixed("x", (0, 4, "PER")), a], by="vote")(DOC)
    assert [span[:3] for span in longer.spans] == [(0, 10, "PER")]
    many = LabelModel([fixed("x", (0, 4, "PER")), fixed("y", (0, 4, "PER")), a], by="vote")(DOC)
    assert [(span[:3], span.score) for span in many.spans] == [((0, 4, "PER"), 2 / 3)]
    split = gazetteer_source([Entry("Paris", "PER"), Entry("Paris", "LOC")])
    settled = LabelModel([split, fixed("rule", (15, 20, "LOC"))], by="vote")(DOC)
    assert settled.spans == (Span(15, 20, "LOC", 0.75, "dictionary+rule"),)


def test_candidates_stay_unsure_unless_answered() -> None:
    layer = LabelModel([fixed("kb", (15, 20, "LOC")), capitalised_source()])(DOC)
    assert [span[:3] for span in layer.spans] == [(15, 20, "LOC")]
    assert [TEXT[span.start : span.end] for span in layer.unsure] == ["John Smith"]


def test_all_overlaps_can_be_kept() -> None:
    source = gazetteer_source([Entry("John Smith", "PER"), Entry("Smith", "PER")], overlaps="all")
    assert shown(LabelModel([source], overlaps="all")(DOC).spans) == [("John Smith", "PER"), ("Smith", "PER")]
    flat = LabelModel([source])(DOC)
    assert shown(flat.spans) == [("John Smith", "PER")]
    assert [reason for _, reason in flat.lost] == [SHORTER]


def test_settings_are_checked() -> None:
    with pytest.raises(ConfigError, match="two sources are called 'a'"):
        LabelModel([fixed("a"), fixed("a")])
    with pytest.raises(ConfigError, match="there is no source"):
        annotate([], [])
    with pytest.raises(ConfigError, match="by is 'luck', but must be priority or vote"):
        LabelModel([fixed("a")], by="luck")  # type: ignore[arg-type]


def test_given_words_are_respected_and_misfits_counted() -> None:
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


triples = st.lists(
    st.tuples(st.integers(0, 12), st.integers(1, 5), st.sampled_from("XY")).map(lambda t: (t[0], t[0] + t[1], t[2])),
    max_size=8,
)


@given(
    st.lists(triples, min_size=1, max_size=4),
    st.sampled_from(["priority", "vote"]),
    st.sampled_from(["unsure", "first", "drop"]),
)
def test_flat_layers_do_not_overlap_and_nothing_vanishes(
    said: list[list[tuple[int, int, str]]], by: str, ambiguous: str
) -> None:
    doc = Document("1", "x" * 20)
    sources = [fixed(str(number), *spans) for number, spans in enumerate(said)]
    layer = LabelModel(sources, by=by, ambiguous=ambiguous)(doc)  # type: ignore[arg-type]
    places = sorted({(span.start, span.end) for span in (*layer.spans, *layer.unsure)})
    assert all(one[1] <= two[0] for one, two in pairwise(places))
    kept = {span[:3] for span in (*layer.spans, *layer.unsure)} | {span[:3] for span, _ in layer.lost}
    assert kept == {triple for spans in said for triple in spans}
    assert len({span[:2] for span in layer.spans}) == len(layer.spans)


@given(triples, st.integers(0, 12), st.integers(1, 5))
def test_ranges(triples: list[tuple[int, int, str]], start: int, size: int) -> None:
    ranges, end = [triple[:2] for triple in triples], start + size
    assert IntervalSet(ranges).overlaps(start, end) == any(low < end and start < high for low, high in ranges)
    assert IntervalSet(ranges).covers(start, end) == any(low <= start and end <= high for low, high in ranges)
    disjoint, kept = DisjointIntervals(), []
    for low, high in ranges:
        touched = [other for other in sorted(kept) if other[0] < high and low < other[1]]
        assert disjoint.first_overlap(low, high) == (touched[0] if touched else None)
        if not touched:
            disjoint.add(low, high)
            kept.append((low, high))
