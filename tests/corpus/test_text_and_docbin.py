from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from lacuner.corpus import docbin, read, write
from lacuner.data import Document, Lost, Span
from lacuner.errors import CorpusError


def test_a_folder_has_one_document_per_file(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "2.txt").write_bytes(b"second\r\nline\n")
    (tmp_path / "a.txt").write_text("first")
    (tmp_path / "ignored.md").write_text("no")
    docs = list(read(tmp_path))
    assert [(doc.id, doc.text) for doc in docs] == [("a.txt", "first"), ("b/2.txt", "second\r\nline\n")]


def test_other_files_of_a_folder_are_counted(tmp_path: Path) -> None:
    (tmp_path / "A.TXT").write_text("first")
    (tmp_path / "b.md").write_text("no")
    lost = Lost()
    assert [doc.id for doc in read(tmp_path, lost=lost)] == ["A.TXT"]
    assert lost.counts == {"file without the ending .txt not read": 1}
    assert str(lost.first["file without the ending .txt not read"]) == "b.md"


def test_hidden_files_are_no_texts(tmp_path: Path) -> None:
    """macOS leaves `._a.txt`, which is binary, beside each `a.txt` on a USB stick, and a folder in each zip file."""
    (tmp_path / "a.txt").write_text("first")
    for name in ("._a.txt", ".DS_Store", "__MACOSX/b.txt", ".old/c.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"\0\5\x16\7")
    lost = Lost()
    assert [doc.id for doc in read(tmp_path, lost=lost)] == ["a.txt"] and not len(lost)


def test_one_file_in_another_encoding(tmp_path: Path) -> None:
    """--encoding would be that of all files, so it is not the only advice."""
    (tmp_path / "a.txt").write_text("Müdigkeit")
    (tmp_path / "b.txt").write_bytes("Müdigkeit".encode("latin-1"))
    with pytest.raises(
        CorpusError, match=r"b\.txt:1: this is not utf-8 text .*of all input files .* or convert this file"
    ):
        list(read(tmp_path))


def test_missing_tags_make_a_docbin_incomplete_whatever_the_role(tmp_path: Path) -> None:
    import spacy
    from spacy.tokens import DocBin
    from spacy.tokens import Span as SpacySpan

    doc = spacy.blank("en")("Mara Teel left Halden.")
    doc.set_ents([SpacySpan(doc, 0, 2, "PER")], default="missing")
    DocBin(docs=[doc]).to_disk(tmp_path / "x.spacy")
    assert [doc.complete for doc in read(tmp_path / "x.spacy", complete=True)] == [False]


def test_numbers_beyond_64_bits_survive_in_meta(tmp_path: Path) -> None:
    doc = Document("1", "a", ((0, 1),), meta={"n": 10**30})
    write([doc], tmp_path / "x.spacy")
    assert list(read(tmp_path / "x.spacy")) == [doc]


def test_a_file_has_one_document_per_line(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("one\n\ntwo\n")
    assert [(doc.id, doc.text) for doc in read(tmp_path / "x.txt")] == [("1", "one"), ("3", "two")]


def test_a_folder_without_texts_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"no \.txt file"):
        list(read(tmp_path))


def test_one_bad_file_of_a_folder_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xff\xfe\xff")
    (tmp_path / "b.txt").write_text("fine")
    errors: list[CorpusError] = []
    assert [doc.id for doc in read(tmp_path, on_error=errors.append)] == ["b.txt"]
    assert [error.file for error in errors] == [str(tmp_path / "a.txt")]


def test_docbin_with_span_groups_of_other_tools(tmp_path: Path) -> None:
    import spacy
    from spacy.tokens import DocBin
    from spacy.tokens import Span as SpacySpan

    nlp = spacy.blank("en")
    doc = nlp("Mara Teel left the Bank of Halden.")
    doc.set_ents([SpacySpan(doc, 0, 2, "PER")], default="outside")
    doc.spans["sc"] = [SpacySpan(doc, 4, 7, "ORG"), SpacySpan(doc, 6, 7, "LOC")]
    bare = nlp("Nothing here.")
    DocBin(docs=[doc, bare]).to_disk(tmp_path / "x.spacy")
    first, second = read(tmp_path / "x.spacy")
    assert first.spans == (Span(0, 9, "PER"), Span(19, 33, "ORG"), Span(27, 33, "LOC"))
    assert first.complete is None, "every `doc.ents = ...` says O of all the rest"
    assert second.complete is None, "spaCy says that nothing was annotated"
    assert [doc.complete for doc in read(tmp_path / "x.spacy", complete=False)] == [False, False], "the role decides"


@pytest.mark.parametrize("data", [b"", b"junk", zlib.compress(b"junk"), zlib.compress(b"\x80")])
def test_a_damaged_docbin_is_a_corpus_error(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.spacy").write_bytes(data)
    with pytest.raises(CorpusError, match="not a DocBin"):
        list(read(tmp_path / "x.spacy"))


def test_a_docbin_that_unpacks_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docbin, "MAX_BYTES", 1000)
    (tmp_path / "x.spacy").write_bytes(zlib.compress(b"\0" * 100_000))
    with pytest.raises(CorpusError, match="unpacks to more"):
        list(read(tmp_path / "x.spacy", format="spacy"))


def pack(**changes: Any) -> bytes:
    """A DocBin of one document with two tokens, some of whose parts are replaced."""
    import spacy
    import srsly
    from spacy.tokens import DocBin

    doc = spacy.blank("en")("Mara left")
    doc.spans["sc"] = [doc[0:1]]
    content = srsly.msgpack_loads(zlib.decompress(DocBin(docs=[doc]).to_bytes()))
    return zlib.compress(srsly.msgpack_dumps({**content, **changes}))


def spans_at(*places: tuple[int, int]) -> bytes:
    import srsly

    spans = [struct.pack(">QQQllll", 0, 0, 0, start, end, -5, 10**6) for start, end in places]
    group = srsly.msgpack_dumps({"name": "sc", "attrs": {}, "spans": spans})
    return srsly.msgpack_dumps({group: ["sc"]})


@pytest.mark.parametrize(
    "changes",
    [
        {"lengths": b"\0" * 4_000_000},
        {"cats": [{}] * 1_100_000},
        {"flags": [{}] * 1_100_000, "cats": [{}]},
        {"user_data": [b"\xdd\x00\x20\x00\x00" + b"\x80" * (2 << 20)]},
        {"lengths": (2).to_bytes(4, "little") * 2},
        {"lengths": (-2).to_bytes(4, "little", signed=True)},
        {"span_groups": [spans_at((0, 5))]},
        {"span_groups": [spans_at((-1, 1))]},
        {"span_groups": [spans_at((1, 1))]},
        {"span_groups": [spans_at((2**31 - 1, 2**31 - 1))]},
        {"span_groups": [b"\xc1"]},
        {"tokens": b""},
        {"attrs": []},
        {"attrs": [0] * 14},
        {"strings": [1, 2]},
    ],
)
def test_issue_29_malformed_parts_of_a_docbin_are_one_sentence(tmp_path: Path, changes: dict[str, Any]) -> None:
    (tmp_path / "x.spacy").write_bytes(pack(**changes))
    with pytest.raises(CorpusError, match="DocBin") as caught:
        list(read(tmp_path / "x.spacy"))
    assert "\n" not in caught.value.problem


def test_issue_29_a_small_docbin_cannot_become_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """97 kB of zlib held 97 MB of msgpack, which became 2.2 GB of Python objects: counted here, not built."""
    import srsly

    monkeypatch.setattr(srsly.msgpack, "unpackb", lambda *_, **__: pytest.fail("nothing may be built"))
    for code in (b"\x80", b"\x90", b"\xc0"):
        data = zlib.compress(b"\xdd\x01\x80\x00\x00" + code * (24 << 20))
        (tmp_path / "x.spacy").write_bytes(data)
        with pytest.raises(CorpusError, match="more than 1,000,000 objects") as caught:
            list(read(tmp_path / "x.spacy"))
        assert caught.value.file == str(tmp_path / "x.spacy")
    (tmp_path / "x.spacy").write_bytes(zlib.compress(b"\0" * (97 << 20)))
    with pytest.raises(CorpusError, match="unpacks to more than 32 MiB"):
        list(read(tmp_path / "x.spacy"))


def test_every_type_of_msgpack_is_counted() -> None:
    import srsly

    value = {"a": [1, -1, 300, -300, 70_000, -70_000, 2**40, -(2**40), 1.5, None, True], "b": {"c": "x" * 40}}
    value |= {"d": "y" * 300, "e": "z" * 70_000, "f": b"1", "g": b"2" * 300, "h": b"3" * 70_000, "i": list(range(20))}
    value |= {"j": {str(i): i for i in range(20)}, "k": list(range(70_000))}
    leaves = 11 + 2 + 20 + 40 + 70_000
    assert docbin.count_objects(srsly.msgpack_dumps(value), 10**6) == 1 + 2 * len(value) + leaves
