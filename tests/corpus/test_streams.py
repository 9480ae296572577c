"""Compressed files, pipes and standard input: read by content, written by ending."""

from __future__ import annotations

import gzip
import io
import os
import sys
import threading
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


@pytest.mark.parametrize("format", ["jsonl", "conll", "txt", "spacy", "labelstudio"])
def test_issue_29_dev_zero_is_refused(format: str) -> None:
    with pytest.raises(CorpusError):
        list(read("/dev/zero", format=format))


def test_the_beginning_of_a_file_is_decompressed(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(gzip.compress(b"a" * (3 << 20)))
    head = Input(tmp_path / "x").head()
    assert len(head) == 1 << 20
