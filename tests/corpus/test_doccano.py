"""doccano: rows as its exporter writes them, and as its importer takes them."""

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


def test_the_form_with_label(read_sample: ReadSample) -> None:
    row = {"id": 7, "text": TEXT, "label": [[0, 9, "PERSON"]], "Comments": [], "url": "x"}
    sample = read_sample({"id": 6, "text": "Nobody.", "label": [], "Comments": []}, row)
    assert sample.format == "doccano"
    assert sample.docs == [
        Document("6", "Nobody."),
        Document("7", TEXT, spans=(Span(0, 9, "PERSON"),), meta={"url": "x"}),
    ]
    assert [doc.complete for doc in sample.docs] == [None, None], "the export does not say who has confirmed it"
    assert not len(sample.lost)


def test_the_form_with_entities_and_relations(read_sample: ReadSample) -> None:
    entities = [
        {"id": 1, "label": "PERSON", "start_offset": 0, "end_offset": 9},
        {"id": 2, "label": "PLACE", "start_offset": 15, "end_offset": 21},
    ]
    relations = [{"id": 1, "from_id": 1, "to_id": 2, "type": "left"}]
    sample = read_sample({"id": 7, "text": TEXT, "entities": entities, "relations": relations, "Comments": []})
    assert sample.format == "doccano"
    assert sample.surfaces() == [[("Mara Teel", "PERSON"), ("Halden", "PLACE")]]
    assert sample.lost.counts == {"relation not read": 1}


def test_the_form_with_entities_is_written(tmp_path: Path) -> None:
    doc = Document("7", TEXT, spans=(Span(0, 9, "PERSON"),), meta={"url": "x", "relations": []}, complete=True)
    lost = write([doc, Document("8", "Nobody.")], tmp_path / "x.jsonl", format="doccano_entities")
    first, second = map(json.loads, (tmp_path / "x.jsonl").read_text().splitlines())
    assert first == {
        "id": "7",
        "text": TEXT,
        "entities": [{"id": 1, "label": "PERSON", "start_offset": 0, "end_offset": 9}],
        "relations": [],
        "url": "x",
        "Comments": [],
    }
    assert second["entities"] == []
    reasons = {"complete or not: not written": 1, "meta not written: doccano uses this key": 1}
    assert lost.counts == reasons
    assert [doc.spans for doc in read(tmp_path / "x.jsonl")] == [doc.spans, ()]


def test_old_exports_say_labels(read_sample: ReadSample) -> None:
    sample = read_sample({"text": TEXT, "labels": [[0, 9, "PERSON"]]})
    assert (sample.format, sample.surfaces()) == ("doccano", [[("Mara Teel", "PERSON")]])


def test_offsets_of_old_versions_are_utf16(read_sample: ReadSample) -> None:
    """doccano PR #99: until then an emoji counted as two."""
    row = {"text": "🚀 Mara left", "label": [[3, 7, "PERSON"]]}
    assert read_sample(row, offsets="utf-16").surfaces() == [[("Mara", "PERSON")]]
    row["label"] = [[11, 14, "PERSON"]]
    with pytest.raises(CorpusError, match="outside the text"):
        read_sample(row)


def test_doccano_1360_white_space_at_the_ends_of_a_text_counts(read_sample: ReadSample, tmp_path: Path) -> None:
    """doccano trimmed the text and kept the offsets; we trim nothing, in either direction."""
    sample = read_sample({"text": "  Mara left \n", "label": [[2, 6, "PERSON"]]})
    assert sample.surfaces() == [[("Mara", "PERSON")]]
    for name in ("doccano", "doccano_entities"):
        write(sample.docs, tmp_path / f"{name}.jsonl", format=name)
        [doc] = read(tmp_path / f"{name}.jsonl")
        assert (doc.text, doc.spans) == (sample.docs[0].text, sample.docs[0].spans)


def test_doccano_7_words_are_not_characters(read_sample: ReadSample, tmp_path: Path) -> None:
    """doccano issue #7: its CoNLL export had one line per character. Ours has one per word."""
    sample = read_sample({"text": TEXT, "label": [[0, 9, "PERSON"]]})
    write(sample.docs, tmp_path / "x.conll")
    lines = (tmp_path / "x.conll").read_text().splitlines()
    assert lines[:3] == ["Mara\tB-PERSON", "Teel\tI-PERSON", "left\tO"]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"text": TEXT, "label": ["sports"]}, "text classification"),
        ({"text": TEXT, "label": [[0, 99, "X"]]}, "outside the text"),
        ({"text": TEXT, "label": [[0, "9", "X"]]}, "whole numbers"),
        ({"text": TEXT, "label": [[0, 9, ""]]}, "needs a label"),
        ({"text": TEXT, "label": [[0, 9]]}, r"must be \[start, end, label\]"),
        ({"body": TEXT, "label": []}, "--text-field"),
    ],
)
def test_mistakes_are_one_sentence(read_sample: ReadSample, row: dict[str, Any], words: str) -> None:
    with pytest.raises(CorpusError, match=words):
        read_sample(row, format="doccano")


def test_another_key_of_the_text(read_sample: ReadSample) -> None:
    sample = read_sample({"body": TEXT, "label": [[0, 9, "PERSON"]]}, format="doccano", text_field="body")
    assert sample.docs[0].text == TEXT and sample.docs[0].meta == {}


def test_what_the_importer_takes(tmp_path: Path) -> None:
    doc = Document("7", TEXT, spans=(Span(0, 9, "PERSON", 0.9, "x"),), unsure=(Span(15, 21, ""),), meta={"label": 1})
    lost = write([doc], tmp_path / "x.jsonl", format="doccano")
    assert json.loads((tmp_path / "x.jsonl").read_text()) == {"id": "7", "text": TEXT, "label": [[0, 9, "PERSON"]]}
    assert lost.counts == {
        "unsure span not written": 1,
        "score not written": 1,
        "source not written": 1,
        "meta not written: doccano uses this key": 1,
    }
    assert [row.reason for row in lost.spans] == ["unsure span not written"]
    assert next(read(tmp_path / "x.jsonl")).spans == (Span(0, 9, "PERSON"),)
