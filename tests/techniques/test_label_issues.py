"""Label issues: missing names grouped, and written as a gazetteer."""

from __future__ import annotations

from pathlib import Path

from lacuner.annotate.gazetteer.load import load_gazetteer
from lacuner.data import Document, Span
from lacuner.techniques.label_issues import LabelIssue, LabelIssues, write_missing_names

TEXT = "Mara  Teel met Mara\nTeel in Halden, =cmd and Mara Teel."


def missing(text: str, label: str, score: float, nth: int = 0) -> LabelIssue:
    start = -1
    for _ in range(nth + 1):
        start = TEXT.index(text, start + 1)
    return LabelIssue("missing", Document("1", TEXT), Span(start, start + len(text), label, score))


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
    names = [(name.text, name.label, name.score, len(name.mentions)) for name in ISSUES.missing_names()]
    assert names == [
        ("Mara Teel", "PERSON", 0.9, 2),
        ("Halden", "PLACE", 0.8, 1),
        ("=cmd", "PLACE", 0.6, 1),
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
