"""Folders with files of one format, as BioC corpora, and the exports of doccano and INCEpTION, come."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lacuner.corpus import FORMATS, ReadOptions, parquet, read, write
from lacuner.corpus.formats import detect_format
from lacuner.corpus.reader import CorpusFile
from lacuner.data import Document, Lost, Span
from lacuner.errors import CorpusError
from tests.strategies import ENDINGS

DOCS = [
    Document("a", "Mara Teel left Halden.", spans=(Span(0, 9, "PER"), Span(15, 21, "LOC")), complete=True),
    Document("b", "Mara stayed.", spans=(Span(0, 4, "PER"),), complete=True),
]
COLUMNS = "Mara NNP B-NP B-PER\nleft VBD B-VP O\n\nOslo NNP B-NP B-LOC\n"


def surfaces(docs: list[Document]) -> list[list[str]]:
    return [[doc.text[span.start : span.end] for span in doc.spans] for doc in docs]


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in ("brat", "txt")])
def test_the_files_of_a_folder_are_read_in_any_format(tmp_path: Path, name: str) -> None:
    for number, doc in enumerate(DOCS):
        in_folders = FORMATS[name].read is not parquet.read_parquet  # whose folders are splits
        path = tmp_path / "corpus" / (f"part{number}" if in_folders else "") / f"annotator{number}{ENDINGS[name]}"
        path.parent.mkdir(parents=True, exist_ok=True)
        write([doc], path, format=name)
    (tmp_path / "corpus" / "README.md").write_text("About these files.")
    (tmp_path / "corpus" / ".hidden.jsonl").write_text("{")
    lost = Lost()
    docs = list(read(tmp_path / "corpus", lost=lost))
    assert surfaces(docs) == [["Mara Teel", "Halden"], ["Mara"]]
    assert len({doc.id for doc in docs}) == 2, "numbers of documents are unique across files"
    assert "file in another format not read" not in lost.counts
    assert surfaces(list(read(tmp_path / "corpus", format=name))) == surfaces(docs)


def test_doccano_exports_one_file_per_annotator(tmp_path: Path) -> None:
    """Its zip file has one file for each user; texts without labels are in `unknown.jsonl` (doccano issue #1444)."""
    entities = [{"id": 1, "label": "PER", "start_offset": 0, "end_offset": 4}]
    row = {"id": 7, "text": "Mara left", "entities": entities, "relations": [], "Comments": []}
    (tmp_path / "admin.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "unknown.jsonl").write_text('{"id": 8, "text": "Nobody", "label": []}\n')
    assert detect_format(CorpusFile(tmp_path)) == "doccano"
    assert [(doc.id, doc.spans) for doc in read(tmp_path)] == [("7", (Span(0, 4, "PER"),)), ("8", ())]


def test_files_of_several_formats_are_not_mixed(tmp_path: Path) -> None:
    write(DOCS, tmp_path / "a.json", format="labelstudio")
    write(DOCS, tmp_path / "b.xml")
    (tmp_path / "dataset_info.json").write_text('{"features": {}}')
    with pytest.raises(CorpusError, match=r"several formats \(a.json is labelstudio, b.xml is bioc\).*--format"):
        list(read(tmp_path))
    lost = Lost()
    assert len(list(read(tmp_path, format="bioc", lost=lost))) == 2
    assert lost.counts["file in another format not read"] == 2


def test_a_column_file_is_recognised_although_it_is_called_txt(tmp_path: Path) -> None:
    """It was read as plain text, one document per word, without entities and without a warning."""
    (tmp_path / "train.txt").write_text(COLUMNS)
    docs = list(read(tmp_path / "train.txt"))
    assert [(doc.text, surfaces([doc])) for doc in docs] == [("Mara left", [["Mara"]]), ("Oslo", [["Oslo"]])]
    (tmp_path / "test.txt").write_text(COLUMNS)
    with pytest.raises(CorpusError, match="splits test, train: choose one with --split"):
        list(read(tmp_path))
    assert [doc.id for doc in read(tmp_path, options=ReadOptions(split="test"))] == ["test.txt:1", "test.txt:2"]
    (tmp_path / "plain.txt").write_text("Vitamins B-6 and B-12\nare O.\n")
    assert detect_format(CorpusFile(tmp_path / "plain.txt")) == "txt"


def test_a_format_that_no_file_has_is_tried_on_all_of_them(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("Mara,B-PER\nleft,O\n")
    with pytest.raises(CorpusError, match=r"no \.txt file in this folder, and no other file .* --format"):
        list(read(tmp_path))
    assert surfaces(list(read(tmp_path, format="conll"))) == [["Mara"]]
