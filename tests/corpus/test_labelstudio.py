"""Label Studio: exports as it writes them, and the bugs of its own converter as golden cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lacuner.corpus import read, write
from lacuner.corpus.check import fix
from lacuner.data import Document, Span
from lacuner.errors import CorpusError
from tests.corpus.conftest import ReadSample

TEXT = "Mara Teel left Halden."


def region(start: int, end: int, label: str, text: str | None = None, **more: Any) -> dict[str, Any]:
    value: dict[str, Any] = {"start": start, "end": end, "labels": [label]}
    if text is not None:
        value["text"] = text
    return {
        "id": "r",
        "from_name": "label",
        "to_name": "text",
        "type": "labels",
        "value": value,
        "origin": "manual",
        **more,
    }


def annotation(*result: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": 9, "completed_by": 1, "was_cancelled": False, "ground_truth": False, "result": list(result), **more}


def task(*annotations: dict[str, Any], text: str = TEXT, **more: Any) -> dict[str, Any]:
    return {"id": 1, "data": {"text": text}, "annotations": list(annotations), "predictions": [], **more}


PERSON = region(0, 9, "PERSON", "Mara Teel")
PLACE = region(15, 21, "PLACE", "Halden")


def test_an_export(read_sample: ReadSample) -> None:
    sample = read_sample(json.dumps([task(annotation(PERSON, PLACE), meta={"url": "x"})], indent=2), name="export.json")
    assert sample.format == "labelstudio"
    [doc] = sample.docs
    assert sample.surfaces() == [[("Mara Teel", "PERSON"), ("Halden", "PLACE")]]
    assert (doc.id, doc.complete, doc.meta) == ("1", True, {"url": "x"})
    assert doc.where is not None and doc.where.line == 2
    assert not len(sample.lost)


def test_tasks_that_nobody_has_annotated_are_not_empty(read_sample: ReadSample) -> None:
    cancelled = annotation(was_cancelled=True)
    prediction = {"model_version": "m", "score": 0.8, "result": [{**PERSON, "score": 0.7}]}
    rows = [task(), task(cancelled), {**task(cancelled), "predictions": [prediction]}]
    sample = read_sample(json.dumps(rows))
    assert [doc.complete for doc in sample.docs] == [False, False, False]
    assert [doc.spans for doc in sample.docs] == [(), (), (Span(0, 9, "PERSON", 0.7, "m"),)]
    assert sample.lost.counts == {"cancelled annotation not read": 2}


def test_predictions_beside_an_annotation_are_counted(read_sample: ReadSample) -> None:
    sample = read_sample(json.dumps([{**task(annotation(PERSON)), "predictions": [{"result": [PLACE]}]}]))
    assert sample.surfaces() == [[("Mara Teel", "PERSON")]]
    assert sample.lost.counts == {"prediction not read: the task has an annotation": 1}


def test_several_annotators(read_sample: ReadSample) -> None:
    [doc] = read_sample(json.dumps([task(annotation(PERSON, PLACE), annotation(PERSON))])).docs
    assert (doc.spans, doc.unsure) == ((Span(0, 9, "PERSON"),), (Span(15, 21, "PLACE"),))
    truth = annotation(PLACE, ground_truth=True)
    [doc] = read_sample(json.dumps([task(annotation(PERSON), truth)])).docs
    assert (doc.spans, doc.unsure) == ((Span(15, 21, "PLACE"),), ())


def test_old_exports_have_completions(read_sample: ReadSample) -> None:
    sample = read_sample(json.dumps([{"id": 1, "data": {"text": TEXT}, "completions": [annotation(PERSON)]}]))
    assert (sample.format, sample.surfaces()) == ("labelstudio", [[("Mara Teel", "PERSON")]])


def test_json_min(read_sample: ReadSample) -> None:
    first = {"start": 0, "end": 9, "text": "Mara Teel", "labels": ["PERSON"]}
    second = {"start": 15, "end": 21, "text": "Halden", "labels": ["PLACE"]}
    row = {"text": TEXT, "id": 1, "annotator": 1, "annotation_id": 9, "created_at": "x", "lead_time": 1.0}
    rows = [{**row, "label": [first, second]}, {**row, "annotator": 2, "annotation_id": 10, "label": [first]}]
    sample = read_sample(json.dumps(rows))
    assert sample.format == "labelstudio_min"
    [doc] = sample.docs
    assert (doc.spans, doc.unsure, doc.complete) == ((Span(0, 9, "PERSON"),), (Span(15, 21, "PLACE"),), True)


def test_issue_5111_every_label_of_a_region_is_kept(read_sample: ReadSample) -> None:
    both = region(0, 9, "PERSON", "Mara Teel")
    both["value"]["labels"] = ["PERSON", "AUTHOR"]
    assert read_sample(json.dumps([task(annotation(both))])).surfaces() == [
        [("Mara Teel", "PERSON"), ("Mara Teel", "AUTHOR")]
    ]


def test_issue_556_labels_stay_on_their_words(read_sample: ReadSample, tmp_path: Path) -> None:
    """Label Studio's CoNLL export put the label on the next word, after quotes and punctuation."""
    text = '50 of our "Pink Bears XTC Pills 200mg", these ...'
    start = text.index("XTC")
    sample = read_sample(json.dumps([task(annotation(region(start, start + 3, "Drug", "XTC")), text=text)]))
    write(sample.docs, tmp_path / "x.conll")
    lines = (tmp_path / "x.conll").read_text().splitlines()
    assert [line for line in lines if not line.endswith("\tO") and line] == ["XTC\tB-Drug"]


