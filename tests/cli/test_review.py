"""`lacuner apply` and `lacuner evaluate --reviewed`: decisions in, a better corpus and scores out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lacuner.annotate.gazetteer.entries import Entry
from lacuner.audit.issues import new_issue
from lacuner.corpus import read, write
from lacuner.data import Document, Span
from lacuner.models.gazetteer import TaggerGazetteer
from lacuner.models.lookup import LookupTagger
from lacuner.models.sidecar import read_sidecars, write_sidecar
from lacuner.models.storage import save
from lacuner.review.queue import ReviewQueue, decision_log, open_queue, save_queue
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
    gazetteer = read_sidecars([reviewed / "better.jsonl"])
    assert gazetteer is not None and [entry.surface for entry in gazetteer.entries] == ["Teel", "Mara"]
    decisions = "run/review/decisions.jsonl"
    facts = json.loads(run("apply", decisions, "weak.jsonl", "--out", "again.jsonl", "--json").stdout)
    assert (facts["added"], facts["completed"], facts["entries_added"]) == (1, 1, 1)
    assert (reviewed / "again.jsonl").read_bytes() == (reviewed / "better.jsonl").read_bytes()


def test_apply_refuses_what_it_cannot_do(run: Run, reviewed: Path) -> None:
    assert "already an input" in run("apply", "run", "weak.jsonl", "--out", "weak.jsonl", status=2).stderr
    assert "no decisions here" in run("apply", "none.jsonl", "weak.jsonl", "--out", "b.jsonl", status=2).stderr
    write(DOCS[1:], reviewed / "other.jsonl")
    stderr = run("apply", "run", "other.jsonl", "--out", "b.jsonl", status=2).stderr
    assert "document '1', which is not in this corpus" in stderr and not (reviewed / "b.jsonl").exists()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A tagger that knows one of two names, and 60 texts in which both occur."""
    save(LookupTagger({"Mara": "PER"}), tmp_path / "run" / "model")
    write(
        [Document(str(n), "Mara met Teel." if n % 2 else "Nobody came.") for n in range(60)], tmp_path / "texts.jsonl"
    )
    return tmp_path


def test_scores_from_a_reviewed_sample(run: Run, model: Path) -> None:
    done = run("audit", "sample", "run", "texts.jsonl", "--sentences", "30")
    assert "30 of 60 documents drawn" in done.stdout and "--reviewed run/sample" in done.stdout
    queue, log = open_queue(model / "run" / "sample"), decision_log(model / "run" / "sample")
    assert queue.labels == ("PER",)
    for sentence in queue.sentences[:20]:
        names = [Span(0, 4, "PER"), Span(9, 13, "PER")] if "Mara" in queue.documents[sentence.doc_id].text else []
        log.append(queue.label_sentence(sentence.doc_id, [s._replace(label=queue.labels[0]) for s in names]))
    done = run("evaluate", "run", "--reviewed", "run/sample")
    assert "20 sentences labeled, a random sample of 60 documents" in done.stdout
    assert "further sentences would halve the intervals" in done.stdout
    facts = json.loads(run("evaluate", "run", "--reviewed", log.path, "--json").stdout)
    assert facts["precision"]["value"] == 1.0 and facts["recall"]["value"] == 0.5
    assert facts["recall"]["low"] < 0.5 < facts["recall"]["high"]
    assert "choose another --out" in run("audit", "sample", "run", "texts.jsonl", status=2).stderr


def test_evaluate_needs_gold_or_a_sample(run: Run, model: Path) -> None:
    assert "either --gold or --reviewed" in run("evaluate", "run", status=2).stderr
    assert "there are no decisions" in run("evaluate", "run", "--reviewed", "run/sample", status=2).stderr
    assert "needs a run folder" in run("evaluate", "texts.jsonl", "--reviewed", "run/sample", status=2).stderr


def test_the_queue_goes_to_another_tool_and_back(run: Run, reviewed: Path) -> None:
    (reviewed / "run" / "review" / "decisions.jsonl").unlink()
    assert "1 documents: tasks.jsonl" in run("audit", "export", "run", "--out", "tasks.jsonl").stdout
    [task] = read(reviewed / "tasks.jsonl")
    assert [span.key for span in task.spans] == [(0, 4, "PER"), (9, 13, "PER")]
    done = run("audit", "import", "run", "tasks.jsonl")
    assert "0 decisions" in done.stdout and "--complete" in done.stdout  # nobody has touched it
    write([Document("x", task.text, spans=task.spans[:1])], reviewed / "done.jsonl")
    facts = json.loads(run("audit", "import", "run", "done.jsonl", "--complete", "--json").stdout)
    assert facts["decisions"] == 1
    run("apply", "run", "weak.jsonl", "--out", "better.jsonl")
    first, _ = read(reviewed / "better.jsonl")
    assert first.complete is True and [span.key for span in first.spans] == [(0, 4, "PER")]
