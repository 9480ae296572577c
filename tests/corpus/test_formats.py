"""Which format a file is recognised as, and names that are no files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lacuner.corpus import FORMATS, ReadOptions, read, write
from lacuner.corpus.formats import detect_format
from lacuner.corpus.reader import CorpusFile
from lacuner.data import Document, Span
from lacuner.errors import CorpusError
from tests.corpus.conftest import ReadSample

DOCS = [
    Document("a", "Mara Teel left Halden.", spans=(Span(0, 9, "PER"), Span(15, 21, "LOC")), complete=True),
    Document("b", "Nobody left.", complete=True),
]
# written by another format's rules, or not distinguishable from it
SAME = {
    "tokens": "jsonl",
    "argilla_v1": "argilla",
    "doccano_entities": "doccano",
    "huggingface": "parquet",
    "txt": None,
}


@pytest.mark.parametrize("name", FORMATS)
def test_files_are_recognised_whatever_their_name(tmp_path: Path, name: str) -> None:
    write(DOCS, tmp_path / "x.dat", format=name)
    expected = SAME.get(name, name)
    if expected is None:
        with pytest.raises(CorpusError, match="--format"):
            detect_format(CorpusFile(tmp_path / "x.dat"))
        return
    assert detect_format(CorpusFile(tmp_path / "x.dat")) == expected
    docs = list(read(tmp_path / "x.dat"))
    assert [[doc.text[s.start : s.end] for s in doc.spans] for doc in docs] == [["Mara Teel", "Halden"], []]


def test_a_file_of_another_tool_is_recognised_after_rows_that_look_like_ours(read_sample: ReadSample) -> None:
    rows = [{"text": "a"}] * 20 + [{"text": "Mara", "label": [[0, 4, "PER"]]}]
    assert read_sample(*rows, name="x.jsonl").format == "doccano"


def test_unknown_annotation_is_counted_and_kept(read_sample: ReadSample) -> None:
    sample = read_sample({"text": "Mara", "mentions": [{"start": 0, "end": 4}], "numbers": [1, 2]}, name="x.jsonl")
    assert sample.docs[0].meta == {"mentions": [{"start": 0, "end": 4}], "numbers": [1, 2]}
    assert sample.lost.counts == {"`mentions` looks like annotation and is not read": 1}


def test_integer_tags_have_names(read_sample: ReadSample) -> None:
    row = {"tokens": ["Mara", "left", "Oslo"], "ner_tags": [1, 0, 2]}
    names = ("O", "B-PER", "B-LOC")
    assert read_sample(row, label_names=names).surfaces() == [[("Mara", "PER"), ("Oslo", "LOC")]]
    with pytest.raises(CorpusError, match="--label-names has 2 names"):
        read_sample(row, label_names=names[:2])
    with pytest.raises(CorpusError, match="give --label-names"):
        read_sample(row)


def test_arrays_are_read_like_lines(tmp_path: Path) -> None:
    rows = [{"text": f"Mara {i}", "spans": [{"start": 0, "end": 4, "label": "PER"}]} for i in range(3)]
    (tmp_path / "a.json").write_text(json.dumps(rows, indent=1))
    (tmp_path / "b.json").write_text(json.dumps({"version": "1", "data": rows}))
    (tmp_path / "c.json").write_text("\n".join(json.dumps(row, indent=1) for row in rows))
    (tmp_path / "d.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    (tmp_path / "e.json").write_text("[]")
    expected = list(read(tmp_path / "d.jsonl"))
    assert all(list(read(tmp_path / name)) == expected for name in ("a.json", "b.json", "c.json"))
    assert list(read(tmp_path / "e.json", format="jsonl")) == []


@pytest.mark.parametrize("end", [1, 5, 30, 60, 100])
def test_an_array_that_ends_too_early_is_an_error(tmp_path: Path, end: int) -> None:
    text = json.dumps([{"text": f"Mara {i}", "meta": {"n": i}} for i in range(5)], indent=1)
    (tmp_path / "x.json").write_text(text[:end])
    with pytest.raises(CorpusError):
        list(read(tmp_path / "x.json", format="jsonl"))


@pytest.mark.parametrize("path", ["x" * 300 + ".jsonl", "a\0b.jsonl", "missing.jsonl"])
def test_issue_29_impossible_paths_are_one_sentence(tmp_path: Path, path: str) -> None:
    for action in (lambda: list(read(tmp_path / path)), lambda: write([], tmp_path / "missing" / path)):
        if path == "missing.jsonl" and "write" in action.__code__.co_names:
            continue
        with pytest.raises(CorpusError) as caught:
            action()
        assert "\n" not in caught.value.problem


@pytest.mark.parametrize("name", [name for name, known in FORMATS.items() if known.matches_row or "json" in name])
@pytest.mark.parametrize(
    "text",
    [
        '{"text": "ab", "spans": [{"start": 0, "end": 1, "label": "X", "score": %s}]}' % ("9" * 400),
        '{"text": "ab", "spans": [{"start": 0, "end": %s, "label": "X"}]}' % ("9" * 400),
        '{"text": "ab", "n": %s}' % ("9" * 5000),
        '{"text": "a\\ud800b"}',
        "[" * 100_000,
        '{"a":' * 100_000,
        '[{"data": {"text": "ab"}, "annotations": ' + "[" * 100_000,
    ],
)
def test_issue_29_numbers_surrogates_and_depth(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    try:
        list(read(tmp_path / "x.json", format=name))
    except CorpusError as error:
        assert "\n" not in error.problem and len(error.problem) < 600


@pytest.mark.parametrize("name", ["x.jsonl", "x.conll", "x.parquet", "x.pubtator", "x.webanno"])
def test_half_a_surrogate_pair_is_not_written(tmp_path: Path, name: str) -> None:
    """It came from a gazetteer or from `--map`, and ended in a traceback."""
    doc = Document("1", "Mara left", spans=(Span(0, 4, "\ud800"),), complete=True)
    with pytest.raises(CorpusError, match=r"half of a surrogate pair is not a character: .*\\ud800") as caught:
        write([doc], tmp_path / name, format=name.removeprefix("x."))
    assert caught.value.file == str(tmp_path / name) and not (tmp_path / name).exists()


@pytest.mark.parametrize("encoding", ["undefined", "a\0b", "no-such", "hex"])
def test_encodings_that_are_none(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "x.txt").write_text("Mara")
    with pytest.raises(CorpusError, match="there is no encoding called"):
        list(read(tmp_path / "x.txt", options=ReadOptions(encoding=encoding)))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
@pytest.mark.parametrize("name", ["jsonl", "conll", "txt"])
def test_issue_29_utf16_without_byte_order_mark(tmp_path: Path, encoding: str, name: str) -> None:
    from lacuner.corpus import ReadOptions

    (tmp_path / "x").write_bytes('{"text": "Mara"}\n'.encode(f"{encoding}-le"))
    with pytest.raises(CorpusError, match="--encoding"):
        list(read(tmp_path / "x", format=name, options=ReadOptions(encoding=encoding)))


def test_one_long_line_is_streamed(tmp_path: Path) -> None:
    """A collection, or a first row, that is longer than the beginning from which the format is detected."""
    passage = {"offset": 0, "text": "Mara left. " * 100, "annotations": []}
    documents = [{"id": str(i), "passages": [passage]} for i in range(1100)]
    (tmp_path / "x.json").write_text(json.dumps({"source": "x", "documents": documents}))
    assert detect_format(CorpusFile(tmp_path / "x.json")) == "bioc_json"
    assert sum(1 for _ in read(tmp_path / "x.json")) == 1100
    long = {"text": "Mara left. " * 120_000, "spans": [{"start": 0, "end": 4, "label": "PER"}]}
    (tmp_path / "x.jsonl").write_text(json.dumps(long) + "\n" + json.dumps({"text": "b"}))
    assert [len(doc.text) for doc in read(tmp_path / "x.jsonl")] == [1_320_000, 1]


def test_text_after_the_end_of_an_array_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('[{"text": "a"}] [{"text": "b"}]')
    with pytest.raises(CorpusError, match="more after the end"):
        list(read(tmp_path / "x.json", format="jsonl"))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("entities", {"PER": [[0, 4]]}),
        ("names", {"PER": [[0, 4]]}),
        ("ner", {"PER": [{"start": 0, "end": 4}]}),
        ("result", {"entities": [{"begin": 0, "end": 4, "label": "PER"}]}),
        ("ner", [[[], [0, 0, "PER"]]]),
        ("mentions", [{"start_char": 0, "end_char": 4, "type": "PER"}]),
        ("tags", ["B-PER", "O"]),
        ("ner_tags", [1, 0]),
        ("relations", [{"head": 0, "tail": 1}]),
        ("named_entities", [{"text": "Mara", "type": "PER"}]),
        ("ents", {"PER": ["Mara"]}),
        ("tags", "B-PER O"),
    ],
)
def test_annotation_in_any_form_is_counted(read_sample: ReadSample, key: str, value: Any) -> None:
    sample = read_sample({"text": "Mara left", key: value}, name="x.jsonl")
    assert sample.lost.counts == {f"`{key}` looks like annotation and is not read": 1}
    assert sample.docs[0].meta == {key: value}


@pytest.mark.parametrize(
    "value",
    [[1, 2], [[1, 2], [3, 4]], {"PER": [1, 2]}, ["news", "O"], {"a": {"b": []}}, [None], 3, "O O", "B-6 is good", "O"],
)
def test_other_values_are_no_annotation(read_sample: ReadSample, value: Any) -> None:
    assert not len(read_sample({"text": "Mara left", "x": value}, name="x.jsonl").lost)


@pytest.mark.parametrize(("name", "tags"), [("fine_ner_tags", [1, 0, 2]), ("ner", ["PER", "O", "LOC"])])
def test_tags_under_another_key(read_sample: ReadSample, name: str, tags: list[Any]) -> None:
    row = {"tokens": ["Mara", "left", "Oslo"], name: tags}
    assert any("--tag-field" in reason for reason in read_sample(row, name="x.jsonl").lost.counts)
    options = {"tag_field": name, "label_names": ("O", "B-PER", "B-LOC"), "scheme": "IO"}
    assert read_sample(row, **options).surfaces() == [[("Mara", "PER"), ("Oslo", "LOC")]]
    with pytest.raises(CorpusError, match="no `x` in this line: check --tag-field"):
        read_sample(row, tag_field="x")


def test_tags_under_a_key_of_spans(read_sample: ReadSample) -> None:
    row = {"tokens": ["Mara", "left"], "labels": [1, 0]}
    with pytest.raises(CorpusError, match=r"`labels` has one value per word: .*--tag-field labels"):
        read_sample(row, name="x.jsonl")
    assert read_sample(row, tag_field="labels", label_names=("O", "B-PER")).surfaces() == [[("Mara", "PER")]]


def test_tags_without_words(read_sample: ReadSample) -> None:
    with pytest.raises(CorpusError, match="--text-field"):
        read_sample({"text": "Mara left", "ner": ["B-PER", "O"]}, name="x.jsonl", tag_field="ner")


def test_words_under_another_key(read_sample: ReadSample) -> None:
    row = {"words": ["Mara", "left"], "ner_tags": ["B-PER", "O"]}
    with pytest.raises(CorpusError, match="name the key of the text, or of the words, with --text-field"):
        read_sample(row, name="x.jsonl")
    assert read_sample(row, text_field="words").surfaces() == [[("Mara", "PER")]]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"paragraphs": [{"sentences": []}]}, "training file of spaCy 2: `spacy convert`"),
        ({"text": "Mara", "annotations": [{"label": 1, "start_offset": 0}]}, "numbers as labels: export JSONL"),
        ({"text": "Mara", "annotations": [{"result": []}]}, "--format labelstudio may"),
    ],
)
def test_advice_about_other_forms(read_sample: ReadSample, row: dict[str, Any], words: str) -> None:
    with pytest.raises(CorpusError, match=words):
        read_sample(row, name="x.jsonl")


def test_a_folder_of_lines_with_splits(tmp_path: Path) -> None:
    for name in ("train.jsonl", "test.jsonl", "more.jsonl"):
        (tmp_path / name).write_text('{"text": "Mara"}\n')
    with pytest.raises(CorpusError, match="has the splits test, train: choose one with --split"):
        list(read(tmp_path))
    assert [doc.id for doc in read(tmp_path, options=ReadOptions(split="test"))] == ["test.jsonl:1"]
    with pytest.raises(CorpusError, match="no split 'dev': --split is one of test, train"):
        list(read(tmp_path, options=ReadOptions(split="dev")))
    (tmp_path / "test.jsonl").unlink()
    assert len(list(read(tmp_path))) == 2


def test_issue_24_spans_outside_the_text_that_count_otherwise(read_sample: ReadSample) -> None:
    row = {"text": "🚀🚀🚀 Mara", "label": [[7, 11, "PER"]]}
    with pytest.raises(CorpusError, match="outside the text of 8 characters; with --offsets utf-16 it is 'Mara'"):
        read_sample(row)
    assert read_sample(row, offsets="utf-16").surfaces() == [[("Mara", "PER")]]
