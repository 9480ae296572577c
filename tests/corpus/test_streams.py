"""Compressed files, pipes and standard input: read by content, written by ending."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import sys
import threading
import tracemalloc
import zlib
from pathlib import Path

import pytest

from lacuner.corpus import read, write
from lacuner.corpus.streams import COMPRESSED, MAGIC, Input, open_output
from lacuner.data import Document, Span
from lacuner.errors import CorpusError

DOCS = [Document(str(i), f"Mara {i} left Halden.", spans=(Span(0, 4, "PER"),)) for i in range(50)]


@pytest.mark.parametrize("ending", COMPRESSED)
def test_what_is_written_is_compressed_and_read_again(tmp_path: Path, ending: str) -> None:
    write(DOCS, tmp_path / f"x.jsonl{ending}")
    data = (tmp_path / f"x.jsonl{ending}").read_bytes()
    assert data.startswith(tuple(MAGIC))
    assert list(read(tmp_path / f"x.jsonl{ending}")) == DOCS
    (tmp_path / "misnamed.jsonl").write_bytes(data)
    assert list(read(tmp_path / "misnamed.jsonl")) == DOCS, "the content tells, not the name"
    write(DOCS, tmp_path / f"y.jsonl{ending}")
    assert (tmp_path / f"y.jsonl{ending}").read_bytes() == data, "equal documents are equal bytes"


@pytest.mark.parametrize("ending", COMPRESSED)
def test_damaged_compressed_files_are_one_sentence(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"x.jsonl{ending}"
    write(DOCS, path)
    data = path.read_bytes()
    for damaged in (data[: len(data) // 2], data[:8] + b"\xff" * 40 + data[48:]):
        path.write_bytes(damaged)
        with pytest.raises(CorpusError) as caught:
            list(read(path))
        assert "\n" not in str(caught.value)


def xz_that_asks_for_memory(data: bytes, code: int) -> bytes:
    """An xz stream whose header asks for a dictionary of another size: 40 stands for 4 GB."""
    packed = bytearray(lzma.compress(data))
    end = 12 + 4 * packed[12]  # of the block header, without its checksum
    packed[packed.index(b"\x21\x01", 12) + 2] = code
    packed[end : end + 4] = zlib.crc32(packed[12:end]).to_bytes(4, "little")
    return bytes(packed)


def test_issue_29_an_xz_file_cannot_ask_for_memory(tmp_path: Path) -> None:
    """200 kB of line breaks filled as much memory as they unpacked to, up to 4 GB: the dictionary keeps all of them."""
    path = tmp_path / "x.txt.xz"
    path.write_bytes(xz_that_asks_for_memory(b"Mara left.\n", 28))  # 64 MiB, as xz -9
    assert [doc.text for doc in read(path)] == ["Mara left."]
    for code in (30, 40):
        path.write_bytes(xz_that_asks_for_memory(b"Mara left.\n", code))
        with pytest.raises(CorpusError, match="Memory usage limit exceeded"):
            list(read(path))


def test_joined_xz_files_are_read_to_the_end(tmp_path: Path) -> None:
    """Also with the padding that the format allows between them and at the end."""
    path = tmp_path / "x.txt.xz"
    path.write_bytes(lzma.compress(b"Mara left.\n") + b"\0" * 4000 + lzma.compress(b"Teel came.\n") + b"\0" * 8)
    assert [doc.text for doc in read(path)] == ["Mara left.", "Teel came."]


def test_an_unfinished_compressed_file_is_not_left_behind(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), open_output(tmp_path / "x.gz") as stream:
        stream.write(b"half")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("compress", [False, True])
def test_standard_input_is_read_once_and_whole(monkeypatch: pytest.MonkeyPatch, compress: bool) -> None:
    rows = [f"word{i}\t{'B-PER' if i % 3 else 'O'}\n" for i in range(90_000)]  # longer than the detected beginning
    data = "".join(rows).encode()
    stdin = io.TextIOWrapper(io.BytesIO(gzip.compress(data) if compress else data))
    monkeypatch.setattr(sys, "stdin", stdin)
    [doc] = read("-")
    assert doc.words is not None and len(doc.words) == 90_000


def test_a_named_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"Mara\tB-PER\nleft\tO\n",))
    writer.start()
    [doc] = read(path)
    writer.join()
    assert doc.spans == (Span(0, 4, "PER"),)


@pytest.mark.parametrize("format", ["jsonl", "conll", "txt", "spacy", "labelstudio", "parquet"])
def test_issue_29_dev_zero_is_refused(format: str) -> None:
    """At once: a format that is read as a whole took a gigabyte first."""
    problem = "this is a device" if format in ("spacy", "parquet") else "NUL"
    tracemalloc.start()
    try:
        with pytest.raises(CorpusError, match=problem):
            list(read("/dev/zero", format=format))
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()


def test_the_beginning_of_a_file_is_decompressed(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(gzip.compress(b"a" * (3 << 20)))
    head = Input(tmp_path / "x").head()
    assert len(head) == 1 << 20
