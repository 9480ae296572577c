"""`python -m benchmarks.combinations`: combined predictions of several models."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import combinations, masked
from lacuner.data import Document, Span
from tests.bench.test_removal import SPEC

TEXT = "Mara Teel left Halden."


def found(*spans: Span) -> Document:
    return Document("1", TEXT, spans=spans)


def test_average_of_predictions() -> None:
    one = found(Span(0, 4, "PERSON", 0.9), Span(15, 21, "PLACE", 0.5))
    other = found(Span(0, 9, "PERSON", 0.8), Span(15, 21, "PLACE", 0.7))
    both = combinations.average([one, other])
    assert [span[:3] for span in both.spans] == [(0, 4, "PERSON"), (15, 21, "PLACE")], "of overlapping ones the surer"
    assert [span.score for span in both.spans] == pytest.approx([0.45, 0.6])


def test_rescore_and_unite() -> None:
    spans = found(Span(0, 9, "PERSON", 0.25), Span(15, 21, "PLACE", 0.5))
    words = found(Span(0, 9, "PERSON"), Span(10, 14, "PLACE"))
    marked = combinations.rescore(spans, words, lambda score, known: score**0.5 if known else score)
    assert [span.score for span in marked.spans] == [0.5, 0.5]
    joined = combinations.unite(spans, found(Span(0, 4, "PERSON")))
    assert [span[:4] for span in joined.spans] == [(0, 4, "PERSON", 1.0), (15, 21, "PLACE", 0.5)]


@pytest.mark.integration
def test_removed_tokens_are_unsure() -> None:
    labeled = Document("1", TEXT, spans=(Span(0, 9, "PERSON"),), complete=False)
    bare = Document("2", "Then Mara Teel left Halden too.", complete=False)
    data = masked.Masked("x", 0.5, 1, [labeled, bare] * 20, [], [], ())
    docs = combinations.mark_removed_unsure(data)
    suspected = {doc.text[span.start : span.end] for doc in docs for span in doc.unsure}
    assert suspected
    assert suspected <= set(bare.text[:-1].split()) | {"."}
    assert all(not (span.start < 9 and doc.id == "1") for doc in docs for span in doc.unsure), "labels stay labels"


@pytest.mark.integration
def test_one_row_per_masking_rate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text(SPEC)
    assert combinations.main([str(spec), "--data", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert "demo 0.5" in shown.err
    *_, row, mean = shown.out.strip().splitlines()
    assert row.split("|")[2:] == mean.split("|")[2:], "one place is its own mean"
    assert len(row.split("|")[2:-1]) == len(combinations.NAMES)
    spec.write_text(SPEC.replace("[0.0, 0.5]", "[0.0]"))
    assert combinations.main([str(spec), "--data", str(tmp_path)]) == 2
    assert "removes no labels" in capsys.readouterr().err