@pytest.mark.parametrize(
    ("text", "start", "end", "unit"),
    [
        ("line one\r\nHalden is far", 9, 15, "characters without CR"),
        ("🚀🚀 Halden is far", 5, 11, "UTF-16 units"),
        ("ééé Halden is far", 7, 13, "bytes"),
        ("  a  Halden is far", 3, 9, "found by the region's text"),
    ],
)
def test_issues_539_4929_2007_and_converter_254_shifted_offsets_are_corrected(
    read_sample: ReadSample, text: str, start: int, end: int, unit: str
) -> None:
    """Wrong offsets in the export made the converter lose a whole class; the region's text shows how they count."""
    sample = read_sample(json.dumps([task(annotation(region(start, end, "PLACE", "Halden")), text=text)]))
    assert sample.surfaces() == [[("Halden", "PLACE")]]
    [(reason, count)] = sample.lost
    assert (unit in reason, count) == (True, 1)


def test_issue_6027_regions_without_their_text(read_sample: ReadSample) -> None:
    """Nothing shows how such offsets count, so they are characters unless `--offsets` says otherwise."""
    bare = region(5, 11, "PLACE", "Halden")
    del bare["value"]["text"]
    content = json.dumps([task(annotation(bare), text="🚀🚀 Halden is far")])
    assert read_sample(content, offsets="utf-16").surfaces() == [[("Halden", "PLACE")]]
    assert read_sample(content).surfaces() == [[("lden i", "PLACE")]]


def test_converter_27_spans_with_white_space_and_inside_words(read_sample: ReadSample, tmp_path: Path) -> None:
    text = "The film (1988) stars Frankie James"
    spans = [region(10, 14, "YEAR", "1988"), region(21, 35, "PERSON", " Frankie James")]
    sample = read_sample(json.dumps([task(annotation(*spans), text=text)]))
    from collections import Counter

    docs = [fix(doc, Counter()) for doc in sample.docs]
    lost = write(docs, tmp_path / "x.conll")
    [again] = read(tmp_path / "x.conll")
    assert [again.text[s.start : s.end] for s in again.spans] == ["1988", "Frankie James"]
    assert not lost.spans


def test_issue_1250_words_of_chinese(read_sample: ReadSample, tmp_path: Path) -> None:
    """Their export wrote a whole Chinese clause as one token."""
    sample = read_sample(json.dumps([task(annotation(region(2, 4, "物", "护栏")), text="撞了护栏，无人")]))
    write(sample.docs, tmp_path / "x.conll")
    assert (tmp_path / "x.conll").read_text().split() == [
        "撞",
        "O",
        "了",
        "O",
        "护",
        "B-物",
        "栏",
        "I-物",
        "，",
        "O",
        "无",
        "O",
        "人",
        "O",
    ]


