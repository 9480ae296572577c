"""Label issues: missing names grouped, and written as a gazetteer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lacuner.annotate.gazetteer.load import load_gazetteer
from lacuner.data import Document, Span
from lacuner.techniques.label_issues import Disagreement, LabelIssues, find_label_issues, write_missing_names

TEXT = "Mara  Teel met Mara\nTeel in Halden, =cmd and Mara Teel."


def missing(text: str, label: str, score: float, nth: int = 0) -> Disagreement:
    start = -1
    for _ in range(nth + 1):
        start = TEXT.index(text, start + 1)
    return Disagreement("missing", Document("1", TEXT), Span(start, start + len(text), label, score))


ISSUES = LabelIssues(
    [
        missing("Mara  Teel", "PERSON", 0.9),
        missing("Halden", "PLACE", 0.8),
        missing("Mara\nTeel", "PERSON", 0.7),
        missing("=cmd", "PLACE", 0.6),
        missing("Mara Teel", "PLACE", 0.5),
    ],
    [],
    3,
)


def test_mentions_of_a_name_are_grouped() -> None:
    names = [(name.text, name.label, round(name.score, 3), len(name.mentions)) for name in ISSUES.missing_names()]
    assert names == [
        ("Mara Teel", "PERSON", 0.7, 2),
        ("Halden", "PLACE", 0.65, 1),
        ("=cmd", "PLACE", 0.55, 1),
        ("Mara Teel", "PLACE", 0.5, 1),
    ]


def test_names_are_a_gazetteer_that_no_spreadsheet_evaluates(tmp_path: Path) -> None:
    write_missing_names(ISSUES, tmp_path / "names.tsv")
    assert not any(line[0] in "=+-@" for line in (tmp_path / "names.tsv").read_text().splitlines())
    entries = load_gazetteer(tmp_path / "names.tsv").entries
    assert [(entry.surface, entry.label) for entry in entries] == [
        ("Mara Teel", "PERSON"),
        ("Halden", "PLACE"),
        ("=cmd", "PLACE"),
        ("Mara Teel", "PLACE"),
    ]


def test_a_word_that_is_rarely_taken_for_a_name_ranks_low() -> None:
    docs = [Document(str(i), "Will left Halden .") for i in range(4)]
    found = [replace(docs[0], spans=(Span(0, 4, "PERSON", 0.9), Span(10, 16, "PLACE", 0.5)))]
    found += [replace(doc, spans=(Span(10, 16, "PLACE", 0.5),)) for doc in docs[1:]]
    issues = find_label_issues(Predictions(found), docs)
    assert [(name.text, name.score, name.occurrences) for name in issues.missing_names()] == [
        ("Halden", 0.5, 4),
        ("Will", (0.9 + 0.5) / 5, 4),
    ]


def test_of_equally_probable_names_the_one_with_more_mentions_ranks_first() -> None:
    issues = LabelIssues([missing("Halden", "PLACE", 0.95), *[missing("Mara Teel", "PERSON", 0.9)] * 3], [], 3)
    assert [name.text for name in issues.missing_names()] == ["Mara Teel", "Halden"]


def test_names_of_a_length_that_is_rarely_right_rank_lower() -> None:
    mentions = [
        missing("Mara  Teel met", "PERSON", 0.9),
        missing("Halden", "PLACE", 0.8),
        missing("=cmd", "PLACE", 0.8),
    ]
    issues = LabelIssues(mentions, [], 3, length_odds=(2, 1, 0.5))
    scores = {name.text: round(name.score, 3) for name in issues.missing_names()}
    assert scores == {"Halden": 0.788, "=cmd": 0.65, "Mara Teel met": 0.538} and next(iter(scores)) == "Halden"


def test_a_prediction_that_merges_two_labels_casts_no_doubt_on_them() -> None:
    doc = Document("1", "Mara Teel left", spans=(Span(0, 4, "PERSON"), Span(5, 9, "PERSON")))
    merged = replace(doc, spans=(Span(0, 9, "PERSON", 0.99),))
    assert not find_label_issues(Predictions([merged]), [doc]).doubtful
    longer = replace(doc, spans=(Span(5, 14, "PERSON", 0.99),))
    assert len(find_label_issues(Predictions([longer]), [doc]).doubtful) == 2


class Predictions:
    """A tagger with given predictions."""

    labels = ("PERSON", "PLACE")

    def __init__(self, docs: list[Document]) -> None:
        self.docs = docs

    def predict(self, docs: object) -> list[Document]:
        return self.docs
