from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lacuner.cli.recipes import GROUPS
from lacuner.cli.train import _print_issues
from lacuner.corpus import read, write
from lacuner.data import Document, Span
from lacuner.noise import Noise, corrupt
from lacuner.techniques.label_issues import Disagreement, LabelIssues
from tests.cli.conftest import Run
from tests.demo_corpus import demo_corpus

QUICK = ["--set", "train.epochs=6", "--set", "head.kind=token"]


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    demo = demo_corpus()
    write(corrupt(demo.train[:300], Noise(drop=0.3)), tmp_path / "weak.jsonl")
    write(demo.dev[:100], tmp_path / "dev.jsonl")
    return tmp_path


@pytest.mark.integration
def test_train_predict_evaluate(run: Run, corpora: Path) -> None:
    done = run("train", "--recipe", "trust", "--weak", "weak.jsonl", "--dev", "dev.jsonl", "--out", "run", *QUICK)
    assert "epoch 6/6" in done.stderr and "words/s" in done.stderr and "dev P" in done.stderr
    assert "The model found" in done.stdout and "label_issues.jsonl" in done.stdout
    rows = [json.loads(line) for line in (corpora / "run" / "label_issues.jsonl").read_text().splitlines()]
    assert rows and all({"kind", "document", "start", "end", "label", "text", "context"} <= set(row) for row in rows)
    weak = {doc.id: doc for doc in read(corpora / "weak.jsonl")}
    assert all(weak[row["document"]].text[row["start"] : row["end"]] == row["text"] for row in rows)
    missing = [row for row in rows if row["kind"] == "missing"]
    listed = [line.split("\t") for line in (corpora / "run" / "label_issues.tsv").read_text().splitlines()]
    assert listed[0] == ["term", "label", "score", "mentions", "occurrences", "example"]
    assert all(f"[{row[0].strip()}]" in row[-1] and int(row[4]) >= int(row[3]) for row in listed[1:])
    worth = sum(float(row[2]) >= 0.7 for row in listed[1:])
    names = f"{len(listed) - 1:,} names"
    summary = f"the {worth:,} of {names} with a score of 0.7" if worth else f"none of the {names} has a score of 0.7"
    assert summary in done.stdout
    assert sum(int(row[3]) for row in listed[1:]) == len(missing) >= len(listed) - 1 > 0
    run("annotate", "weak.jsonl", "--dictionary", "run/label_issues.tsv", "--out", "again.jsonl")
    assert sum(len(doc.spans) for doc in read(corpora / "again.jsonl")) > 0
    made = json.loads(run("predict", "run", "dev.jsonl", "--out", "found.jsonl", "--json").stdout)
    assert (made["documents"], made["words_unread"]) == (100, 0)
    one = json.loads(run("evaluate", "run", "--gold", "dev.jsonl", "--json").stdout)
    two = json.loads(run("evaluate", "found.jsonl", "--gold", "dev.jsonl", "--json").stdout)
    assert one["f1"] == two["f1"] > 0.1
    assert all(span.score is not None for doc in read(corpora / "found.jsonl") for span in doc.spans)
    again = run("train", "--recipe", "trust", "--weak", "weak.jsonl", "--dev", "dev.jsonl", "--out", "run", *QUICK)
    assert "already finished" in again.stderr


def test_truncated_words_are_counted_as_unread(run: Run, corpora: Path) -> None:
    """The LSTM encoder reads the first and last characters of a word of more than 32."""
    run("train", "--recipe", "trust", "--weak", "weak.jsonl", "--encoder", "lstm", "--out", "run", *QUICK[2:],
        "--set", "train.epochs=1")  # fmt: skip
    docs = [Document("1", f"Mara left {'x' * 40} and {'y' * 33}."), Document("2", "Mara left.")]
    write(docs, corpora / "long.jsonl")
    evaluated = json.loads(run("evaluate", "run", "--gold", "long.jsonl", "--json").stdout)
    assert evaluated["words_unread"] == 2
    assert "2 words unread" in run("evaluate", "run", "--gold", "long.jsonl").stdout
    done = run("predict", "run", "long.jsonl", "--out", "found.jsonl", "--json")
    assert json.loads(done.stdout)["words_unread"] == 2 and "2 words were truncated" in done.stderr
    assert json.loads(run("evaluate", "run", "--gold", "dev.jsonl", "--json").stdout)["words_unread"] == 0


