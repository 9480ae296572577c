"""Regular expressions as a source: files of patterns, and the time limit."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lacuner.annotate import annotate, read_patterns, regex_source
from lacuner.annotate.patterns import compile_pattern, patterns_source
from lacuner.data import Document
from lacuner.errors import ConfigError, LacunerError

CATASTROPHIC = r"(.*a){20}b"
DOC = Document("7", "aaaaaaaa a" * 20 + "?")


def test_a_pattern_that_takes_exponential_time_is_stopped() -> None:
    with pytest.raises(ConfigError, match=r"document '7': the pattern .* of X took longer than 0.05 s; .*simplify it"):
        regex_source("X", CATASTROPHIC, timeout=0.05).find(DOC)


def test_a_file_of_patterns(tmp_path: Path) -> None:
    file = tmp_path / "rules.txt"
    file.write_bytes(
        b"\xef\xbb\xbf# years\r\nYEAR=\\b1[89]\\d\\d\\b\r\n\r\nPLACE=in (?P<entity>[A-Z]\\w+)\r\n=Mr=\\w+\r\n"
    )
    patterns = read_patterns(file)
    assert [pattern.label for pattern in patterns] == ["YEAR", "PLACE", ""]
    output = patterns_source("rules", patterns).find(Document("1", "Mr=X in Halden 1912"))
    assert {(span.start, span.end, span.label, span.source) for span in output.spans} == {
        (8, 14, "PLACE", "rules"),
        (15, 19, "YEAR", "rules"),
    }
    assert [span.key for span in output.unsure] == [(0, 4, "")]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"YEAR=[0-9]+\nX=(\n", r"rules.txt:2: the pattern '\(' of X is not a regular expression"),
        (b"just text\n", r"rules.txt:1: a pattern is written LABEL=PATTERN, not 'just text'"),
        (b"# nothing\n", r"rules.txt: there is no pattern in this file"),
        (b"\xff\xfe", r"rules.txt: this file of patterns is not UTF-8"),
        (None, r"rules.txt: cannot read this file: No such file"),
    ],
)
def test_mistakes_in_a_file_of_patterns(tmp_path: Path, text: bytes | None, sentence: str) -> None:
    file = tmp_path / "rules.txt"
    if text is not None:
        file.write_bytes(text)
    with pytest.raises(LacunerError, match=sentence):
        read_patterns(file)


def test_a_group_that_does_not_take_part_in_the_match_is_no_span() -> None:
    assert regex_source("X", r"a|(?P<entity>b)").find(Document("1", "ab")).spans[0].key == (1, 2, "X")
    assert len(regex_source("X", r"a|(?P<entity>b)").find(Document("1", "aa")).spans) == 0


def test_the_patterns_of_one_source_do_not_overlap_in_the_result() -> None:
    source = patterns_source("rules", [compile_pattern("A", "Mara"), compile_pattern("B", "Mara Teel")])
    [doc] = annotate([Document("1", "Mara Teel")], [source])
    assert [span.key for span in doc.spans] == [(0, 9, "B")]


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_pattern_gives_spans_or_one_sentence(pattern: str, text: str) -> None:
    try:
        source = regex_source("X", pattern, timeout=0.2)
        spans = source.find(Document("1", text)).spans
    except LacunerError as error:
        assert "\n" not in str(error).replace(pattern, "")
    else:
        assert all(0 <= span.start < span.end <= len(text) for span in spans)
