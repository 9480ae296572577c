"""The matcher equals a naive reference, on hostile alphabets."""

from __future__ import annotations

import random
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lacuner.annotate.gazetteer.entries import Entry
from lacuner.annotate.matching.automaton import title_case
from lacuner.annotate.matching.matcher import Matcher
from lacuner.annotate.matching.normalise import normalise
from lacuner.annotate.matching.terms import COMMON_WORDS, is_acronym
from tests.annotate import reference

# Four letters in both cases, Chinese, dotted and dotless I, sharp s, marks, what is normalised, what joins.
ALPHABET = "abstABST" + "中日カไ" + "İıI" + "ßẞ" + "\u0301\u0307\u0323" + "éÉ" + " \n-\u2013'\u2019\u00ad"
NASTY = (
    ALPHABET + "ⓐⒶǅǆꭰᎠﬁﬀŉǰJ\u030cσςΣ_5\u200d\u200c각\u1100\u1161\u11a8\u212b\u0958\u3000\t\u00a0\U0001f469\U0001f3fd가"
)

plain_texts = st.text("abst 中", max_size=30)
texts = st.text(ALPHABET, max_size=24)
nasty_texts = st.text(NASTY, max_size=24)
surfaces = st.lists(st.text(ALPHABET, min_size=1, max_size=5), max_size=8)
nasty_surfaces = st.lists(st.text(NASTY, min_size=1, max_size=5), max_size=8)
plain_surfaces = st.lists(st.text("abst 中", min_size=1, max_size=5), max_size=8)
cases = st.sampled_from(["fold", "exact"])


def found(matcher: Matcher, text: str, fold: bool) -> list[tuple[int, int, str]]:
    """Our matches in the reference's terms."""
    result = []
    for start, end, entries in matcher.find(text):
        forms = {reference.normalise_surface(matcher.entries[entry].surface, fold) for entry in entries}
        assert len(forms) == 1
        result.append((start, end, forms.pop()))
    return result


def check(terms: list[str], text: str, case: str) -> None:
    entries = [Entry(surface, "X") for surface in terms]
    fold = case == "fold"
    expected = reference.find_all(set(terms), text, fold)
    every = found(Matcher(entries, case=case, overlaps="all"), text, fold)
    assert sorted(every) == sorted(expected)
    assert found(Matcher(entries, case=case), text, fold) == reference.longest_leftmost(expected)


@given(plain_surfaces, plain_texts, cases)
def test_plain_texts(terms: list[str], text: str, case: str) -> None:
    check(terms, text, case)


@settings(max_examples=400)
@given(surfaces, texts, cases)
@example(["s"], "ß", "fold")
@example(["ss"], "ß", "fold")
@example(["i"], "İ", "fold")
@example(["a"], "a\u0301", "exact")
@example(["ab", "a"], "abt a", "exact")
def test_mixed_alphabet(terms: list[str], text: str, case: str) -> None:
    check(terms, text, case)


@settings(max_examples=200)
@given(st.lists(st.text("中日\u4e4e\u4e00Aé\U00020000\U0001f469", min_size=1, max_size=4), max_size=8),
       st.text("中日\u4e4e\u4e00Aé\U00020000\U0001f469 ", max_size=24), cases)  # fmt: skip
def test_mostly_chinese_gazetteers(terms: list[str], text: str, case: str) -> None:
    check([*terms, "中日中日"], text, case)


@settings(max_examples=600)
@given(nasty_surfaces, nasty_texts, cases)
def test_hostile_alphabet(terms: list[str], text: str, case: str) -> None:
    check(terms, text, case)


@settings(max_examples=300)
@given(nasty_surfaces, nasty_texts, cases)
def test_tokenised_text(terms: list[str], text: str, case: str) -> None:
    fold = case == "fold"
    expected = reference.find_all(set(terms), text, fold, tokens=True)
    matcher = Matcher([Entry(term, "X") for term in terms], case=case, overlaps="all", spacing="tokens")
    assert sorted({match[:2] for match in matcher.find(text)}) == sorted({match[:2] for match in expected})


