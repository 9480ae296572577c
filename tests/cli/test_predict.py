"""`lacuner predict`: thresholds, output formats, pages, standard input and output."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from lacuner.corpus import read, write
from lacuner.data import Document, Span
from lacuner.models.lookup import LookupTagger
from lacuner.models.storage import save
from tests.cli.conftest import Run
from tests.models.test_tagger import document, new_tagger, words


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Texts, and a model that knows two names."""
    save(LookupTagger({"Halden": "PLACE", "Mara Teel": "PERSON"}), tmp_path / "run")
    write([Document("a", "Mara Teel left Halden."), Document("b", "Nobody left.")], tmp_path / "texts.jsonl")
    return tmp_path


def give_input(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_standard_input_to_standard_output(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give_input(monkeypatch, "Mara Teel left.\n\nHalden, Halden\n")
    done = run("predict", "run", "-", "--format", "txt", "--out", "-")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [[(span["start"], span["end"]) for span in row["spans"]] for row in rows] == [[(0, 9)], [(0, 6), (8, 14)]]
    assert "read standard input: 2 documents" in done.stderr and "3 entities" in done.stderr
    assert not (folder / "-").exists()


TEXTS = "Mara Teel left Halden on a ship.\nNobody saw her in the harbour.\n"


def test_texts_through_a_pipe_need_no_options(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give_input(monkeypatch, TEXTS)
    done = run("predict", "run", "-")
    assert [len(json.loads(line)["spans"]) for line in done.stdout.splitlines()] == [2, 0]
    assert "standard input: read as one document per line" in done.stderr


@pytest.mark.parametrize(
    "text", ["Mara\nTeel\nleft\n\nNobody\n", "Mara Teel of Halden\tPERSON\nHalden in Lunde\tPLACE\n", ""]
)
def test_words_and_tables_through_a_pipe_are_not_taken_for_texts(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    give_input(monkeypatch, text)
    error = run("predict", "run", "-", status=2).stderr.splitlines()[-1]
    assert error.startswith(
        "lacuner: standard input: neither content nor ending tell the format: for one text per line"
    )


def test_a_table_of_terms_is_no_corpus(run: Run, folder: Path) -> None:
    (folder / "terms.tsv").write_text("Halden\tPLACE\n")
    assert "a gazetteer is for `lacuner annotate --dictionary`" in run("predict", "run", "terms.tsv", status=2).stderr


def test_folders_without_a_model(run: Run, folder: Path) -> None:
    (folder / "unfinished").mkdir()
    (folder / "unfinished" / "run.json").write_text("{}")
    (folder / "empty").mkdir()
    for name, reason in (
        ("unfinished", "this run is not finished, so it has no model yet: the command that started it continues it"),
        ("empty", "this folder contains no model"),
        ("nowhere", "there is no such folder: a run or model is needed"),
    ):
        assert run("predict", name, "texts.jsonl", status=2).stderr == f"lacuner: {name}: {reason}\n"


def test_evaluate_renames_labels(run: Run, folder: Path) -> None:
    gold = [Document("a", "Mara Teel left Halden.", spans=(Span(0, 9, "Human"), Span(15, 21, "Town")), complete=True)]
    write(gold, folder / "gold.jsonl")
    run("predict", "run", "gold.jsonl", "--out", "predicted.jsonl")
    rename = ("--map", "Human=PERSON", "--map", "Town=PLACE")
    for source in ("run", "predicted.jsonl"):
        done = run("evaluate", source, "--gold", "gold.jsonl", "--json")
        assert json.loads(done.stdout)["f1"] == 0
        assert "(Human, Town) and predictions (PERSON, PLACE) have no label in common" in done.stderr
        done = run("evaluate", source, "--gold", "gold.jsonl", "--json", *rename)
        assert json.loads(done.stdout)["f1"] == 1 and "in common" not in done.stderr


def test_the_same_through_files_and_pipes(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("predict", "run", "texts.jsonl", "--out", "found.conll")
    give_input(monkeypatch, (folder / "texts.jsonl").read_text())
    done = run("predict", "run", "-", "--format", "jsonl", "--out", "-", "--format-out", "conll")
    assert done.stdout == (folder / "found.conll").read_text() and "B-PLACE" in done.stdout


def test_format_out_wins_over_the_ending(run: Run, folder: Path) -> None:
    run("predict", "run", "texts.jsonl", "--out", "found.data", "--format-out", "tokens")
    [first, _] = [json.loads(line) for line in (folder / "found.data").read_text().splitlines()]
    assert first["ner_tags"] == ["B-PERSON", "I-PERSON", "O", "B-PLACE", "O"]


def test_a_page(run: Run, folder: Path) -> None:
    run("predict", "run", "texts.jsonl", "--out", "found.jsonl", "--html", "found.html")
    page = (folder / "found.html").read_text()
    assert "2 entities in 2 documents" in page and page.count("<mark") == 2 and "Nobody left." in page


def test_a_threshold(run: Run, tmp_path: Path) -> None:
    save(new_tagger("span"), tmp_path / "spans")
    write([document(words(12, seed), str(seed)) for seed in range(8)], tmp_path / "texts.jsonl")
    counts = []
    for threshold in ([], ["--threshold", 0.9], ["--threshold", 0.05]):
        run("predict", "spans", "texts.jsonl", "--out", "found.jsonl", *threshold)
        scores = [span.score for doc in read(tmp_path / "found.jsonl") for span in doc.spans]
        counts.append(len(scores))
        assert all(score is not None and score >= (threshold or [0, 0])[1] for score in scores)
    assert counts[1] < counts[0] < counts[2]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (
            ["empty.gz", "--out", "x.jsonl"],
            "neither content nor ending tell the format: for one text per line use --format txt",
        ),
        (["texts.jsonl", "--out", "-", "--json"], "--json prints to standard output, too: give --out a file"),
        (["texts.jsonl", "--out", "x.jsonl", "--threshold", "1"], "a threshold must be between 0 and 1, not 1.0"),
        (["texts.jsonl", "--out", "x.html", "--html", "x.html"], "--html x.html is already an input or output"),
        (["texts.jsonl", "--out", "x.jsonl", "--html", "texts.jsonl"], "--html texts.jsonl is already an input"),
    ],
)
def test_wrong_options_are_one_sentence(run: Run, folder: Path, args: list[str], words: str) -> None:
    (folder / "empty.gz").touch()
    assert words in run("predict", "run", *args, status=2).stderr.strip().splitlines()[-1]
    assert not list(folder.glob("x.*"))
