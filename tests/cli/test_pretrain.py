from __future__ import annotations

import json
from pathlib import Path

import pytest

from lacuner.corpus import read, write
from tests.cli.conftest import Run
from tests.demo_corpus import demo_corpus

QUICK = ["--set", "train.epochs=2", "--set", "held_out=0.2"]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    write(demo_corpus().train[:100], tmp_path / "train.jsonl")
    return tmp_path


def test_pretrain_augment_and_train_from_it(run: Run, corpus: Path) -> None:
    done = run("pretrain", "train.jsonl", "--out", "pre", *QUICK)
    assert "held out: top1" in done.stderr and "encoder: run:pre" in done.stdout and "perplexity" in done.stdout
    assert "read train.jsonl as text: 100 documents" in done.stderr
    assert "perplexity on held-out text" in (corpus / "pre" / "learning_curves.svg").read_text()
    again = json.loads(run("pretrain", "train.jsonl", "--out", "pre", *QUICK, "--json").stdout)
    assert 0 <= again["top5"] <= 1
    assert "not a tagger" in run("predict", "pre", "train.jsonl", "--out", "x.jsonl", status=2).stderr

    refused = run("augment", "train.jsonl", "--encoder", "pre", "--least-top5", 1, "--out", "other.jsonl", status=2)
    assert "cannot augment with this encoder" in refused.stderr
    done = run("augment", "train.jsonl", "--encoder", "pre", "--least-top5", 0, "--out", "other.jsonl")
    assert "words changed: other.jsonl" in done.stdout and "[" in done.stdout
    old, new = list(read(corpus / "train.jsonl")), list(read(corpus / "other.jsonl"))
    assert [len(doc.words or ()) for doc in old] == [len(doc.words or ()) for doc in new]
    assert [len(doc.spans) for doc in old] == [len(doc.spans) for doc in new]
    made = json.loads(
        run("augment", "train.jsonl", "--encoder", "run:pre", "--least-top5", 0, "--out", "o.jsonl", "--json").stdout
    )
    assert 0 < made["changed"] < 0.16 * made["words"]
    assert (corpus / "o.jsonl").read_bytes() == (corpus / "other.jsonl").read_bytes(), "same seed, same words"

    short = ["--set", "train.epochs=1", "--set", "head.kind=token"]
    run("train", "--recipe", "trust", "--weak", "train.jsonl", "--encoder", "run:pre", "--out", "run", *short)
    done = run("augment", "train.jsonl", "--encoder", "run:run", "--out", "x.jsonl", status=2)
    assert "has no masked-LM head" in done.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--encoder", "giant"], "there is no encoder 'giant'"),
        (["--encoder", "run:nowhere"], "nowhere: there is no such folder"),
        (["--set", "rate=2"], "rate"),
        (["--set", "held_out=0.2", "--set", "least=100000"], "nothing to predict"),
    ],
)
def test_wrong_input_is_one_sentence(run: Run, corpus: Path, args: list[str], words: str) -> None:
    done = run("pretrain", "train.jsonl", "--out", "pre", *args, status=2)
    assert words in done.stderr.strip().splitlines()[-1]


def test_two_corpora_of_the_same_name_are_told_apart(run: Run, corpus: Path) -> None:
    (corpus / "other").mkdir()
    write(demo_corpus().train[100:200], corpus / "other" / "train.jsonl")
    done = run("pretrain", "train.jsonl", "other/train.jsonl", "--out", "pre", *QUICK, "--json")
    assert {"perplexity train.jsonl", "perplexity other/train.jsonl"} <= set(json.loads(done.stdout))
