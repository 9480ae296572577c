from __future__ import annotations

from collections import Counter

import pytest

from lacuner.corpus.check import Checker, Problem, fix, similar_labels, span_problems
from lacuner.data import Document, Span, Where

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
