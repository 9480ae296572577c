"""Matcher examples."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lacuner.annotate.gazetteer.entries import Entry
from lacuner.annotate.matching import automaton
from lacuner.annotate.matching.matcher import Matcher
from lacuner.annotate.matching.terms import is_acronym
from lacuner.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]


def found(terms: list[str], text: str, **settings: object) -> list[str]:
    matcher = Matcher([Entry(term, "X") for term in terms], **settings)  # type: ignore[arg-type]
    return [text[start:end] for start, end, _ in matcher.find(text)]


def test_a_longer_match_inside_a_word_hides_no_shorter_match() -> None:
    assert found(["new york", "new", "york city"], "new york", case="fold") == ["new york"]
    assert found(["heart attack", "heart"], "heart attacks") == ["heart"]
    assert found(["cat", "cat fish"], "cat fishing, cat fish") == ["cat", "cat fish"]
    assert found(["ab c", "b"], "xab c b", case="fold") == ["b"]


def test_all_matches() -> None:
    assert found(["new york", "york", "new"], "new york", overlaps="all", case="fold") == ["new york", "new", "york"]


@pytest.mark.parametrize(
    ("term", "text", "expected"),
    [
        ("中国", "我爱中国人", 1),
        ("中国", "abc中国def", 1),
        ("abc", "中abc文", 1),
        ("カ", "アカー", 1),
        ("ไทย", "ประเทศไทยนี้", 1),
        ("kat", "kat-fish", 1),
        ("kat", "kats", 0),
        ("kat", "_kat", 0),
        ("kat", "2kat", 0),
        ("kat", "(kat)", 1),
        ("CO", "CO₂", 0),
        ("ко", "кот", 0),
        ("кот", "кот.", 1),
        ("서울", "서울은", 0),
        ("é", "caf\u0301é", 0),
        ("e", "e\u0301", 0),
        ("中", "中\ufe00", 0),
        ("\U0001f469", "\U0001f469\u200d\U0001f680", 0),
        ("\U0001f680", "\U0001f469\u200d\U0001f680", 0),
        ("\U0001f44d", "\U0001f44d\U0001f3fd", 0),
        ("का", "का की", 1),
        ("क", "का", 0),
        ("می", "می\u200cخواهم", 0),
        ("c++", "c++ c++x", 2),
    ],
)
def test_word_boundaries(term: str, text: str, expected: int) -> None:
    assert len(found([term], text, case="exact")) == expected


@pytest.mark.parametrize(
    ("term", "text", "expected"),
    [
        ("Straße", "STRASSE", "STRASSE"),
        ("strasse", "in der Straße", "Straße"),
        ("ΟΔΟΣ", "οδός οδος", "οδος"),
        ("İzmir", "i̇zmir", "i̇zmir"),
        ("ﬁsh", "FISH", "FISH"),
        ("café", "CAFE\u0301 x", "CAFE\u0301"),
        ("x–y", "x-y", "x-y"),
        ("o'neill", "O’Neill", "O’Neill"),
        ("heart attack", "heart\r\n\tattack", "heart\r\n\tattack"),
        ("heart attack", "heart\u00a0attack", "heart\u00a0attack"),
        ("insulin", "in\u00adsulin\u00ad,", "in\u00adsulin"),
        ("각", "\u1100\u1161\u11a8", "\u1100\u1161\u11a8"),
        ("Ångström", "A\u030angstro\u0308m \u212bngström", "A\u030angstro\u0308m"),
    ],
)
def test_normal_forms(term: str, text: str, expected: str) -> None:
    assert found([term], text, case="fold")[0] == expected


def test_a_line_break_in_a_script_without_spaces() -> None:
    assert found(["红楼梦"], "他读红\n楼梦。") == ["红\n楼梦"]
    assert found(["红楼梦"], "他读红 \r\n楼\n梦。") == ["红 \r\n楼\n梦"]
    assert found(["ประเทศไทย"], "ประเทศ\nไทยนี้") == ["ประเทศ\nไทย"]
    assert found(["红\n楼梦"], "红楼梦") == ["红楼梦"], "broken in the dictionary"
    for apart in ("红\n\n楼梦", "红\n  楼梦", "红 楼梦", "红\n\u3000\u3000楼梦"):
        assert found(["红楼梦"], apart) == [], "a new paragraph, or a space"
    assert found(["서울은"], "서울\n은") == [], "Korean has spaces"
    assert found(["A股", "维生素C", "New York"], "A\n股, 维生素\nC, New\nYork") == ["A\n股", "维生素\nC", "New\nYork"]
    assert found(["红楼梦"], "红\n楼梦", spacing="tokens") == ["红\n楼梦"]


def test_smart_case() -> None:
    assert found(["US", "aspirin", "Lead"], "us US Aspirin ASPIRIN lead Lead") == ["US", "Aspirin", "ASPIRIN", "Lead"]
    assert [
        word
        for word in ("WHO", "mRNA", "NaCl", "Ca", "5-HT", "Anna", "ASPIRIN", "a b", "7", "中国")
        if is_acronym(word)
    ] == [
        "WHO",
        "mRNA",
        "NaCl",
        "Ca",
        "5-HT",
    ]


def test_one_entry_per_label_in_gazetteer_order() -> None:
    entries = [Entry("b", "Y"), Entry("B", "X", 0.2), Entry("b", "X", 0.7), Entry("b", "Y")]
    assert Matcher(entries, case="fold").find("b") == [(0, 1, (0, 2))]
    assert Matcher(entries, case="exact").find("B") == [(0, 1, (1,))]


def test_stop_list_and_empty_entries_are_accounted_for() -> None:
    entries = [Entry("The", "X"), Entry("\u00ad ", "X"), Entry("gout", "X")]
    matcher = Matcher(entries, stop=["the", "GOUT"])
    assert matcher.find("the The gout") == []
    assert (matcher.terms.stopped, matcher.terms.empty) == (2, 1)


def test_tokenised_text_matches_entries_written_otherwise() -> None:
    terms = ["5-FU", "Parkinson 's disease", "( R)-alpha - methylhistamine", "heart attack", "中国"]
    for text in (
        "5 - FU",
        "Parkinson ' s disease",
        "(R)-alpha-methylhistamine",
        "( R ) - alpha - methylhistamine",
        "中 国",
    ):
        assert found(terms, text, spacing="tokens") == [text]
        assert found(terms, text) == []
    assert found(terms, "heartattack heart  attack", spacing="tokens") == ["heart  attack"]
    assert found(terms, "( 5 - FU )", spacing="tokens") == ["5 - FU"]


def test_matches_in_words() -> None:
    matcher = Matcher([Entry("heart attack", "X"), Entry("heart", "X"), Entry("attack", "X"), Entry("a-b", "X")])
    text = "heart attack a-b"
    words = ((0, 5), (6, 12), (13, 14), (14, 16))
    fit, misfit = matcher.hits_in_words(text, words)
    assert [hit[1:] for hit in fit] == [(0, 12), (13, 16)]
    assert misfit == []
    fit, misfit = matcher.hits_in_words(text, ((0, 5), (6, 16)))
    assert [hit[1:] for hit in fit] == [(0, 5)]
    assert [hit[1:] for hit in misfit] == [(13, 16)]


def test_settings_are_checked() -> None:
    with pytest.raises(ConfigError, match="case is 'lower', but must be smart or fold or exact"):
        Matcher([], case="lower")  # type: ignore[arg-type]


def test_any_text_can_be_searched() -> None:
    matcher = Matcher([Entry("a", "X"), Entry("\ud800", "X")])
    assert [match[:2] for match in matcher.find("\ud800 a \udfff\0")] == [(0, 1), (2, 3), (4, 5)]


@pytest.mark.parametrize("limit", [0, 1_000])
def test_characters_of_all_widths_in_a_chinese_gazetteer(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(automaton, "MAX_LITTLE_ENDIAN", limit)
    terms = ["中国", "\U00020000中", "abc", "\U0001f600", "é中", "\u4e00\u4e01", "\u0041\u4e4e\u4e00"]
    text = "\U0001f600abc中国\U00020000中é中\U0001f600\U00020000x\u4e4e\u4e00\u4e01中"
    assert found(terms, text) == ["\U0001f600", "abc", "中国", "\U00020000中", "é中", "\U0001f600", "\u4e00\u4e01"]


SCALE = """
import random, sys, time
from lacuner.annotate import Matcher, load_gazetteer
started = time.perf_counter()
matcher = Matcher(load_gazetteer(sys.argv[1]).entries)
built = time.perf_counter() - started
rng = random.Random(7)
words = [entry.surface for entry in matcher.entries[:200_000]]
page = " ".join(rng.choice(words) for _ in range(5_000))
size = matches = 0
while size < 100_000_000:
    size += len(page)
    matches += len(matcher.hits(page))
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))  # ru_maxrss has the parent's too
print(built, int(peak.split()[1]) / 1024, matches)
"""


@pytest.mark.slow
def test_a_million_entries_and_a_hundred_megabytes(tmp_path: Path) -> None:
    syllables = [a + b for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u", "an", "or")]
    with open(tmp_path / "million.tsv", "w") as stream:
        for number in range(1_000_000):
            first, second = divmod(number * 7919 % 49_787_136, 7056)
            parts = (*divmod(first, 84), *divmod(second, 84))
            name = "".join(syllables[part] for part in parts[:2]) + " " + "".join(syllables[part] for part in parts[2:])
            stream.write(f"{name}\tLABEL{number % 4}\n")
    command = [sys.executable, "-c", SCALE, str(tmp_path / "million.tsv")]
    result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    built, megabytes, matches = map(float, result.stdout.split())
    assert built < 60
    assert megabytes < 1_000
    assert matches > 1_000_000
