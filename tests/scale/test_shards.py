"""A corpus in shards is the same corpus: every document once, with the same id, whatever the size of the shards."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuner.corpus import FORMATS, ReadOptions, read, write
from lacuner.data import Document, Span
from lacuner.errors import CorpusError
from lacuner.scale.shards import Corpus, Cutting, Shard, cut_corpus, read_shard

DOCS = [Document(f"d{i}", f"Mara {i} met Teel.", spans=(Span(0, 4, "PER"),), meta={"n": i}) for i in range(10)]


def cut(path: Path, folder: Path, size: int, format: str | None = None, **options: str) -> list[Shard]:
    return list(cut_corpus(Corpus(path, format, ReadOptions(**options)), Cutting(folder, size)))  # type: ignore[arg-type]


def read_all(shards: list[Shard], **options: str) -> list[Document]:
    return [doc for shard in shards for doc in read_shard(shard, ReadOptions(**options))]  # type: ignore[arg-type]


LINES = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0"), max_size=6)


@given(st.lists(LINES, max_size=12), st.integers(1, 5), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.booleans())
def test_lines_of_text(lines: list[str], size: int, end: str, mark: bool, last_end: bool) -> None:
    """Blank lines, line separators inside a line, byte order marks: ids are line numbers, as without shards."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "texts.txt"
        text = end.join(lines) + (end if last_end else "")
        file.write_bytes((("\ufeff" if mark else "") + text).encode())
        shards = cut(file, Path(folder), size, "txt")
        docs = list(read(file, format="txt"))
        assert read_all(shards) == docs
        assert [shard.documents for shard in shards] == [min(size, len(docs) - i) for i in range(0, len(docs), size)]
        assert b"".join(file.read_bytes()[s.part.start : s.part.stop] for s in shards) in file.read_bytes()


def test_rows_without_ids_keep_their_numbers(tmp_path: Path) -> None:
    rows = ['{"text": "one"}', "", '{"id": "10", "text": "two\u2028still two"}', " \u2003 ", '{"text": "three"}']
    (tmp_path / "a.jsonl").write_text("\n".join(rows) + "\n")
    shards = cut(tmp_path / "a.jsonl", tmp_path, 1)
    assert [(doc.id, doc.text) for doc in read_all(shards)] == [
        ("1", "one"),
        ("10", "two\u2028still two"),
        ("3", "three"),
    ]
    assert [doc.where and doc.where.line for doc in read_all(shards)] == [1, 3, 5]


def test_a_folder_of_json_lines(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    (folder / "b.jsonl").write_text('{"text": "one"}\n{"text": "two", "id": "x"}\n')
    with gzip.open(folder / "sub" / "a.jsonl.gz", "wt") as stream:
        stream.write('{"text": "three"}\n{"text": "four"}\n')
    docs = list(read(folder))
    assert [doc.id for doc in docs] == ["b.jsonl:1", "x", "sub/a.jsonl.gz:1", "sub/a.jsonl.gz:2"]
    shards = cut(folder, tmp_path, 1)
    assert read_all(shards) == docs
    assert [(shard.name, shard.converted) for shard in shards] == [
        ("00000", False),
        ("00001", False),
        ("00002", True),
        ("00003", True),
    ]


def write_array(path: Path) -> None:
    path.write_text(json.dumps([{"id": doc.id, "text": doc.text} for doc in DOCS]))


def write_texts(path: Path) -> None:
    path.mkdir()
    for doc in DOCS:
        (path / f"{doc.id}.txt").write_text(doc.text)


CONVERTED: dict[str, Callable[[Path], object]] = {
    "a.json": write_array,
    "a.conll": lambda path: write(DOCS, path),
    "a.jsonl.gz": lambda path: write(DOCS, path),
    "texts": write_texts,
}


@pytest.mark.parametrize("name", CONVERTED)
def test_other_formats_are_converted(name: str, tmp_path: Path) -> None:
    CONVERTED[name](tmp_path / name)
    shards = cut(tmp_path / name, tmp_path / "private", 4)
    assert read_all(shards) == list(read(tmp_path / name))
    assert [shard.documents for shard in shards] == [4, 4, 2]
    assert all(Path(shard.file).stat().st_mode & 0o777 == 0o600 for shard in shards)


def test_an_encoding_without_plain_line_ends_is_converted(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(
        "Mara\nTeel ਊ left\n".encode("utf-16-le")
    )  # the byte of a line end inside a letter
    shards = cut(tmp_path / "a.txt", tmp_path, 1, "txt", encoding="utf-16-le")
    assert [doc.text for doc in read_all(shards, encoding="utf-16-le")] == ["Mara", "Teel ਊ left"]


@pytest.mark.parametrize("folder", [False, True])
def test_row_groups_of_parquet(folder: bool, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "in"
    path.mkdir()
    FORMATS["parquet"].write(DOCS, tmp_path / "all.parquet", *[None, "IOB2"])  # type: ignore[list-item]
    table = parquet.read_table(tmp_path / "all.parquet").drop_columns(["id"])  # so ids are numbers
    parquet.write_table(table, path / "a.parquet", row_group_size=3)
    if folder:
        parquet.write_table(table, path / "b.parquet", row_group_size=4)
    path = path if folder else path / "a.parquet"
    shards = cut(path, tmp_path, 6)
    assert read_all(shards) == list(read(path))
    assert [shard.documents for shard in shards] == ([6, 4, 4, 6] if folder else [6, 4])
    assert not any(shard.converted for shard in shards)


def test_a_folder_with_parquet_and_arrow_files(tmp_path: Path) -> None:
    """Documents of the files before the first Arrow file were there twice."""
    parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    folder = tmp_path / "in"
    folder.mkdir()
    table = pyarrow.table({"text": [f"Mara {i}" for i in range(4)]})
    parquet.write_table(table, folder / "a.parquet")
    with pyarrow.OSFile(str(folder / "b.arrow"), "wb") as stream, pyarrow.ipc.new_file(stream, table.schema) as writer:
        writer.write_table(table)
    assert read_all(cut(folder, tmp_path, 3)) == list(read(folder))


def test_a_parquet_file_without_row_groups(tmp_path: Path) -> None:
    parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    with parquet.ParquetWriter(tmp_path / "a.parquet", pyarrow.schema([("text", pyarrow.string())])):
        pass
    assert cut(tmp_path / "a.parquet", tmp_path, 3) == [] == list(read(tmp_path / "a.parquet"))


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("Mara left\nTeel left\n")
    [shard] = cut(file, tmp_path, 9)
    file.write_text("Mara left\nTeel LEFT\n")
    with pytest.raises(CorpusError, match="has changed since it was cut"):
        read_all([shard])


def test_what_cannot_be_cut(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="standard input cannot be cut"):
        cut(Path("-"), tmp_path, 1)
    (tmp_path / "a.txt").write_text("Mara")
    with pytest.raises(CorpusError, match="no encoding called 'utf-9'"):
        cut(tmp_path / "a.txt", tmp_path, 1, "txt", encoding="utf-9")
