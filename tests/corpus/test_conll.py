from __future__ import annotations

from pathlib import Path

import pytest

from lacuner.corpus import ReadOptions, read, write
from lacuner.data import Document, Lost, Span
from lacuner.errors import ConfigError, CorpusError


def read_text(tmp_path: Path, text: str, **options: object) -> tuple[list[Document], Lost]:
    path = tmp_path / "x.conll"
    path.write_bytes(text.encode())
    lost = Lost()
    return list(read(path, options=ReadOptions(**options), lost=lost)), lost  # type: ignore[arg-type]


def found(docs: list[Document]) -> list[list[tuple[str, str]]]:
    return [[(doc.text[s.start : s.end], s.label) for s in doc.spans] for doc in docs]


TWO = [[("Mara Teel", "PER"), ("Halden", "PER"), ("Oslo", "LOC")]]
WORDS = ["Mara", "Teel", "Halden", "in", "Oslo"]
SCHEMES = {
    "IOB1": "I-PER I-PER B-PER O I-LOC",
    "IOB2": "B-PER I-PER B-PER O B-LOC",
    "BIOES": "B-PER E-PER S-PER O S-LOC",
    "BILOU": "B-PER L-PER U-PER O U-LOC",
    "BMES": "B-PER E-PER S-PER O S-LOC",
}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("named", [True, False])
def test_schemes(tmp_path: Path, scheme: str, named: bool) -> None:
    text = "\n".join(f"{word}\t{tag}" for word, tag in zip(WORDS, SCHEMES[scheme].split(), strict=True))
    docs, lost = read_text(tmp_path, text, scheme=scheme if named else None)
    assert found(docs) == TWO
    assert not len(lost)
    write(docs, tmp_path / "y.conll", scheme=scheme)
    assert [line.split("\t")[1] for line in (tmp_path / "y.conll").read_text().split("\n") if line] == SCHEMES[
        scheme
    ].split()


def test_longer_chunks_of_bmes_and_io(tmp_path: Path) -> None:
    docs, _ = read_text(tmp_path, "北\tB-LOC\n京\tM-LOC\n大\tM-LOC\n学\tE-LOC\n")
    assert found(docs) == [[("北京大学", "LOC")]]
    docs, _ = read_text(tmp_path, "Mara PER\nTeel PER\nin O\nOslo LOC\n")
    assert found(docs) == [[("Mara Teel", "PER"), ("Oslo", "LOC")]]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("Mara NNP I-NP B-PER\nsings VBZ I-VP O\n", {}),
        ("Mara  NNP\tI-NP B-PER\nsings VBZ I-VP O", {}),
        ("1\tMara\tB-PER\tx\n2\tsings\tO\ty\n", {"token_column": 1, "tag_column": 2}),
        ("Mara;B-PER\nsings;O\n", {"separator": ";"}),
        ("\ufeffMara\tB-PER\r\nsings\tO\r\n\r\n", {}),
        ("# a comment = here\nMara\tB-PER\nsings\tO\n\n\n", {}),
        ("-DOCSTART- -X- -X- O\n\nMara NNP I-NP B-PER\nsings VBZ I-VP O\n", {}),
        ("-DOCSTART-\nMara\tB-PER\nsings\tO\n \n", {}),
    ],
)
def test_layouts(tmp_path: Path, text: str, options: dict[str, object]) -> None:
    docs, lost = read_text(tmp_path, text, **options)
    assert [doc.text for doc in docs] == ["Mara sings"]
    assert found(docs) == [[("Mara", "PER")]]
    assert set(lost.counts) <= {"column not read", "comment not kept"}, "what is not kept is said"
    assert lost.counts["column not read"] == (2 if "NNP" in text or "token_column" in options else 0)
    assert lost.counts["comment not kept"] == text.count("#")


def test_docstart_numbers_documents_both_ways(tmp_path: Path) -> None:
    text = "-DOCSTART-\tO\n\nA\tO\n\nB\tO\n\n-DOCSTART-\tO\n\nC\tO\n\n"
    docs, _ = read_text(tmp_path, text)
    assert [doc.meta for doc in docs] == [{"document": 1}, {"document": 1}, {"document": 2}]
    lost = write(docs, tmp_path / "y.conll")
    assert not len(lost)
    assert (tmp_path / "y.conll").read_text() == text


def test_a_hash_is_a_word_when_it_has_a_tag(tmp_path: Path) -> None:
    docs, _ = read_text(tmp_path, "#\tO\n#wow\tO\nMara\tB-PER\n\n# comment = 1\n#1\tO\n")
    assert [doc.text for doc in docs] == ["# #wow Mara", "#1"]
    docs, _ = read_text(tmp_path, "# O\n#wow O\nMara B-PER\n\n# a longer comment\nx O\n")
    assert [doc.text for doc in docs] == ["# #wow Mara", "x"]
    assert docs[1].where is not None and docs[1].where.line == 6, "the line of the first word, not of the comment"


@pytest.mark.parametrize("separator", [",", ";", "|", " ", "\t"])
def test_separators_are_detected(tmp_path: Path, separator: str) -> None:
    docs, _ = read_text(tmp_path, f"Mara{separator}B-PER\nsings{separator}O\n")
    assert found(docs) == [[("Mara", "PER")]]


