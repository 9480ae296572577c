"""The label model: sources combined by priority and by vote."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuner.annotate import (
    Entry,
    LabellingStatistics,
    LabelModel,
    Source,
    annotate,
    capitalised_source,
    function_source,
    gazetteer_source,
)
from lacuner.annotate.label_model import AMBIGUOUS, LOWER_PRIORITY, OUTVOTED, RULED_OUT, SHORTER
from lacuner.data import Document, Span
from lacuner.errors import ConfigError


def fixed(name: str, *spans: tuple[int, int, str]) -> Source:
    return function_source(name, lambda doc: spans)


TEXT = "John Smith saw Paris in May 2020"


DOC = Document("1", TEXT)


def shown(spans: tuple[Span, ...], text: str = TEXT) -> list[tuple[str, str]]:
    return [(text[span.start : span.end], span.label) for span in spans]


def test_policies_for_ambiguous_matches() -> None:
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


def test_priority() -> None:
    one, two = fixed("one", (0, 10, "PER")), fixed("two", (5, 10, "ORG"), (15, 20, "LOC"), (0, 10, "PER"))
    layer = LabelModel([one, two])(DOC)
    assert [span[:3] for span in layer.spans] == [(0, 10, "PER"), (15, 20, "LOC")]
    assert layer.spans[0].source == "one"
    assert [(span[:3], reason) for span, reason in layer.lost] == [((5, 10, "ORG"), SHORTER)]
    layer = LabelModel([fixed("short", (5, 10, "ORG")), fixed("long", (0, 10, "PER"))])(DOC)
    assert [span[:3] for span in layer.spans] == [(5, 10, "ORG")]
    assert [(span[:3], reason) for span, reason in layer.lost] == [((0, 10, "PER"), LOWER_PRIORITY)]


def test_a_later_source_decides_between_ambiguous_labels() -> None:
    unsettled = gazetteer_source([Entry("Paris", "PER"), Entry("Paris", "LOC")])
    layer = LabelModel([unsettled, fixed("rule", (15, 20, "LOC"))])(DOC)
    assert (shown(layer.spans), layer.unsure) == ([("Paris", "LOC")], ())
    assert [(span.label, reason) for span, reason in layer.lost] == [("PER", RULED_OUT)]
    layer = LabelModel([unsettled, fixed("rule", (15, 20, "ORG"))])(DOC)
    assert (layer.spans, len(layer.unsure), len(layer.lost)) == ((), 2, 1)


def test_majority_vote() -> None:
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


def test_names_of_sources_may_contain_the_sign_that_joins_them() -> None:
    statistics = LabellingStatistics()
    sources = [fixed("C++", (0, 10, "PER")), fixed("C", (0, 10, "PER"), (15, 20, "LOC")), fixed("a+b", (0, 4, "PER"))]
    list(annotate([DOC], sources, by="vote", statistics=statistics))
    kept = {(row.source, row.label): row.kept for row in statistics.table()}
    assert kept == {("C++", "PER"): 1, ("C", "PER"): 1, ("C", "LOC"): 1, ("a+b", "PER"): 0}


def test_unsure_spans_inside_a_labeled_span_are_dropped() -> None:
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


triples = st.lists(
    st.tuples(st.integers(0, 12), st.integers(1, 5), st.sampled_from("XY")).map(lambda t: (t[0], t[0] + t[1], t[2])),
    max_size=8,
)


@given(
    st.lists(triples, min_size=1, max_size=4),
    st.sampled_from(["priority", "vote"]),
    st.sampled_from(["unsure", "first", "drop"]),
)
def test_flat_layers_do_not_overlap_and_every_span_is_accounted_for(
    spans_by_source: list[list[tuple[int, int, str]]], by: str, ambiguous: str
) -> None:
    doc = Document("1", "x" * 20)
    sources = [fixed(str(number), *spans) for number, spans in enumerate(spans_by_source)]
    layer = LabelModel(sources, by=by, ambiguous=ambiguous)(doc)  # type: ignore[arg-type]
    places = sorted({(span.start, span.end) for span in (*layer.spans, *layer.unsure)})
    assert all(one[1] <= two[0] for one, two in pairwise(places))
    kept = {span[:3] for span in (*layer.spans, *layer.unsure)} | {span[:3] for span, _ in layer.lost}
    assert kept == {triple for spans in spans_by_source for triple in spans}
    assert len({span[:2] for span in layer.spans}) == len(layer.spans)
