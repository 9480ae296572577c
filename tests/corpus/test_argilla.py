"""Argilla: records of versions 1 and 2, and the columns of a data set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lacuner.corpus import read, write
from lacuner.data import Document, Span
from lacuner.errors import CorpusError
from tests.corpus.conftest import ReadSample

TEXT = "Mara Teel left Halden."
WORDS = ["Mara", "Teel", "left", "Halden", "."]
NAME, PLACE = Span(0, 9, "PERSON"), Span(15, 21, "PLACE")
PERSON = {"start": 0, "end": 9, "label": "PERSON"}


def record(**more: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"suggestions": {}, "responses": {}, "vectors": {}, "metadata": {}, "status": "pending"}
    return {"id": "a", "fields": {"text": TEXT}, **empty, **more}


@pytest.mark.parametrize(
    ("row", "spans", "complete"),
    [
        (record(), (), False),
        (
            record(suggestions={"spans": {"value": [PERSON], "score": [0.8], "agent": "m"}}),
            (Span(0, 9, "PERSON", 0.8, "m"),),
            False,
        ),
        (
            record(suggestions={"spans": {"value": [PERSON], "score": 0.8, "agent": None}}),
            (Span(0, 9, "PERSON", 0.8),),
            False,
        ),
        (record(responses={"spans": [{"value": [PERSON], "user_id": "u"}]}, status="completed"), (NAME,), True),
        (record(responses={"spans": [{"value": [PERSON], "user_id": "u"}]}), (NAME,), False),
        (record(responses={"spans": [{"value": [PERSON], "status": "draft"}]}), (NAME,), False),
        (record(responses={"spans": [{"value": [], "status": "submitted"}]}), (), True),
        (record(responses={"spans": [{"value": [PERSON], "status": "discarded"}]}), (), False),
    ],
)
def test_version_2(read_sample: ReadSample, row: dict[str, Any], spans: tuple[Span, ...], complete: bool) -> None:
    sample = read_sample(json.dumps([row]))
    assert sample.format == "argilla"
    [doc] = sample.docs
    assert (doc.id, doc.text, doc.spans, doc.complete) == ("a", TEXT, spans, complete)
    assert len(sample.lost) == ("discarded" in str(row))


def test_several_annotators(read_sample: ReadSample) -> None:
    place = {"start": 15, "end": 21, "label": "PLACE"}
    responses = [{"value": [PERSON, place], "status": "submitted"}, {"value": [PERSON], "status": "submitted"}]
    [doc] = read_sample(json.dumps([record(responses={"spans": responses})])).docs
    assert (doc.spans, doc.unsure, doc.complete) == ((NAME,), (PLACE,), True)


def test_columns_of_a_data_set(read_sample: ReadSample) -> None:
    row = {
        "id": "a",
        "status": "completed",
        "text": TEXT,
        "url": 3,
        "ner.suggestion": None,
        "ner.suggestion.score": None,
    }
    row |= {"ner.responses": [[PERSON]], "ner.responses.users": ["u"], "ner.responses.status": ["submitted"]}
    sample = read_sample(row)
    assert sample.format == "argilla"
    assert sample.docs == [Document("a", TEXT, spans=(NAME,), complete=True, meta={"url": 3})]


FEEDBACK = {
    "text": TEXT,
    "ner": [],
    "ner-suggestion": None,
    "ner-suggestion-metadata": {"type": None, "score": None, "agent": None},
    "mood": [{"user_id": "u", "value": "good", "status": "submitted"}],
    "mood-suggestion": None,
    "mood-suggestion-metadata": {"type": None, "score": None, "agent": None},
    "external_id": "a",
    "metadata": '{"url": 3}',
}
COLUMNS = {"start": [0], "end": [9], "label": ["PERSON"], "text": ["Mara Teel"]}
SUGGESTED = {"type": "model", "score": [0.8], "agent": "m"}


@pytest.mark.parametrize(
    ("more", "spans", "complete"),
    [
        ({}, (), False),
        ({"ner": [{"user_id": "u", "value": [PERSON], "status": "submitted"}]}, (NAME,), True),
        ({"ner": [{"user_id": "u", "value": COLUMNS, "status": "submitted"}]}, (NAME,), True),
        ({"ner": [{"user_id": "u", "value": COLUMNS, "status": "draft"}]}, (NAME,), False),
        ({"ner": [{"user_id": "u", "value": COLUMNS, "status": "discarded"}]}, (), False),
        (
            {"ner-suggestion": COLUMNS, "ner-suggestion-metadata": SUGGESTED},
            (Span(0, 9, "PERSON", 0.8, "m"),),
            False,
        ),
    ],
)
def test_feedback_data_sets_of_version_1(
    read_sample: ReadSample, more: dict[str, Any], spans: tuple[Span, ...], complete: bool
) -> None:
    """Data sets turn a list of spans into an object of lists."""
    sample = read_sample({**FEEDBACK, **more})
    assert sample.format == "argilla"
    assert sample.docs == [Document("a", TEXT, spans=spans, complete=complete, meta={"url": 3})]
    discarded = {"discarded response not read": 1} if "discarded" in str(more) else {}
    assert sample.lost.counts == {"response to another question, `mood`, not read": 1, **discarded}


@pytest.mark.parametrize(
    ("row", "spans", "complete"),
    [
        ({"annotation": [["PERSON", 0, 9]], "annotation_agent": "u", "status": "Validated"}, (NAME,), True),
        ({"annotation": [PERSON], "status": "Validated"}, (NAME,), True),
        ({"annotation": [], "status": "Validated"}, (), True),
        ({"annotation": [["PERSON", 0, 9]]}, (NAME,), None),
        ({"prediction": [["PERSON", 0, 9, 0.5]], "prediction_agent": "m"}, (Span(0, 9, "PERSON", 0.5, "m"),), False),
        ({"prediction": None, "annotation": None, "status": "Default"}, (), False),
        ({"annotation": [["PERSON", 0, 9]], "status": "Discarded"}, (), False),
    ],
)
def test_version_1_lists_are_read(
    read_sample: ReadSample, row: dict[str, Any], spans: tuple[Span, ...], complete: bool | None
) -> None:
    sample = read_sample({"text": TEXT, "tokens": WORDS, "id": "a", "metadata": {"n": 1}, **row})
    assert sample.format == "argilla"
    [doc] = sample.docs
    assert (doc.spans, doc.complete, doc.meta) == (spans, complete, {"n": 1})
    assert doc.words == ((0, 4), (5, 9), (10, 14), (15, 21), (21, 22))


def test_the_format_jsonl_refuses_lists_that_it_does_not_read(read_sample: ReadSample) -> None:
    with pytest.raises(CorpusError, match="--format argilla"):
        read_sample({"text": TEXT, "annotation": [["PERSON", 0, 9]]}, format="jsonl")


def test_suggestions_beside_a_response_are_counted(read_sample: ReadSample) -> None:
    suggestions = {"spans": {"value": [PERSON], "score": None, "agent": "m"}}
    both = record(responses={"spans": [{"value": [], "status": "submitted"}]}, suggestions=suggestions)
    sample = read_sample(json.dumps([both]))
    assert (sample.surfaces(), sample.docs[0].complete) == ([[]], True)
    assert sample.lost.counts == {"suggestion not read: the record has a response": 1}
    old = {
        "text": TEXT,
        "tokens": WORDS,
        "annotation": [],
        "prediction": [["PERSON", 0, 9, 0.5]],
        "status": "Validated",
    }
    assert read_sample(old).lost.counts == {"prediction not read: the record has an annotation": 1}


def test_other_questions_are_counted(read_sample: ReadSample) -> None:
    sample = read_sample(json.dumps([record(responses={"mood": [{"value": "good", "status": "submitted"}]})]))
    assert sample.lost.counts == {"response to another question, `mood`, not read": 1}
    assert sample.docs[0].complete is False


@pytest.mark.parametrize("name", ["argilla", "argilla_v1"])
def test_what_we_write_comes_back(tmp_path: Path, name: str) -> None:
    words = ((0, 4), (5, 9), (10, 14), (15, 21), (21, 22)) if name == "argilla_v1" else None
    weak = Document("a", TEXT, words, (NAME._replace(score=0.8, source="gazetteer"),), complete=False, meta={"n": 1})
    gold = Document("b", TEXT, words, (PLACE,), complete=True)
    lost = write([weak, gold], tmp_path / "x.json", format=name)
    assert list(read(tmp_path / "x.json")) == [weak, gold]
    assert not len(lost)


def test_issue_2353_offsets_after_an_emoji(read_sample: ReadSample) -> None:
    record = {"id": "1", "fields": {"text": "🚀 Mara"}, "responses": {}, "suggestions": {}}
    record["suggestions"] = {"spans": {"value": [{"start": 2, "end": 6, "label": "PER"}]}}
    assert read_sample(record).surfaces() == [[("Mara", "PER")]]
    record["suggestions"] = {"spans": {"value": [{"start": 3, "end": 7, "label": "PER"}]}}
    assert read_sample(record, offsets="utf-16").surfaces() == [[("Mara", "PER")]]