def test_issue_3078_the_text_of_a_region_has_lost_spaces(read_sample: ReadSample, tmp_path: Path) -> None:
    """The browser shows several spaces as one, and so does the region's text; its offsets are right."""
    spans = [region(6, 22, "LOC", "Berlin, Germany"), region(24, 28, "PER", "Mara")]
    sample = read_sample(json.dumps([task(annotation(*spans), text="Text: Berlin,  Germany. Mara")]))
    assert sample.surfaces() == [[("Berlin,  Germany", "LOC"), ("Mara", "PER")]]
    assert not len(sample.lost), "nothing was corrected"
    write(sample.docs, tmp_path / "x.conll")
    tags = [line.split("\t")[1] for line in (tmp_path / "x.conll").read_text().splitlines() if line]
    assert tags == ["O", "O", "B-LOC", "I-LOC", "I-LOC", "O", "B-PER"]


def test_issue_1601_a_region_without_labels_is_counted(read_sample: ReadSample) -> None:
    bare = region(0, 9, "X")
    del bare["value"]["labels"]
    sample = read_sample(json.dumps([task(annotation(bare))]))
    assert sample.lost.counts == {"region without a label became unsure": 1}
    [doc] = sample.docs
    assert doc.complete and [span.key for span in doc.unsure] == [(0, 9, "")], "never a negative"


def test_other_results_are_counted(read_sample: ReadSample) -> None:
    choice = {"type": "choices", "value": {"choices": ["good"]}, "from_name": "c", "to_name": "text"}
    relation = {"type": "relation", "from_id": "a", "to_id": "b"}
    sample = read_sample(json.dumps([task(annotation(PERSON, choice, relation))]))
    assert sample.lost.counts == {'result of type "choices" not read': 1, "result without a value not read": 1}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (task(annotation(region(0, 4, "X", "Nowhere to be found"))), "is 'Nowhere to be found' in the file"),
        (task(annotation(region(0, 99, "X"))), "outside the text"),
        (task(annotation(region(0, 4, "X", "Mara")), text="/data/upload/1.txt"), "the address of its text"),
        (
            task(annotation({**PERSON, "value": {"start": "/div[1]/text()[1]", "end": "x", "labels": ["X"]}})),
            "HTML path",
        ),
        ({"id": 1, "data": {"a": "x", "b": "y"}, "annotations": []}, "--text-field"),
        ({"id": 1, "data": {"dialogue": [{"text": "a"}]}, "annotations": []}, r"is a text \(dialogue\): dialogues"),
    ],
)
def test_mistakes_are_one_sentence(read_sample: ReadSample, row: dict[str, Any], words: str) -> None:
    with pytest.raises(CorpusError, match=words):
        read_sample(json.dumps([row]))


def test_what_label_studio_imports(tmp_path: Path) -> None:
    weak = Document("a", TEXT, spans=(Span(0, 9, "PERSON", 0.8, "gazetteer"),), complete=False, meta={"n": 1})
    gold = Document("b", TEXT, spans=(Span(15, 21, "PLACE"),), complete=True)
    lost = write([weak, gold], tmp_path / "x.json", format="labelstudio")
    first, second = json.loads((tmp_path / "x.json").read_text())
    value = {"start": 0, "end": 9, "text": "Mara Teel", "labels": ["PERSON"]}
    result = {"id": "r0", "from_name": "label", "to_name": "text", "type": "labels", "value": value, "score": 0.8}
    assert first["predictions"] == [{"model_version": "gazetteer", "result": [result], "score": 0.8}]
    assert (first["annotations"], first["data"], first["meta"]) == ([], {"text": TEXT, "id": "a"}, {"n": 1})
    assert second["annotations"][0]["result"][0]["value"]["labels"] == ["PLACE"]
    assert not len(lost)
    assert list(read(tmp_path / "x.json")) == [weak, gold]


def test_drafts_and_bare_numbers_are_counted(read_sample: ReadSample) -> None:
    row = {**task(annotation(PERSON)), "predictions": [5, 6], "drafts": [{"result": [PLACE]}]}
    counts = {"draft not read": 1, "predictions: number instead of the content": 2}
    assert read_sample(json.dumps([row])).lost.counts == counts


def test_json_min_without_any_region_is_complete(read_sample: ReadSample) -> None:
    row = {"id": 2, "text": TEXT, "annotator": 1, "annotation_id": 2, "created_at": "x", "lead_time": 3.5}
    sample = read_sample(json.dumps([row]))
    assert sample.format == "labelstudio_min"
    assert [(doc.complete, doc.spans) for doc in sample.docs] == [(True, ())]
