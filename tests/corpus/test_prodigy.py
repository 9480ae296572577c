"""Prodigy: what an answer means in each interface, and lines about one text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lacuner.corpus import write
from lacuner.data import Document, Span
from lacuner.errors import CorpusError
from tests.corpus.conftest import ReadSample

TEXT = "Mara Teel left Halden."
NAME, PLACE = Span(0, 9, "PERSON"), Span(15, 21, "PLACE")
TOKENS = [
    {"text": "Mara", "start": 0, "end": 4, "id": 0, "ws": True},
    {"text": "Teel", "start": 5, "end": 9, "id": 1, "ws": True},
    {"text": "left", "start": 10, "end": 14, "id": 2, "ws": True},
    {"text": "Halden", "start": 15, "end": 21, "id": 3, "ws": False},
    {"text": ".", "start": 21, "end": 22, "id": 4, "ws": False},
]


def task(*spans: Span, answer: str | None = None, view: str | None = None, **more: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"text": TEXT, "spans": [{"start": s.start, "end": s.end, "label": s.label} for s in spans]}
    row |= {"_task_hash": 2}
    row |= {} if answer is None else {"answer": answer}
    return row | ({} if view is None else {"_view_id": view}) | more


@pytest.mark.parametrize(
    ("row", "spans", "rejected", "unsure", "complete"),
    [
        (task(NAME, PLACE, answer="accept", view="ner_manual"), [NAME, PLACE], [], [], True),
        (task(answer="accept", view="ner_manual"), [], [], [], True),
        (task(NAME, answer="accept", view="spans_manual"), [NAME], [], [], True),
        (task(NAME, answer="accept", view="ner"), [NAME], [], [], False),
        (task(NAME, answer="reject", view="ner"), [], [NAME], [], False),
        (task(NAME, answer="ignore", view="ner"), [], [], [NAME], False),
        (task(NAME, PLACE, answer="ignore", view="ner_manual"), [], [], [NAME, PLACE], False),
        (task(NAME, PLACE, answer="reject", view="ner"), [], [], [NAME, PLACE], False),
        (task(NAME, answer="reject", view="ner_manual"), [], [], [NAME], False),
        (task(NAME, answer="accept"), [NAME], [], [], None),
        (task(NAME, answer="reject"), [], [NAME], [], False),
        (task(NAME), [NAME], [], [], None),
    ],
)
def test_answers_are_our_states(
    read_sample: ReadSample,
    row: dict[str, Any],
    spans: list[Span],
    rejected: list[Span],
    unsure: list[Span],
    complete: bool | None,
) -> None:
    sample = read_sample(row)
    assert sample.format == "prodigy"
    [doc] = sample.docs
    assert (doc.spans, doc.rejected, doc.unsure) == (tuple(spans), tuple(rejected), tuple(unsure))
    assert doc.complete is complete
    whole = row.get("answer") == "reject" and unsure
    assert len(sample.lost) == (len(unsure) if whole else 0), "a rejection of several spans is reported"


def test_tokens_are_words_and_token_end_is_inclusive(read_sample: ReadSample) -> None:
    spans = [{"start": 0, "end": 9, "token_start": 0, "token_end": 1, "label": "PERSON"}]
    row = {
        "text": TEXT,
        "tokens": TOKENS,
        "spans": spans,
        "answer": "accept",
        "_view_id": "ner_manual",
        "meta": {"n": 1},
    }
    [doc] = read_sample(row).docs
    assert doc.words == ((0, 4), (5, 9), (10, 14), (15, 21), (21, 22))
    assert doc.spans == (NAME,)
    assert doc.meta == {"n": 1}


def test_lines_about_one_text_are_merged(read_sample: ReadSample) -> None:
    rows = [
        task(NAME, answer="accept", view="ner", _input_hash=1),
        {"text": "Another.", "spans": [], "answer": "accept", "_view_id": "ner_manual", "_input_hash": 2},
        task(PLACE, answer="reject", view="ner", _input_hash=1),
    ]
    first, second = read_sample(*rows).docs
    assert (first.spans, first.rejected, first.complete) == ((NAME,), (PLACE,), False)
    assert (second.text, second.complete) == ("Another.", True)


def test_annotators_who_disagree(read_sample: ReadSample) -> None:
    rows = [
        task(NAME, PLACE, answer="accept", view="ner_manual", _input_hash=1, _session_id="db-anna"),
        task(NAME, answer="accept", view="ner_manual", _input_hash=1, _session_id="db-bram"),
    ]
    sample = read_sample(*rows)
    [doc] = sample.docs
    assert (doc.spans, doc.unsure, doc.complete) == ((NAME,), (PLACE,), True)
    assert sample.lost.counts == {"annotators disagree, so the span became unsure": 1}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (task(NAME, answer="maybe"), "`answer` must be"),
        ({**task(), "spans": [{"start": 0, "end": 4}], "answer": "accept"}, "without a label"),
        ({**task(), "spans": [[0, 4, "X"]]}, "must be an object"),
        ({**task(), "tokens": ["Mara"]}, "whole numbers"),
        ({**task(), "tokens": [{"start": 5, "end": 9}, {"start": 0, "end": 4}]}, "out of order"),
    ],
)
def test_mistakes_are_one_sentence(read_sample: ReadSample, row: dict[str, Any], words: str) -> None:
    with pytest.raises(CorpusError, match=words):
        read_sample(row, format="prodigy")


def test_the_format_jsonl_refuses_answers(read_sample: ReadSample) -> None:
    with pytest.raises(CorpusError, match="--format prodigy"):
        read_sample(task(NAME, answer="reject"), format="jsonl")


def test_relations_are_counted(read_sample: ReadSample) -> None:
    assert read_sample(task(NAME, relations=[{"head": 1, "child": 2}])).lost.counts == {"relation not read": 1}


def test_what_prodigy_loads(tmp_path: Path) -> None:
    words = ((0, 4), (5, 9), (10, 14), (15, 21), (21, 22))
    weak = Document("a", TEXT, words, (NAME._replace(score=0.8, source="gazetteer"),), rejected=(Span(10, 14, ""),))
    gold = Document("b", TEXT, spans=(NAME,), complete=True)
    write([weak, gold], tmp_path / "x.jsonl", format="prodigy")
    rows = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    span = {
        "start": 0,
        "end": 9,
        "label": "PERSON",
        "token_start": 0,
        "token_end": 1,
        "score": 0.8,
        "source": "gazetteer",
    }
    assert rows[0] == {"id": "a", "text": TEXT, "tokens": TOKENS, "spans": [span]}, "no answer: for review"
    assert (rows[1]["answer"], rows[1]["_view_id"]) == ("reject", "ner")
    assert (rows[2]["answer"], rows[2]["_view_id"]) == ("accept", "ner_manual")


def test_offsets_in_another_unit(read_sample: ReadSample) -> None:
    row = {
        "text": "🚀 Mara left",
        "spans": [{"start": 3, "end": 7, "label": "PER"}],
        "answer": "reject",
        "_view_id": "ner",
    }
    assert read_sample(row, offsets="utf-16").docs[0].rejected == (Span(2, 6, "PER"),)


REVIEWED = [
    {**task(NAME, answer="accept"), "sessions": ["db-anna"], "default": True},
    {**task(answer="accept"), "sessions": ["db-bram"], "default": False},
]


@pytest.mark.parametrize(
    ("more", "complete"),
    [
        ({"view": "review", "view_id": "ner_manual", "versions": REVIEWED}, True),
        ({"view": "review", "view_id": "ner", "versions": REVIEWED}, False),
        ({"view": "blocks", "_is_binary": True}, False),
        ({"view": "blocks", "_is_binary": False}, None),
        ({"view": "ner_manual", "_is_binary": False}, True),
    ],
)
def test_reviews_and_blocks(read_sample: ReadSample, more: dict[str, Any], complete: bool | None) -> None:
    """A review has the interface of its versions, which are not read as annotators of their own."""
    sample = read_sample(task(NAME, answer="accept", **more))
    assert [(doc.spans, doc.complete) for doc in sample.docs] == [((NAME,), complete)]
    assert sample.lost.counts == ({"version before the review not read": 2} if "versions" in more else {})


@pytest.mark.parametrize(("is_binary", "state"), [(True, "rejected"), (False, "unsure")])
def test_a_rejection_that_is_not_about_one_span(read_sample: ReadSample, is_binary: bool, state: str) -> None:
    [doc] = read_sample(task(NAME, answer="reject", view="blocks", _is_binary=is_binary)).docs
    assert getattr(doc, state) == (NAME,)


@pytest.mark.parametrize("more", [{"accept": ["A"], "options": [{"id": "A", "text": "a"}]}, {"label": "PERSON"}])
def test_labels_of_the_whole_text_are_counted(read_sample: ReadSample, more: dict[str, Any]) -> None:
    sample = read_sample({**task(answer="accept"), **more})
    assert sample.format == "prodigy" and sample.lost.counts == {"label of the whole text not read": 1}
