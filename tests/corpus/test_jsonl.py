from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lacuner.corpus import read, write
from lacuner.data import Document, Lost, Span
from lacuner.errors import CorpusError


def read_rows(tmp_path: Path, *rows: Any) -> list[Document]:
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return list(read(path))


def test_our_format_with_all_states(tmp_path: Path) -> None:
    row = {
        "id": "a",
        "text": "Mara in Oslo",
        "spans": [{"start": 0, "end": 4, "label": "PER", "score": 0.5, "source": "dictionary"}],
        "rejected": [{"start": 8, "end": 12}],
        "unsure": [{"start": 8, "end": 12, "label": "LOC"}],
        "complete": False,
        "meta": {"url": "x"},
        "extra": [1],
    }
    [doc] = read_rows(tmp_path, row)
    assert doc.spans == (Span(0, 4, "PER", 0.5, "dictionary"),)
    assert doc.rejected == (Span(8, 12, ""),)
    assert doc.unsure == (Span(8, 12, "LOC"),)
    assert doc.complete is False
    assert doc.words is None, "words are split only when somebody needs them"
    assert doc.meta == {"url": "x", "extra": [1]}, "nothing of a foreign row is thrown away"


def test_tokens_with_tags_or_spans_or_text(tmp_path: Path) -> None:
    docs = read_rows(
        tmp_path,
        {"tokens": ["Mara", "in", "Oslo"], "ner_tags": ["B-PER", "O", "B-LOC"]},
        {"tokens": ["Mara", "in", "Oslo"], "tags": ["S-PER", "O", "S-LOC"]},
        {"tokens": ["Mara", "in", "Oslo"], "spans": [[0, 1, "PER"], {"start": 2, "end": 3, "type": "LOC"}]},
        {"tokens": ["Mara", "in", "Oslo"], "text": "Mara in  Oslo", "ner_tags": ["B-PER", "O", "B-LOC"]},
    )
    assert [[doc.text[s.start : s.end] for s in doc.spans] for doc in docs] == [["Mara", "Oslo"]] * 4
    assert [doc.id for doc in docs] == ["1", "2", "3", "4"]
    assert docs[3].text == "Mara in  Oslo"


def test_span_keys_of_other_tools(tmp_path: Path) -> None:
    docs = read_rows(
        tmp_path,
        {"text": "Mara in Oslo", "label": [[0, 4, "PER"]]},
        {"text": "Mara in Oslo", "entities": [{"start": 0, "end": 4, "label": "PER"}], "label": "news"},
    )
    assert [doc.spans for doc in docs] == [(Span(0, 4, "PER"),)] * 2
    assert docs[1].meta == {"label": "news"}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("{", "not JSON"),
        ("[1]", "must be a JSON object"),
        ("[" * 100_000, "not readable JSON"),
        ('{"text": "a", "x": ' + "9" * 5000 + "}", "out of range"),
        ({"spans": []}, "neither `text` nor `tokens`"),
        ({"text": 3}, "`text` must be a string"),
        ({"text": "ab", "spans": [{"start": 0, "end": 3, "label": "X"}]}, "outside the text"),
        ({"text": "ab", "spans": [{"start": 1, "end": 1, "label": "X"}]}, "empty"),
        ({"text": "ab", "spans": [{"start": 2, "end": 1, "label": "X"}]}, "ends before"),
        ({"text": "ab", "spans": [{"start": 0, "end": 1}]}, "needs a `label`"),
        ({"text": "ab", "spans": [{"start": 0.0, "end": 1, "label": "X"}]}, "whole numbers"),
        ({"text": "ab", "spans": [{"start": True, "end": 2, "label": "X"}]}, "whole numbers"),
        ('{"text": "ab", "spans": [{"start": 0, "end": 1, "label": "X", "score": NaN}]}', "out of range"),
        ('{"text": "ab", "meta": {"x": Infinity}}', "out of range"),
        ({"text": "ab", "spans": "x"}, "`spans` must be a list"),
        ({"text": "ab", "words": [[0, 1], [0, 2]]}, "out of order"),
        ({"text": "ab", "words": [[0, 9]]}, "outside"),
        ({"text": "ab", "complete": "yes"}, "true or false"),
        ({"text": "ab", "id": 1.5}, "`id` must be"),
        ('{"text": "a\\ud800b"}', "surrogate"),
        ('{"text": "a\\u0000b"}', "NUL"),
        ({"tokens": ["a"], "tags": ["B-X", "O"]}, "2 tags for 1 tokens"),
        ({"tokens": ["a"], "tags": [3]}, "numbers, which have no meaning"),
        ({"tokens": ["a"], "tags": ["X"]}, "not a tag"),
        ({"tokens": ["a", ""]}, "none of them empty"),
        ({"tokens": ["a"], "spans": [[0, 2, "X"]]}, "outside the 1 tokens"),
        ({"tokens": ["a", "b"], "text": "a c"}, "does not follow"),
        ({"tokens": ["a"], "text": "a c"}, "continues after"),
    ],
)
def test_errors_name_line_and_problem(tmp_path: Path, row: Any, words: str) -> None:
    with pytest.raises(CorpusError, match=words) as caught:
        read_rows(tmp_path, {"text": "fine"}, row)
    assert caught.value.line == 2
    assert str(caught.value).startswith(f"{tmp_path / 'x.jsonl'}:2: ")


def test_complete_from_the_file_or_from_the_role(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"text": "a", "complete": false}\n{"text": "b"}\n')
    assert [doc.complete for doc in read(tmp_path / "x.jsonl", complete=True)] == [False, True]
    assert [doc.complete for doc in read(tmp_path / "x.jsonl")] == [False, None]


def test_a_failing_writer_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("old")

    def docs() -> Any:
        yield Document("1", "a")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write(docs(), path)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["x.jsonl"]


def test_a_folder_without_write_permission_is_a_corpus_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CorpusError, match="cannot write"):
        write([Document("1", "a")], tmp_path / "file" / "x.jsonl")


def test_labels_of_the_whole_text_are_named_by_their_key(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match='`label` has labels of the whole text, not of spans: "positive"'):
        read_rows(tmp_path, {"text": "Mara left", "label": ["positive"]})


def test_an_answer_that_prodigy_does_not_know_is_counted(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"text": "Mara", "spans": [[0, 4, "PER"]], "answer": "maybe"}\n')
    [doc] = read(tmp_path / "x.jsonl", lost=(lost := Lost()))
    assert (doc.meta, lost.counts) == (
        {"answer": "maybe"},
        {"`answer` is none of Prodigy's, and is kept in meta only": 1},
    )


@pytest.mark.parametrize("digits", [30, 4000])
def test_offsets_of_thousands_of_digits_are_named_in_short(digits: int, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(f'{{"text": "Mara left", "spans": [[0, {"9" * digits}, "PER"]]}}\n')
    with pytest.raises(
        CorpusError, match="the span 0-99999999999999999999 is outside the text of 9 characters"
    ) as error:
        list(read(tmp_path / "x.jsonl"))
    assert len(str(error.value)) < 500
