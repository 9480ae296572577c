from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from difflib import SequenceMatcher
from typing import Any

import pytest

from lacuner.corpus.check import Checker, Problem, fix, similar_labels, span_problems
from lacuner.data import Document, Span, Where
from tests.growth import count_steps

TEXT = "Mara Teel left Halden."


def problems(*spans: Span, text: str = TEXT) -> list[str]:
    return [kind for kind, _, _ in span_problems(Document("1", text, spans=spans))]


@pytest.mark.parametrize(
    ("spans", "kinds"),
    [
        ([Span(0, 9, "PER"), Span(15, 21, "LOC")], []),
        ([Span(0, 9, "PER"), Span(0, 4, "PER")], []),  # nested is no mistake
        ([Span(3, 3, "PER")], ["empty"]),
        ([Span(0, 99, "PER")], ["outside"]),
        ([Span(-3, 4, "PER")], ["outside"]),
        ([Span(5, 2, "PER")], ["outside"]),
        ([Span(0, 5, "PER")], ["whitespace"]),
        ([Span(1, 9, "PER")], ["misaligned"]),
        ([Span(0, 4, "PER"), Span(0, 4, "PER", 0.5)], ["duplicate"]),
        ([Span(0, 4, "PER"), Span(0, 4, "LOC")], ["two labels"]),
        ([Span(0, 9, "PER"), Span(5, 14, "PER")], ["crossing"]),
        ([Span(0, 99, "A"), Span(0, 5, "B"), Span(2, 4, "C")], ["outside", "whitespace", "misaligned"]),
    ],
)
def test_each_kind_of_problem_is_reported(spans: list[Span], kinds: list[str]) -> None:
    assert problems(*spans) == kinds


def run(*corpora: list[Document], rare: int = 2) -> list[Problem]:
    found: list[Problem] = []
    checker = Checker(found.append)
    for i, docs in enumerate(corpora):
        list(checker.check(docs, f"split{i}"))
    checker.finish(rare)
    return found


def test_corpus_wide_problems() -> None:
    where = Where("train.conll", 7, line_per_word=True)
    train = [Document("1", TEXT, spans=(Span(0, 4, "PER"), Span(5, 9, "PER")), where=where), Document("1", "x")]
    test = [Document("1", TEXT, spans=(Span(15, 21, "per"),), where=Where("test.conll", 1))]
    kinds = {problem.kind: problem for problem in run(train, test)}
    assert set(kinds) == {"duplicate id", "shared text", "rare label", "labels that look alike"}
    assert "train.conll:7" in kinds["shared text"].message
    assert "'per'" in kinds["rare label"].message


def test_a_word_of_a_column_file_has_its_own_line() -> None:
    where = Where("x.conll", 10, line_per_word=True)
    doc = Document("1", TEXT, spans=(Span(15, 20, "LOC"),), where=where)
    [problem] = run([doc], rare=0)
    assert str(problem).startswith("x.conll:13: misaligned: document '1': LOC 15-20 'Halde'")


def test_fix_leaves_only_problems_that_need_a_decision() -> None:
    spans = (
        Span(0, 5, "PER"),
        Span(0, 4, "PER", 0.5),
        Span(16, 21, "LOC"),
        Span(3, 3, "X"),
        Span(30, 40, "X"),
        Span(15, 99, "LOC"),
        Span(0, 9, "PER"),
        Span(5, 14, "PER"),
    )
    fixed: Counter[str] = Counter()
    doc = fix(Document("1", TEXT, spans=spans), fixed)
    assert [kind for kind, _, _ in span_problems(doc)] == ["crossing"]
    assert doc.spans[:2] == (Span(0, 4, "PER"), Span(15, 21, "LOC"))
    assert fixed["dropped: empty"] == 2
    assert fixed["dropped: duplicate"] == 1
    assert fixed["white space trimmed"] == 1
    assert fix(doc, Counter()) == doc, "a second time there is nothing to do"