def test_unlabeled_text_is_for_the_recipes_that_use_it(run: Run, tmp_path: Path) -> None:
    docs = demo_corpus().train
    write(docs[:10], tmp_path / "gold.jsonl")
    (tmp_path / "more.txt").write_text("\n".join(doc.text for doc in docs[10:30]), encoding="utf-8")
    data = ["--gold", "gold.jsonl", "--unlabeled", "more.txt", "--encoder", "tiny", "--set", "train.epochs=1"]
    done = run("train", "--recipe", "sst", *data, "--out", "run")
    assert "10 gold and 20 pseudo-labeled documents" in done.stderr
    assert "The model found" not in done.stdout, "text without weak labels has no label issues"
    done = run("train", "--recipe", "supervised", *data, "--out", "other", status=2)
    assert "recipe `supervised` does not use --unlabeled; these recipes do: " in done.stderr


@pytest.mark.integration
def test_same_seed_same_bytes_in_any_process(corpora: Path) -> None:
    lines = (corpora / "weak.jsonl").read_text().splitlines(keepends=True)
    (corpora / "a.jsonl").write_text("".join(lines[:150]))
    (corpora / "b.jsonl").write_text("".join(lines[150:]))
    hashes = set()
    for name, files, seed in (("x", ["a.jsonl", "b.jsonl"], "0"), ("y", ["b.jsonl", "a.jsonl"], "77")):
        weak = [part for file in files for part in ("--weak", file)]
        command = [sys.executable, "-m", "lacuner", "train", "--recipe", "trust", *weak, "--out", name, *QUICK]
        env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": seed}
        subprocess.run(command, cwd=corpora, env=env, capture_output=True, check=True)
        hashes.add(hashlib.sha256((corpora / name / "model" / "model.safetensors").read_bytes()).hexdigest())
    assert len(hashes) == 1


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--recipe", "supervised", "--weak", "weak.jsonl"], "recipe `supervised` needs --gold"),
        (["--recipe", "oracle"], "recipe `oracle` needs --weak and --gold"),
        (["--recipe", "magic", "--weak", "weak.jsonl"], "there is no recipe 'magic'"),
        (["--recipe", "trust", "--weak", "weak.jsonl", "--encoder", "giant"], "there is no encoder 'giant'"),
        (["--recipe", "trust", "--weak", "weak.jsonl", "--set", "train.epoch=1"], "did you mean 'epochs'?"),
        (["--recipe", "trust", "--weak", "weak.jsonl", "--encoder", "hf:/no/such/folder"], "there is no such folder"),
        (["--recipe", "trust", "--weak", "weak.jsonl", "--encoder", "run:nowhere"], "nowhere: there is no such folder"),
        (["--recipe", "trust", "--weak", "bare.jsonl"], "no labeled span"),
    ],
)
def test_wrong_input_is_one_sentence(run: Run, corpora: Path, args: list[str], words: str) -> None:
    (corpora / "bare.jsonl").write_text('{"text": "nothing"}\n')
    done = run("train", "--out", "run", *args, status=2)
    assert words in done.stderr.strip().splitlines()[-1]


def test_a_file_is_no_run_folder(run: Run, corpora: Path) -> None:
    """`--out weak.jsonl` ended in the advice to delete a folder of prepared data."""
    for folders in (["--out", "weak.jsonl"], ["--out", "run", "--cache", "weak.jsonl"]):
        done = run("train", "--recipe", "trust", "--weak", "weak.jsonl", *folders, status=2)
        assert "lacuner: weak.jsonl: this is a file; --out and --cache need a folder\n" in done.stderr


def test_labels_to_rename_that_no_input_has_are_named(run: Run, corpora: Path) -> None:
    (corpora / "bare.jsonl").write_text('{"text": "Mara", "unsure": [{"start": 0, "end": 4, "label": "Person"}]}\n')
    (corpora / "terms.tsv").write_text("Oslo\tTown\n")
    rename = ("--map", "Person=PERSON", "--map", "Town=PLACE", "--map", "Ship=VESSEL")
    args = ("--recipe", "trust", "--weak", "bare.jsonl", "--dictionary", "terms.tsv", *rename)
    assert "--map names labels that do not occur: Ship\n" in run("train", "--out", "run", *args, status=2).stderr


@pytest.mark.parametrize("recipe", ["auto", "trust"])
def test_an_unknown_encoder_is_reported_before_any_data_is_read(run: Run, corpora: Path, recipe: str) -> None:
    done = run("train", "--out", "run", "--recipe", recipe, "--weak", "weak.jsonl", "--encoder", "giant", status=2)
    assert "there is no encoder 'giant'" in done.stderr and "weak.jsonl" not in done.stderr


def test_a_run_folder_that_is_none(run: Run, corpora: Path) -> None:
    assert (
        "nowhere: there is no such folder"
        in run("predict", "nowhere", "dev.jsonl", "--out", "x.jsonl", status=2).stderr
    )


