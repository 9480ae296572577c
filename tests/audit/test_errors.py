"""Errors that the stages of needle after the first fixed and made: counts, files and the command."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from lacuner.audit.errors import ErrorCounts, audit_errors, count_errors, error_rows
from lacuner.cli.main import app
from lacuner.config import load_config
from lacuner.corpus import write
from lacuner.data import Document, Span, Splits
from lacuner.errors import ModelFileError
from lacuner.models.lookup import LookupTagger
from lacuner.models.storage import save
from lacuner.recipes import needle
from lacuner.trainer.train import train
from tests.demo_corpus import demo_corpus

A, B = (0, 2, "X"), (3, 5, "Y")


def test_counts() -> None:
    gold = [Document(str(i), "aa bb", spans=(Span(*A), Span(*B)), complete=True) for i in range(4)]
    before = [{A}, {A}, set(), {B}]
    after = [{A, B}, {B}, {B, (0, 5, "X")}, set()]
    names = {"bb": Counter(X=2, Y=1)}
    audit = count_errors(gold, before, after, names)
    assert audit.all == ErrorCounts(gold=8, wrong_before=5, fixed=3, made=2)
    assert audit.labeled_names == ErrorCounts(gold=4, wrong_before=3, fixed=3, made=1)
    assert audit.systematic == [("bb", "X", "Y", 4, 1, 3)]
    assert [row[-1] for row in error_rows(audit)] == ["1.50", "3.00"]


def test_a_tie_of_weak_labels_is_the_same_in_any_order() -> None:
    gold = [Document("1", "aa bb", spans=(Span(*A),), complete=True)]
    audits = [count_errors(gold, [set()], [set()], {"aa": Counter(labels)}) for labels in ("XY", "YX")]
    assert audits[0] == audits[1]


@pytest.mark.integration
def test_the_first_and_the_last_model_of_a_run(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    demo = demo_corpus()
    weak = [replace(doc, spans=doc.spans[:1], complete=False) for doc in demo.train[30:70]]
    settings = ["train.epochs=2", "completion=true", "noisy_epochs=3"]
    trained = train(
        "needle", Splits(gold=demo.train[:30], weak=weak), tmp_path / "r", load_config(needle.Config, settings=settings)
    )
    gold = demo.dev[:60]
    audit = audit_errors(tmp_path / "r", gold)
    found = [{span.key for span in doc.spans} for doc in trained.tagger.predict(gold)]
    right = sum(span.key in keys for doc, keys in zip(gold, found, strict=True) for span in doc.spans)
    counts = audit.all
    assert counts.gold - counts.wrong_before + counts.fixed - counts.made == right, "the last model is the final one"
    assert counts.fixed + counts.made > 0, "the models differ"
    assert 0 < audit.labeled_names.gold < counts.gold
    write(gold, tmp_path / "gold.jsonl")
    command = ["audit", "errors", str(tmp_path / "r"), "--gold", str(tmp_path / "gold.jsonl")]
    result = CliRunner().invoke(app, [*command, "--json"])
    assert json.loads(result.stdout) == json.loads(json.dumps(audit.as_json()))
    assert "fixed / made" in CliRunner().invoke(app, command).stdout


def test_other_runs_are_refused(tmp_path: Path) -> None:
    save(LookupTagger({"a": "X"}), tmp_path / "model")
    with pytest.raises(ModelFileError, match="not a run of needle"):
        audit_errors(tmp_path, [])
