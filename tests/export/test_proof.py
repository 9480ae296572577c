"""The proof: what is compared, what is refused, and what the commands say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lacuner.cli.main import app
from lacuner.data import Document, Span
from lacuner.errors import ConfigError
from lacuner.export.options import ExportOptions
from lacuner.export.proof import Proof, Tolerance, _refuse_difference, compare, make_sample
from lacuner.export.source import ExportSource, model_name, stored_texts
from tests.export.conftest import make_tagger

DOCS = [Document("0", "Mara Teel left Halden."), Document("1", "Halden")]
PROOF = Proof(
    target="onnx", documents=2, texts="dev", words=6, spans=2, equal=2, missing=0, extra=0, changed=0.0,
    score_difference=0.0, scores_compared=2, tolerance={}, documents_per_second={}, gazetteer=True, notes={}, f1=None,
    examples=[], versions={},
)  # fmt: skip


def test_differences_are_counted_once_and_in_both_directions() -> None:
    one = [replace(DOCS[0], spans=(Span(0, 9, "PER", 0.9), Span(15, 21, "LOC", 0.8))), replace(DOCS[1], spans=())]
    other = [replace(DOCS[0], spans=(Span(0, 9, "PER", 0.7),)), replace(DOCS[1], spans=(Span(0, 6, "LOC"),))]
    result = compare(one, other)
    assert (result.equal, len(result.missing), len(result.extra)) == (1, 1, 1)
    assert result.changed == 2 / 4
    assert result.score_difference == pytest.approx(0.2)
    assert compare(one, other, "single words").scores == 0  # the one common span has two words


def test_scores_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(ConfigError, match="scores of the export differ"):
        _refuse_difference(replace(PROOF, score_difference=float("nan")), Tolerance(), DOCS)
    with pytest.raises(ConfigError, match=r"by up to 0\.01, tolerance 0\.001"):
        _refuse_difference(replace(PROOF, score_difference=0.01), Tolerance(), DOCS)
    _refuse_difference(PROOF, Tolerance(score=0.0, changed=0.0), DOCS)


def test_spans_that_differ_are_refused() -> None:
    example = {"kind": "missing", "document": 0, "start": 0, "end": 9, "label": "PER"}
    proof = replace(PROOF, equal=1, missing=1, changed=1 / 3, examples=[example])
    with pytest.raises(ConfigError, match=r"differs from the tagger in 33\.33 % of the spans.*1 missing"):
        _refuse_difference(proof, Tolerance(), DOCS)
    _refuse_difference(proof, Tolerance(changed=0.5), DOCS)


def test_a_proof_without_entities_shows_nothing() -> None:
    with pytest.raises(ConfigError, match="predicts no entity"):
        _refuse_difference(replace(PROOF, spans=0, equal=0), Tolerance(), DOCS)


def test_given_words_are_not_used() -> None:
    doc = Document("x", "U.S. men", words=((0, 4), (5, 8)), spans=(Span(0, 4, "LOC"),), complete=True)
    sample = make_sample([doc], "dev", is_dev=True)
    assert sample.docs == [Document("0", "U.S. men")]
    assert sample.gold is not None and sample.gold[0].spans == doc.spans and sample.gold[0].words is None


def test_texts_of_a_run_are_its_label_issues(tmp_path: Path) -> None:
    assert stored_texts(tmp_path, 5) == []
    rows = ['{"text": "Halden", "context": "left [Halden] now"}', '{"text": "x", "context": "[x]"}'] * 2
    (tmp_path / "label_issues.jsonl").write_text("\n".join(rows), encoding="utf-8")
    assert [doc.text for doc in stored_texts(tmp_path, 5)] == ["left Halden now", "x"]
    assert len(stored_texts(tmp_path, 1)) == 1


def test_names_are_those_of_packages(tmp_path: Path) -> None:
    source = ExportSource(tmp_path / "Run 7", make_tagger("token"))
    assert model_name(source, ExportOptions()) == "run_7"
    with pytest.raises(ConfigError, match="--name 'A b' is not usable"):
        model_name(source, ExportOptions(name="A b"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "spacy", "--dev", "a.jsonl", "--text", "b.txt"], "either --dev or --text"),
        (["--to", "spacy", "--int8"], "--int8 has no meaning with --to spacy"),
    ],
)
def test_wrong_options_end_with_one_sentence(arguments: list[str], message: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["export", str(tmp_path), "--out", str(tmp_path / "out"), *arguments])
    assert message in str(result.exception)