def test_recipes_are_listed_and_explained(run: Run) -> None:
    from lacuner.recipes import RECIPES

    out = run("recipes").stdout
    assert all(name in out for name in RECIPES)
    out = run("recipes", "partial").stdout
    assert "Assumes:" in out and "train.epochs = 15" in out and "frequent = 20" in out
    assert set(json.loads(run("recipes", "--json").stdout)) == set(RECIPES)
    assert "there is no recipe" in run("recipes", "magic", status=2).stderr


def test_recipes_are_grouped_with_paper_and_year(run: Run) -> None:
    facts = json.loads(run("recipes", "--json").stdout)
    assert {recipe["group"] for recipe in facts.values()} == set(GROUPS)
    assert "2021" in facts["roster"]["paper"]
    lines = [line.strip() for line in run("recipes").stdout.splitlines()]
    starts = [lines.index(group.capitalize()) for group in GROUPS]
    assert starts == sorted(starts)
    for name, recipe in facts.items():
        [number] = [number for number, line in enumerate(lines) if line.split()[:1] == [name]]
        assert recipe["Summary"] in lines[number] and recipe["paper"] in lines[number]
        heading = max(start for start in starts if start < number)
        assert lines[heading] == recipe["group"].capitalize()


def test_each_setting_has_lines_of_its_own(run: Run) -> None:
    out = run("recipes", "roster").stdout
    own, _, shared = out.partition("Settings of roster:\n")[2].partition("Settings that all recipes share:\n")
    assert "  tau = " in own and "  train.epochs = " in shared, "what is particular to the recipe comes first"
    settings = [*own.splitlines(), *shared.splitlines()]
    assert len(settings) > 20
    for line in settings:
        assert re.match(r"  [\w.]+ = |      \S", line) and len(line) <= 100, line


def test_settings_of_other_heads_are_not_listed(run: Run) -> None:
    roster, nrces, trust = (run("recipes", recipe).stdout for recipe in ("roster", "nrces", "trust"))
    assert "head.width = " in roster and "head.scheme" not in roster and "head.angle" not in roster
    assert "head.threshold = " in nrces and "head.scheme" not in nrces
    assert "head.scheme = " in trust and "head.width = " in trust


@pytest.mark.parametrize("learned", [False, True])
def test_the_labels_of_a_model_that_learned_nothing_are_not_called_wrong(
    capsys: pytest.CaptureFixture[str], learned: bool
) -> None:
    """With labels on ten documents, a model that predicts one of them has not learned, one that predicts two has."""
    doc = Document("1", "Mara left Halden.", spans=(Span(0, 4, "PERSON"),))
    doubtful = [Disagreement("doubtful", doc, doc.spans[0])] * (8 if learned else 9)
    _print_issues(LabelIssues([], doubtful, labels=10), Path("run"))
    out = capsys.readouterr().out
    assert ("probably wrong" in out) == learned == ("found almost no new mentions" in out)
    assert ("hardly any of the labeled entities" in out) == (not learned) == ("train.epochs" in out)


@pytest.mark.parametrize(
    ("score", "heading", "advice"), [(0.95, "probably", "worth"), (0.3, "perhaps", "hardly worth")]
)
def test_it_says_which_missing_names_are_worth_reviewing(
    capsys: pytest.CaptureFixture[str], score: float, heading: str, advice: str
) -> None:
    doc = Document("1", "Mara left Halden.")
    missing = [Disagreement("missing", doc, Span(10, 16, "PLACE", score))]
    _print_issues(LabelIssues(missing, [], labels=10), Path("run"))
    out = capsys.readouterr().out
    assert f"\n{heading} missing (score" in out and f"\n{advice} reviewing: " in out


def test_fine_tuning_of_another_run(run: Run, tmp_path: Path) -> None:
    docs = demo_corpus().train[:20]
    write(docs, tmp_path / "gold.jsonl")
    quick = ("--set", "train.epochs=1", "--out")
    run("train", "--recipe", "supervised", "--gold", "gold.jsonl", *quick, "a 'b'")
    done = run("train", "--recipe", "finetune", "--from", "a 'b'", "--gold", "gold.jsonl", *quick, "c")
    assert "finetune: continuing from a 'b'" in done.stderr and "model: c/model" in done.stdout
    for args, sentence in (
        (("--recipe", "finetune"), "needs --from RUN"),
        (("--recipe", "supervised", "--from", "c"), "recipe `supervised` trains from scratch: --from is for"),
        (("--from", "c"), "--from is for `finetune`"),
        (("--recipe", "finetune", "--from", "nowhere"), "nowhere: cannot read the file of setting start"),
    ):
        failed = run("train", *args, "--gold", "gold.jsonl", *quick, "d", status=2)
        assert sentence in failed.stderr.splitlines()[-1] and not (tmp_path / "d").exists()