@settings(max_examples=300)
@given(nasty_surfaces, nasty_texts, st.integers(0, 99), st.sampled_from(["smart", "fold", "exact"]))
def test_neither_order_nor_duplicates_matter(terms: list[str], text: str, seed: int, case: str) -> None:
    rng = random.Random(seed)
    entries = [Entry(surface, rng.choice("XYZ"), rng.choice([None, 0.5, 0.9])) for surface in terms]
    shuffled = entries + [rng.choice(entries) for _ in entries]
    rng.shuffle(shuffled)

    def content(matcher: Matcher) -> list[tuple[int, int, set[Entry]]]:
        return [
            (start, end, {matcher.entries[entry] for entry in numbers}) for start, end, numbers in matcher.find(text)
        ]

    for overlaps in ("longest", "all"):
        one = Matcher(entries, case=case, overlaps=overlaps)
        two = Matcher(shuffled, case=case, overlaps=overlaps)
        assert content(one) == content(two)


@settings(max_examples=300)
@given(surfaces, texts)
def test_smart_is_exact_for_acronyms_and_common_words_and_folded_for_others(terms: list[str], text: str) -> None:
    terms = [*terms, "at", "As", "TB", "aß"]
    plain = {term: reference.normalise_surface(term, False) for term in terms}
    strict = {term for term in terms if is_acronym(plain[term]) or plain[term].lower() in COMMON_WORDS}
    expected = {place[:2] for place in reference.find_all(strict, text, False)}
    expected |= {place[:2] for place in reference.find_all(set(terms) - strict, text, True)}
    matcher = Matcher([Entry(surface, "X") for surface in terms], overlaps="all")
    assert {match[:2] for match in matcher.find(text)} == expected


@settings(max_examples=300)
@given(st.text(max_size=40), st.booleans())
def test_the_normal_form_of_any_text_is_that_of_its_units(text: str, fold: bool) -> None:
    known = [char for char in text if unicodedata.category(char) not in ("Cn", "Cs", "Co")]
    text = "".join(known)
    units = reference.units(text, fold)
    assert normalise(text, fold).text.split() == "".join(unit.form for unit in units).split()


@settings(max_examples=300)
@given(st.text(max_size=30) | nasty_texts)
def test_title_case_only_changes_case(text: str) -> None:
    form = normalise(text, True).text
    titled = title_case(form)
    assert len(titled) == len(form)
    assert all(high == low or high.casefold() == low for high, low in zip(titled, form, strict=True))


def test_every_word_start_is_capitalised_alike() -> None:
    every = [chr(code) for code in (*range(0xD800), *range(0xE000, 0x20000))]
    folded = [char for char in every if normalise(char, True).text == char]
    cased = [char for char in folded if char.title() != char or char.lower() != char]
    before = [char for char in cased if not reference.is_word(char)] + [*" 5-_aßéıǰÿ中\u0301\u200dᎠ"]
    assert (len(cased) > 1_000) and len(before) > 20
    for left in before:
        for char in cased:
            if not (reference.is_word(left) and reference.is_word(char)):
                assert title_case(left + char)[len(left) :] == title_case(char), (left, char)


def test_title_case_examples() -> None:
    assert title_case("new york's 3rd o'neill_x") == "New York'S 3Rd O'Neill_X"
    assert title_case("élan vital, ırmak ⓐb ǰa") == "Élan Vital, ırmak ⓐB ǰa"


def test_alphabets_are_what_they_claim() -> None:
    assert len(ALPHABET) == len(set(ALPHABET))
    assert {"İ", "ß", "中", "\u0301"} <= set(ALPHABET)


@pytest.mark.parametrize("case", ["fold", "exact", "smart"])
def test_empty_gazetteer_and_empty_text(case: str) -> None:
    assert Matcher([], case=case).find("some text") == []
    assert Matcher([Entry("a", "X")], case=case).find("") == []
    assert Matcher([Entry(" \u00ad ", "X")], case=case).find("a \u00ad b") == []
