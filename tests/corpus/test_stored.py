"""Documents on disk are those in memory, in the same order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lacuner.corpus import stored
from lacuner.corpus.jsonl import document_from_line
from lacuner.corpus.stored import StoredDocuments, join_documents, open_documents, store_documents, treat_as_complete
from lacuner.data import Document, Span, labels_of
from lacuner.errors import CorpusError
from lacuner.training.identity import sort_documents

TEXTS = ["Mara left", "Teel came", "an Übung\u2028in two", "国内", "Mara left", ""]
DOCS = [
    Document(
        str(number % 4),
        TEXTS[number % len(TEXTS)],
        spans=(Span(0, 2, f"L{number % 3}", 0.5, "model"),) if TEXTS[number % len(TEXTS)] else (),
        rejected=(Span(1, 2, ""),) if number % 5 == 1 and TEXTS[number % len(TEXTS)] else (),
        complete=[None, True, False][number % 3],
        meta={"complete": True, "n": number} if number % 2 else {},
    )
    for number in range(40)
]


@pytest.mark.parametrize("run", [3, 1000])
def test_the_order_is_that_of_memory(run: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "RUN", run)
    monkeypatch.setattr(stored, "MERGED", 4)
    monkeypatch.setattr(stored, "_READ", 7)
    docs = store_documents(DOCS, tmp_path, "v1")
    expected = sort_documents(DOCS)
    assert list(docs) == expected and len(docs) == len(DOCS)
    assert docs[3] == expected[3] and docs[-1] == expected[-1] and docs[30:10:-4] == expected[30:10:-4]
    assert docs[5:5] == [] and docs[38:100] == expected[38:]
    with pytest.raises(IndexError):
        docs[40]
    assert labels_of(docs) == labels_of(DOCS) == ["L0", "L1", "L2"]
    assert [bool(doc.complete) for doc in expected] == docs.complete.tolist()
    assert docs.sample == DOCS
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir() if path.name != ".lock"} == {0o600}, (
        "it is the users' text"
    )


@pytest.mark.parametrize("size", [1, 3_000])
def test_long_documents_are_sorted_and_read_a_few_at_a_time(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "RUN_BYTES", size)
    monkeypatch.setattr(stored, "_READ_BYTES", size)
    docs = store_documents(DOCS, tmp_path, "v1")
    expected = sort_documents(DOCS)
    front = [Document("a", "Halden"), Document("b", "Teel")]
    blocks: list[int] = []

    def decode(line: bytes) -> Document:
        blocks[-1] += len(line)
        return document_from_line(line)

    read_lines = StoredDocuments._lines

    def lines(own: StoredDocuments, numbers: Sequence[int]) -> Iterator[bytes]:
        blocks.append(0)
        return read_lines(own, numbers)

    monkeypatch.setattr(stored, "document_from_line", decode)
    monkeypatch.setattr(StoredDocuments, "_lines", lines)
    assert list(docs) == expected
    longest = int(np.diff(docs.offsets).max())
    assert max(blocks) <= max(size, longest) and (len(blocks) == len(DOCS) if size == 1 else 1 < len(blocks) < 10)
    assert list(join_documents(front, docs)) == [*front, *expected]
    assert list(docs.take(np.arange(5, 30))) == expected[5:30]


def test_documents_may_stay_in_order(tmp_path: Path) -> None:
    assert list(store_documents(iter(DOCS), tmp_path, "v1", ordered=True)) == DOCS


def test_a_part_of_them(tmp_path: Path) -> None:
    docs, expected = store_documents(DOCS, tmp_path, "v1"), sort_documents(DOCS)
    complete = docs.select(docs.complete)
    assert list(complete) == [doc for doc in expected if doc.complete]
    assert labels_of(complete) == labels_of([doc for doc in DOCS if doc.complete])
    first = [Document("a", "Halden", spans=(Span(0, 6, "LOC"),)), Document("b", "Teel")]
    joined = join_documents(first, docs)
    assert isinstance(joined, StoredDocuments) and len(joined) == 42
    assert list(joined) == [*first, *expected] and joined[1:4] == [first[1], *expected[:2]]
    assert joined[3:0:-1] == [expected[1], expected[0], first[1]]
    assert labels_of(joined) == ["L0", "L1", "L2", "LOC"]
    assert list(treat_as_complete(docs)) == [replace(doc, complete=True) for doc in expected]
    variants = [docs, complete, joined, replace(docs, as_complete=True), docs.select(~docs.complete)]
    assert len({variant.key for variant in variants}) == 5
    assert [variant.is_whole for variant in variants] == [True, False, False, False, False]


def test_a_folder_is_opened_only_for_what_it_was_made_from(tmp_path: Path) -> None:
    assert open_documents(tmp_path / "absent", "v1") is None
    store_documents(DOCS, tmp_path, "v1")
    assert open_documents(tmp_path, "v2") is None
    opened = open_documents(tmp_path, "v1")
    assert opened is not None and list(opened) == sort_documents(DOCS)


@pytest.mark.parametrize("damage", ["shorter", "no index", "not JSON", "another size", "objects", "a path"])
def test_a_damaged_folder_is_an_error(damage: str, tmp_path: Path) -> None:
    store_documents(DOCS, tmp_path, "v1")
    lines, index = tmp_path / "documents.jsonl", tmp_path / "arrays.json"
    content = json.loads(index.read_bytes())
    if damage == "shorter":
        lines.write_bytes(lines.read_bytes()[:-5])
    elif damage == "no index":
        (tmp_path / "offsets.bin").write_bytes(b"")
    elif damage == "not JSON":
        index.write_bytes(index.read_bytes()[:-10])
    elif damage == "another size":
        content["arrays"]["offsets"]["length"] += 1
        index.write_text(json.dumps(content))
    elif damage == "a path":
        (tmp_path.parent / "other.bin").write_bytes(b"12345678")
        content["arrays"] |= {"../other": {"type": "<i8", "length": 1, "row": []}}
        index.write_text(json.dumps(content))
    else:
        content["arrays"]["offsets"]["type"] = "|O"
        index.write_text(json.dumps(content))
    with pytest.raises(CorpusError, match="damaged: delete the folder"):
        open_documents(tmp_path, "v1")


def test_an_interrupted_preparation_does_not_look_like_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    store_documents(DOCS, tmp_path, "v1", ordered=True)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(stored, "write_arrays", stop)
        store_documents(DOCS[::-1], tmp_path, "v2", ordered=True)
    assert open_documents(tmp_path, "v1") is None and open_documents(tmp_path, "v2") is None


def test_a_failed_preparation_leaves_nothing_that_is_opened(tmp_path: Path) -> None:
    def broken() -> list[Document]:
        raise CorpusError("half of it cannot be read")

    store_documents(DOCS, tmp_path, "v1")
    with pytest.raises(CorpusError, match="half"):
        store_documents((doc for part in (lambda: DOCS[:10], broken) for doc in part()), tmp_path, "v2")
    assert open_documents(tmp_path, "v2") is None
    assert np.array_equal(sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")), [".lock"])
