"""`lacuner predict`: thresholds, output formats, pages, standard input and output."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from lacuner.corpus import read, write
from lacuner.data import Document
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
        (["empty.gz", "--out", "x.jsonl"], "neither content nor ending tell the format: for one text per line use --format txt"),
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
