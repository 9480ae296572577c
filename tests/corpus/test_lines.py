from __future__ import annotations

from pathlib import Path

import pytest

from lacuner.corpus import reader
from lacuner.corpus.reader import CorpusFile, ReadOptions
from lacuner.errors import CorpusError


def all_lines(path: Path, encoding: str = "utf-8") -> list[tuple[int, str]]:
    blocks = CorpusFile(path, ReadOptions(encoding)).read_blocks()
    return [(n, line) for block in blocks for n, line in enumerate(block.lines, block.first)]


@pytest.mark.parametrize("block", [1, 2, 3, 7, 1 << 20])
def test_lines_and_numbers_do_not_depend_on_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(reader, "BLOCK", block)
    path = tmp_path / "x"
    path.write_bytes("\ufeffeins\r\nzwei\u2028drei\n\nß北\r\nlast".encode())
    assert all_lines(path) == [(1, "eins"), (2, "zwei\u2028drei"), (3, ""), (4, "ß北"), (5, "last")]


@pytest.mark.parametrize("block", [1, 4, 1 << 20])
@pytest.mark.parametrize(
    ("data", "line", "word"),
    [(b"a\nb\n\xff\n", 3, "utf-8"), (b"a\nb\nc\0d\n", 3, "NUL"), (b"a\n\xe5\x8c", 2, "utf-8")],
)
def test_undecodable_bytes_are_reported_with_their_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, data: bytes, line: int, word: str
) -> None:
    monkeypatch.setattr(reader, "BLOCK", block)
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(CorpusError, match=word) as caught:
        all_lines(path)
    assert (caught.value.file, caught.value.line) == (str(path), line)


def test_utf16_is_recognised_and_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("eins\nzwei", encoding="utf-16")
    with pytest.raises(CorpusError, match="UTF-16"):
        all_lines(path)
    assert all_lines(path, encoding="utf-16") == [(1, "eins"), (2, "zwei")]


@pytest.mark.parametrize("encoding", ["no-such", "rot13", "base64"])
def test_unknown_encodings(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "x").write_text("a")
    with pytest.raises(CorpusError, match=f"no encoding called '{encoding}'"):
        all_lines(tmp_path / "x", encoding=encoding)


def test_overlong_lines_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_LINE", 1000)
    (tmp_path / "x").write_text("short\n" + "x" * 5000)
    with pytest.raises(CorpusError, match="longer than 1,000 characters") as caught:
        all_lines(tmp_path / "x")
    assert caught.value.line == 2


def test_read_text_keeps_line_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")
    file = CorpusFile(tmp_path / "x")
    assert file.read_text() == "a\r\nb\r\n"
    monkeypatch.setattr(reader, "MAX_TEXT", 3)
    with pytest.raises(CorpusError, match="longer than"):
        file.read_text()
