"""`lacuner apply` and `lacuner evaluate --reviewed`: decisions in, a better corpus and scores out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lacuner.annotate.gazetteer.entries import Entry
from lacuner.audit.issues import new_issue
from lacuner.corpus import read, write
from lacuner.data import Document, Span
from lacuner.models.gazetteer import TaggerGazetteer, sidecar, write_sidecar
from lacuner.review.queue import ReviewQueue, decision_log, save_queue
from tests.cli.conftest import Run

DOCS = [Document("1", "Mara met Teel.", spans=(Span(9, 13, "PER"),)), Document("2", "Nobody came.")]


@pytest.fixture
def reviewed(tmp_path: Path) -> Path:
    """A run folder with a queue and three decisions."""
    write(DOCS, tmp_path / "weak.jsonl")
    write_sidecar(TaggerGazetteer([Entry("Teel", "PER")]), tmp_path / "weak.jsonl")
    missing = new_issue("missing", DOCS[0], Span(0, 4, "PER"), (), 0.9)
    wrong = new_issue("missing", DOCS[0], Span(5, 8, "PER"), (), 0.2)
    queue = ReviewQueue((missing, wrong), {doc.id: doc for doc in DOCS}, (), ("PER",))
    save_queue(queue, tmp_path / "run")
    log = decision_log(tmp_path / "run")
    log.append(queue.decide(missing.id, "accept"))
    log.append(queue.decide(wrong.id, "reject"))
    log.append(queue.label_sentence("2", []))
    return tmp_path


def test_apply(run: Run, reviewed: Path) -> None:
    done = run("apply", "run", "weak.jsonl", "--out", "better.jsonl")
    assert "1 entities added, 0 labels confirmed, 0 removed, 1 spans ruled out, 1 documents complete" in done.stdout
    first, second = read(reviewed / "better.jsonl")
    assert [(*span.key, span.source) for span in first.spans] == [(0, 4, "PER", "review"), (9, 13, "PER", None)]
    assert [span[:2] for span in first.rejected] == [(5, 8)]
    assert second.complete is True
    assert sidecar(reviewed / "better.jsonl").read_bytes() == sidecar(reviewed / "weak.jsonl").read_bytes()
    decisions = "run/review/decisions.jsonl"
    facts = json.loads(run("apply", decisions, "weak.jsonl", "--out", "again.jsonl", "--json").stdout)
    assert (facts["added"], facts["completed"]) == (1, 1)
    assert (reviewed / "again.jsonl").read_bytes() == (reviewed / "better.jsonl").read_bytes()


def test_apply_refuses_what_it_cannot_do(run: Run, reviewed: Path) -> None:
    assert "already an input" in run("apply", "run", "weak.jsonl", "--out", "weak.jsonl", status=2).stderr
    assert "no decisions here" in run("apply", "none.jsonl", "weak.jsonl", "--out", "b.jsonl", status=2).stderr
    write(DOCS[1:], reviewed / "other.jsonl")
    stderr = run("apply", "run", "other.jsonl", "--out", "b.jsonl", status=2).stderr
    assert "document '1', which is not in this corpus" in stderr and not (reviewed / "b.jsonl").exists()
