from __future__ import annotations

from pathlib import Path

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from lacuner.corpus import ReadOptions, read
from lacuner.corpus.words import _patterns, join_words, split_with_spans, split_words, to_words, word_texts, words_of
from lacuner.data import Document, Lost, Span
from lacuner.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Mara's cat, 25kg.", ["Mara", "'", "s", "cat", ",", "25kg", "."]),
        ("北京大学in2008年", ["北", "京", "大", "学", "in2008", "年"]),
        ("カタカナとひらがな", list("カタカナとひらがな")),
        ("Москва и Київ", ["Москва", "и", "Київ"]),
        ("كتب الرسالة", ["كتب", "الرسالة"]),
        ("می\u200cخواهم بروم", ["می\u200cخواهم", "بروم"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("தமிழ் மொழி", ["தமிழ்", "மொழி"]),
        ("한국어 단어", ["한국어", "단어"]),
        ("สวัสดี", ["ส", "วั", "ส", "ดี"]),
        ("cafe\u0301 İstanbul straße", ["cafe\u0301", "İstanbul", "straße"]),
        ("ok 👨\u200d👩\u200d👧!", ["ok", "👨\u200d👩\u200d👧", "!"]),
        ("a\u00a0b\u2028c\r\nd", ["a", "b", "c", "d"]),
        ("", []),
    ],
)
def test_words_of_many_scripts(text: str, words: list[str]) -> None:
    assert [text[start:end] for start, end in split_words(text)] == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\u0600 12 \u06005", ["\u0600", "12", "\u06005"]),  # the first had the space behind it
        ("ℹ🏻\u200d❤", ["ℹ", "🏻\u200d", "❤"]),
        (".🏻\u200d❤", [".🏻\u200d", "❤"]),  # the heart joined the word before if there was an ℹ before that
        ("🇩🇪🇫🇷🇮!", ["🇩🇪", "🇫🇷", "🇮", "!"]),
        ("\x00\u0301\ud800\u0301", ["\x00", "\u0301", "\ud800\u0301"]),
    ],
)
def test_words_of_symbols(text: str, words: list[str]) -> None:
    assert [text[start:end] for start, end in split_words(text)] == words


@given(st.text(st.one_of(st.characters(), st.sampled_from("\u0600ℹ🏻\u200d❤ \u2028🇩")), max_size=12))
def test_every_visible_character_is_in_exactly_one_word(text: str) -> None:
    inside = [place for start, end in split_words(text) for place in range(start, end)]
    assert inside == [place for place, character in enumerate(text) if regex.match(r"\S", character)]


def test_words_are_split_once_and_words_of_the_file_stay() -> None:
    doc = Document("1", "New York")
    assert words_of(doc) is words_of(doc) is doc.words
    given = Document("1", "New York", ((0, 8),))
    assert words_of(given) == ((0, 8),)


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["New", "York", "."], "New York ."),
        (["北", "京", "2", "5", "k"], "北京25k"),
        (["北京", "大学", "in", "2008"], "北京大学 in 2008"),
        (["x", "y"], "x y"),
        (["한국", "어"], "한국 어"),
        ([], ""),
    ],
)
def test_joining(tokens: list[str], text: str) -> None:
    assert join_words(tokens)[0] == text


def test_words_split_at_spaces(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"text": "Mara\'s  cat ."}\n{"text": "ab", "words": [[0, 1], [1, 2]]}\n')
    first, second = read(tmp_path / "x.jsonl", options=ReadOptions(words="space"))
    assert first.words == ((0, 6), (8, 11), (12, 13))
    assert second.words == ((0, 1), (1, 2)), "words that are given stay"
    with pytest.raises(ConfigError, match="unicode or space"):
        read(tmp_path / "x.jsonl", options=ReadOptions(words="magic"))  # type: ignore[arg-type]


@settings(max_examples=300)
@given(st.text(st.characters(max_codepoint=127), max_size=30))
def test_ascii_is_split_by_the_same_rule(text: str) -> None:
    by_unicode = tuple(match.span() for match in _patterns()[0].finditer(text))
    assert split_words(text) == by_unicode


@given(
    st.text("ab_1 .-\n\x1cé", max_size=12), st.lists(st.tuples(st.integers(-1, 13), st.integers(-1, 13)), max_size=4)
)
def test_words_and_spans_at_once_are_those_of_two_steps(text: str, edges: list[tuple[int, int]]) -> None:
    spans = tuple(Span(*pair, "PER") for pair in edges)
    lost, expected_lost = Lost(), Lost()
    tokens, placed = split_with_spans(Document("1", text, spans=spans), lost)
    doc = Document("1", text, spans=spans)
    assert (tokens, placed) == (word_texts(doc), to_words(doc, spans, expected_lost))
    assert lost.spans == expected_lost.spans