def test_comments_with_as_many_fields_as_words(tmp_path: Path) -> None:
    text = "# newdoc\nMara B-PER\nsings O\n\nOslo B-LOC\n# sent 2 = x\nis O\nbig B-\n"
    (tmp_path / "x.conll").write_text(text)
    errors: list[CorpusError] = []
    docs = list(read(tmp_path / "x.conll", on_error=errors.append))
    assert [doc.text for doc in docs] == ["Mara sings"]
    assert docs[0].where is not None and docs[0].where.line == 2
    assert [error.line for error in errors] == [8], "a comment inside a sentence does not shift the lines"


def test_docstart_in_the_middle(tmp_path: Path) -> None:
    docs, _ = read_text(tmp_path, "A O\n-DOCSTART- O\nB O\n\n-DOCSTART-x O\n")
    assert [(doc.text, doc.meta) for doc in docs] == [
        ("A", {}),
        ("B", {"document": 1}),
        ("-DOCSTART-x", {"document": 1}),
    ]


def test_words_without_tags(tmp_path: Path) -> None:
    docs, _ = read_text(tmp_path, "Mara\nsings\n\nToo\n")
    assert [doc.text for doc in docs] == ["Mara sings", "Too"]
    assert docs[0].complete is None


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a\tO\nb\n", 2, "1 columns where the file has 2"),
        ("a\tO\n\tO\n", 2, "empty"),
        ("a\tO\n\nb\tO\nc\tFOO\nd\tB-X\n", 4, "'FOO' is not a tag"),
        ("word,tag\na,O\nb,B-X\n", 1, "'tag' is not a tag .* names of the columns, delete it"),
        ("a\tO\n#wow\n", 2, "1 columns"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    with pytest.raises(CorpusError, match=words) as caught:
        read_text(tmp_path, text)
    assert caught.value.line == line


def test_one_bad_sentence_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "x.conll").write_text("a\tO\nb\n\nc\tB-X\n\nd\tB-\n\ne\tO\n")
    errors: list[CorpusError] = []
    docs = list(read(tmp_path / "x.conll", on_error=errors.append))
    assert [doc.text for doc in docs] == ["c", "e"]
    assert [error.line for error in errors] == [2, 6]


def test_repaired_tags_are_counted_with_their_first_line(tmp_path: Path) -> None:
    good = "a\tB-X\nb\tI-X\n\n" * 5
    docs, lost = read_text(tmp_path, good + "a\tO\nb\tI-X\n")
    assert lost.counts == {"tag against IOB2 repaired": 1}
    assert lost.first["tag against IOB2 repaired"].line == 17
    assert found(docs)[-1] == [("b", "X")]
    docs, lost = read_text(tmp_path, good + "a\tO\nb\tI-X\n", strict=True)
    assert found(docs)[-1] == []


def test_impossible_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no column 5"):
        read_text(tmp_path, "a\tO\n", tag_column=5)
    with pytest.raises(ConfigError, match="no tag scheme 'BIO2'"):
        read_text(tmp_path, "a\tO\n", scheme="BIO2")
    with pytest.raises(CorpusError, match="no such file"):
        read(tmp_path / "missing.conll")
    (tmp_path / "x.doc").touch()
    with pytest.raises(CorpusError, match="--format"):
        read(tmp_path / "x.doc")


def test_an_empty_file_has_no_documents(tmp_path: Path) -> None:
    assert read_text(tmp_path, "")[0] == []
    assert read_text(tmp_path, "\n\n \n")[0] == []


def test_characters_that_break_a_line_are_replaced_and_counted(tmp_path: Path) -> None:
    doc = Document("1", "a\tb", ((0, 3),), (Span(0, 3, "X\tY"),))
    lost = write([doc], tmp_path / "x.conll")
    assert lost.counts["word changed: it would break its line"] == 1
    assert lost.counts["label would break its line"] == 1
    assert (tmp_path / "x.conll").read_text() == "a b\tO\n\n"


def test_issue_29_a_line_of_ten_megabytes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.conll").write_text("Mara\tB-PER\n" + "x" * (10 << 20) + "\tO\n")
    with pytest.raises(CorpusError, match="longer than 100,000 characters") as caught:
        list(read(tmp_path / "x.conll"))
    assert caught.value.line == 2


def test_a_sentence_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without blank lines is one sentence: it must not fill the memory."""
    monkeypatch.setattr("lacuner.corpus.reader.MAX_LINES", 20)
    path = tmp_path / "x.conll"
    path.write_text("word O\n" * 20 + "\n")
    assert len(list(read(path))) == 1
    path.write_text("word O\n" * 3 + "\n" + "word O\n" * 21)
    with pytest.raises(CorpusError, match=r"x\.conll:5: from here on there are more than 20 lines"):
        list(read(path))


@pytest.mark.parametrize(
    ("text", "advice", "columns"),
    [
        ("O Mara\nB-PER Teel\n", "--tag-column 0 --token-column 1", {"tag_column": 0, "token_column": 1}),
        ("Mara O NNP\nTeel B-PER NNP\n", "--tag-column 1$", {"tag_column": 1}),
    ],
)
def test_labels_are_not_read_from_a_column_beside_the_tags(
    tmp_path: Path, text: str, advice: str, columns: dict[str, int]
) -> None:
    with pytest.raises(CorpusError, match=f"the tags are in column .*: give {advice}"):
        read_text(tmp_path, text)
    assert found(read_text(tmp_path, text, **columns)[0]) == [[("Teel", "PER")]]
