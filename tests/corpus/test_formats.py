"""Which format a file is recognised as, and names that are no files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lacuner.corpus import FORMATS, read, write
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
    assert sample.lost.counts == {"`mentions` looks like annotation and is kept in meta only": 1}


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
