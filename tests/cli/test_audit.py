from __future__ import annotations

import json
from pathlib import Path

import pytest

from lacuner.corpus import write
from lacuner.noise import Noise, corrupt
from tests.cli.conftest import Run
from tests.demo_corpus import demo_corpus

SAMPLING = ["audit", "sampling", "--weak", "weak.jsonl", "--gold", "gold.jsonl", "--out", "out"]


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    gold = demo_corpus().train[:30]
    write(gold, tmp_path / "gold.jsonl")
    write(corrupt(gold, Noise(drop=0.5)), tmp_path / "weak.jsonl")
    return tmp_path


def test_it_prints_and_writes(run: Run, corpora: Path) -> None:
    done = run(*SAMPLING, "--set", "train.epochs=1")
    assert "missampling (%)" in done.stdout and "dev F1" not in done.stdout
    assert "sentences have more than sqrt(n) entities" in done.stdout and "(lower bound " in done.stdout
    assert "mean probability of the right label" in done.stdout
    page = (corpora / "out" / "report.html").read_text(encoding="utf-8")
    assert "lacuner audit sampling --weak weak.jsonl" in page
    again = run(*SAMPLING, "--set", "train.epochs=1", "--json")
    found = json.loads(again.stdout)
    del found["out"]
    assert found == json.loads((corpora / "out" / "sampling.json").read_text(encoding="utf-8"))
    assert [row["epoch"] for row in found["recipes"][0]["epochs"]] == [0]


def test_wrong_input_is_one_sentence(run: Run, corpora: Path) -> None:
    lines = (corpora / "gold.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    done = run(*SAMPLING, "--follow", "Nobody", status=2)
    assert "there is no unlabeled entity 'Nobody'" in done.stderr.splitlines()[-1]
    assert "needs" not in done.stderr
    (corpora / "gold.jsonl").write_text("".join(lines[:-1]), encoding="utf-8")
    assert "is not in gold" in run(*SAMPLING, status=2).stderr.splitlines()[-1]
    assert not (corpora / "out").exists()


ISSUES = ["audit", "issues", "folder", "--weak", "weak.jsonl", "--folds", "2", "--set", "train.epochs=1"]


def test_issues_are_queued_for_review(run: Run, corpora: Path) -> None:
    done = run(*ISSUES)
    assert "label issues in 30 documents: " in done.stdout and "queue: folder/review" in done.stdout
    queue = (corpora / "folder" / "review" / "queue.jsonl").read_text(encoding="utf-8")
    found = json.loads(run(*ISSUES, "--json").stdout)
    assert sum(found["issues"].values()) == len(queue.splitlines())
    assert queue == (corpora / "folder" / "review" / "queue.jsonl").read_text(encoding="utf-8")


def test_issues_need_as_many_texts_as_folds(run: Run, corpora: Path) -> None:
    done = run(*ISSUES, "--folds", "31", status=2)
    assert "(--folds 31)" in done.stderr.splitlines()[-1]


def test_what_needs_all_documents_in_memory_is_refused(run: Run, corpora: Path) -> None:
    assert "--signal aum keeps" in run(*ISSUES, "--signal", "aum", "--stream", status=2).stderr.splitlines()[-1]
    refused = run(*ISSUES, "--recipe", "ensemble", "--stream", status=2).stderr.splitlines()[-1]
    assert "recipe `ensemble` needs its documents in memory: leave out --stream" in refused