@pytest.mark.parametrize(
    ("labels", "named"),
    [
        ({"CAPTAIN": 9, "captain": 8}, ["'CAPTAIN' (9), 'captain' (8)"]),
        (
            {"SHIP": 90, "SIHP": 9, "HARBOUR": 80, "HARBOR": 3},
            ["'SHIP' (90), 'SIHP' (9)", "'HARBOUR' (80), 'HARBOR' (3)"],
        ),
        ({"SHIP": 90, "SHOP": 60}, []),  # both are frequent
        ({"DISEASE": 90, "CHEMICAL": 1, "GENE": 2}, []),
    ],
)
def test_labels_that_may_be_typos_of_others(labels: dict[str, int], named: list[str]) -> None:
    assert list(similar_labels(labels)) == named


def crowd(kind: str, size: int) -> Document:
    """A document with many spans that all have the same problem."""
    text = "word " * size
    places = {
        "misaligned": [(5 * i + 1, 5 * i + 4) for i in range(size)],
        "duplicate": [(0, 4)] * size,
        "crossing": [(5 * i, 5 * i + 9) for i in range(size - 1)],
        "all crossing": [(5 * i, 5 * (size // 2 + i) + 4) for i in range(size // 2)],
        "nested": [(0, 5 * i + 4) for i in range(size)],
    }
    return Document("1", text, spans=tuple(Span(start, end, "X") for start, end in places[kind]))


@pytest.mark.parametrize("kind", ["misaligned", "duplicate", "crossing", "all crossing", "nested"])
def test_issue_29_many_spans_in_one_document_take_linear_work(kind: str) -> None:
    def check_and_fix(doc: Document) -> Callable[[], object]:
        return lambda: (list(span_problems(doc)), fix(doc, Counter()))

    small, large = (count_steps(check_and_fix(crowd(kind, size))) for size in (150, 600))
    assert large < 4 * 1.5 * small


def test_issue_29_many_labels_take_linear_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """3,000 labels took 51 seconds: every pair was compared."""
    from lacuner.corpus import check

    compared = Counter[int]()

    class Counted(SequenceMatcher[str]):
        def __init__(self, *args: Any, **options: Any) -> None:
            compared[size] += 1
            super().__init__(*args, **options)

    monkeypatch.setattr(check, "SequenceMatcher", Counted)
    for size in (500, 1000):
        labels = {f"LABEL_{i * 7919 % 100_003:06d}": 1 + 9 * (i % 2) for i in range(size)}
        list(similar_labels(labels))
        assert compared[size] <= 2 * check.NEIGHBOURS * size
    punctuation = {"".join(chr(0x2010 + int(digit)) for digit in f"{i:04d}"): 1 for i in range(1000)}
    assert len(list(similar_labels(punctuation))) == 999, "all have the same plain form: each is named once"


@pytest.mark.parametrize("typo", ["PERSN", "PERSSON", "PRSON", "PERSOM", "QERSON", "Person"])
def test_typos_are_found_among_many_labels(typo: str) -> None:
    labels = {f"{chr(65 + i % 26)}{chr(65 + i // 26 % 26)}{i:04d}ZZ": 50 for i in range(400)}
    assert any("'PERSON' (90)" in pair for pair in similar_labels({**labels, "PERSON": 90, typo: 1}))


@pytest.mark.parametrize(
    ("text", "span", "unit"),
    [
        ("🚀 Mara left", Span(3, 7, "PER"), "utf-16"),
        ("🚀🚀 Mara-Lou left", Span(5, 9, "PER"), "utf-16"),
        ("Élan, é Mara", Span(10, 14, "PER"), "bytes"),
    ],
)
def test_offsets_in_another_unit_are_suggested(text: str, span: Span, unit: str) -> None:
    [(_, _, message)] = span_problems(Document("1", text, spans=(span,)))
    assert message.endswith(f"; with --offsets {unit} it is 'Mara'")


def test_offsets_that_no_unit_explains() -> None:
    [(_, _, message)] = span_problems(Document("1", "🚀 Mara left", spans=(Span(4, 9, "PER"),)))
    assert "--offsets" not in message
