from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from lacuner.corpus import read, write
from lacuner.types import Document, Span
from tests.cli.conftest import Run


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "one.txt").write_text("Mara took veltazine.\nThe Café Zoë in HALDEN\nsold it. Will it help?")
    (tmp_path / "texts" / "two.txt").write_text("Nothing here.")
    return tmp_path


def found(path: Path) -> list[list[tuple[str, str]]]:
    return [[(doc.text[s.start : s.end], s.label) for s in doc.spans] for doc in read(path)]


def test_a_spreadsheet_and_a_folder_of_texts(run: Run, texts: Path) -> None:
    """What a new user has: a CSV as a German spreadsheet writes it, and a folder."""
    rows = "Begriff;Typ\r\nveltazine;DRUG\r\nHalden;PLACE\r\nCafé Zoë;PLACE\r\nWill;PERSON\r\n"
    (texts / "terms.csv").write_bytes(rows.encode("cp1252"))
    done = run("annotate", "texts", "--dictionary", "terms.csv", "--out", "weak.jsonl", "--report", "r.html")
    assert found(texts / "weak.jsonl") == [
        [("veltazine", "DRUG"), ("Café Zoë", "PLACE"), ("HALDEN", "PLACE"), ("Will", "PERSON")],
        [],
    ]
    assert all(doc.complete is False for doc in read(texts / "weak.jsonl"))
    assert "2 documents, 50.0 % of them with a match: 4 spans" in done.stdout
    HTMLParser().feed((texts / "r.html").read_text(encoding="utf-8"))


def test_every_mistake_in_the_spreadsheet_is_one_sentence_with_its_line(run: Run, texts: Path) -> None:
    (texts / "terms.tsv").write_text(
        "veltazine\tDRUG\n\tDRUG\nHalden\t\nveltazine\tDRUG\nMara\tPERSON\textra\tmore\tand\tmore\n"
    )
    done = run("annotate", "texts", "--dictionary", "terms.tsv", "--out", "weak.jsonl")
    for line in (2, 3, 4):
        assert f"terms.tsv:{line}: " in done.stderr
    assert ("veltazine", "DRUG") in found(texts / "weak.jsonl")[0]


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("terms.tsv", b"veltazine;DRUG\nHalden;PLACE\n", "terms.tsv:1"),
        ("terms.csv", b"\xff\xfe\x00\x01\x81\x00", "terms.csv"),
        ("terms.tsv", b"", "no entry"),
        ("terms.doc", b"x\ty\n", "terms.doc"),
    ],
)
def test_a_file_of_which_nothing_can_be_used(run: Run, texts: Path, name: str, data: bytes, words: str) -> None:
    (texts / name).write_bytes(data)
    done = run("annotate", "texts", "--dictionary", name, "--out", "weak.jsonl", status=2)
    assert words in done.stderr
    assert not (texts / "weak.jsonl").exists()


def test_ambiguity_stop_lists_rules_and_candidates(run: Run, texts: Path) -> None:
    (texts / "a.tsv").write_text("Mara\tPERSON\nMara\tPLACE\nveltazine\tDRUG\n")
    run("annotate", "texts", "--dictionary", "a.tsv", "--out", "w.jsonl")
    doc = next(iter(read(texts / "w.jsonl")))
    assert [(s.start, s.label) for s in doc.unsure] == [(0, "PERSON"), (0, "PLACE")]
    run("annotate", "texts", "--dictionary", "a.tsv", "--out", "w.jsonl", "--ambiguous", "first")
    assert ("Mara", "PERSON") in found(texts / "w.jsonl")[0]
    (texts / "stop.txt").write_text("veltazine\tbecause\n")
    run("annotate", "texts", "--dictionary", "a.tsv", "--stop", "stop.txt", "--out", "w.jsonl", "--ambiguous", "drop")
    assert found(texts / "w.jsonl") == [[], []]
    run("annotate", "texts", "--regex", r"DRUG=\w+zine", "--capitalised", "--out", "w.jsonl")
    doc = next(iter(read(texts / "w.jsonl")))
    assert [doc.text[s.start : s.end] for s in doc.spans] == ["veltazine"]
    assert any(not s.label for s in doc.unsure)


def test_gold_lint_and_json(run: Run, tmp_path: Path) -> None:
    docs = [Document(str(i), "Will the lake", spans=(Span(9, 13, "PLACE"),)) for i in range(5)]
    write(docs, tmp_path / "gold.jsonl")
    (tmp_path / "d.tsv").write_text("Will\tPERSON\nlake\tPLACE\n")
    args = ("annotate", "gold.jsonl", "--dictionary", "d.tsv", "--out", "w.jsonl", "--gold", "gold.jsonl")
    out = run(*args, "--lint").stdout
    assert "Against gold" in out and "mostly wrong in gold" in out and "d.tsv:1" in out
    facts = json.loads(run(*args, "--json").stdout)
    assert facts["gold"]["recall"] == 1.0 and facts["gold"]["precision"] == 0.5
    assert facts["suspicious"][0]["surface"] == "Will" and "Will" in facts["stop_list"]
    (tmp_path / "stop.txt").write_text(facts["stop_list"])
    facts = json.loads(run(*args, "--stop", "stop.txt", "--json").stdout)
    assert facts["gold"]["precision"] == 1.0


def test_the_result_does_not_depend_on_the_number_of_workers(run: Run, tmp_path: Path) -> None:
    from lacuner.demo.files import write_demo

    write_demo(tmp_path / "demo")
    for workers in (1, 2):
        run(
            "annotate",
            "demo/train.jsonl",
            "--dictionary",
            "demo/dictionary.tsv",
            "--out",
            f"{workers}.jsonl",
            "--workers",
            workers,
        )
    assert (tmp_path / "1.jsonl").read_bytes() == (tmp_path / "2.jsonl").read_bytes()


def test_nothing_to_label_with(run: Run, texts: Path) -> None:
    assert "nothing to label with" in run("annotate", "texts", "--out", "w.jsonl", status=2).stderr
    assert "LABEL=PATTERN" in run("annotate", "texts", "--regex", "x", "--out", "w.jsonl", status=2).stderr
    assert "regular expression" in run("annotate", "texts", "--regex", "X=(", "--out", "w.jsonl", status=2).stderr
