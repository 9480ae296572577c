from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from lacuner.corpus import read, write
from lacuner.data import Document, Span
from tests.cli.conftest import Run

pytestmark = pytest.mark.integration


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
    assert "2 documents, 50.0 % with a match: 4 spans" in done.stdout
    HTMLParser().feed((texts / "r.html").read_text(encoding="utf-8"))


def test_standard_output_has_the_labels_only(run: Run, texts: Path) -> None:
    (texts / "terms.tsv").write_text("veltazine\tDRUG\nHalden\tPLACE\n")
    args = ("annotate", "texts", "--dictionary", "terms.tsv", "--out", "-")
    done = run(*args, "--lint")
    assert [len(json.loads(line)["spans"]) for line in done.stdout.splitlines()] == [2, 0]
    assert "2 documents, 50.0 % with a match" in done.stderr and "name it when you train (--dictionary)" in done.stderr
    assert sorted(path.name for path in texts.iterdir()) == ["terms.tsv", "texts"]
    assert "--json prints to standard output, too: give --out a file" in run(*args, "--json", status=2).stderr


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
def test_an_unusable_gazetteer(run: Run, texts: Path, name: str, data: bytes, words: str) -> None:
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


def test_lint_suggests_longer_phrases(run: Run, tmp_path: Path) -> None:
    write([Document(str(i), "They had sensorineural ataxia") for i in range(6)], tmp_path / "u.jsonl")
    (tmp_path / "d.tsv").write_text("ataxia\tDisease\n")
    args = ("annotate", "u.jsonl", "--dictionary", "d.tsv", "--out", "w.jsonl")
    out = run(*args, "--lint", "--report", "r.html").stdout
    assert "(no entry to stop)" in out and "add the longer phrases" in out
    assert "sensorineural ataxia\tDisease\n" in out
    page = (tmp_path / "r.html").read_text()
    assert "6 of 6 matches are inside a longer phrase" in page and "add the longer phrases" in page
    facts = json.loads(run(*args, "--lint", "--json").stdout)
    assert facts["suspicious"][0]["longer"] == [["sensorineural ataxia", 6]]
    assert facts["longer_phrases"] == "sensorineural ataxia\tDisease\n" and facts["stop_list"] == ""
    assert json.loads(run(*args, "--json").stdout)["longer_phrases"] == "", "counted only with --lint"


def test_the_result_does_not_depend_on_the_number_of_workers(run: Run, tmp_path: Path) -> None:
    from lacuner.demo.build import write_demo

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


def test_incomplete_gold_is_explained(run: Run, texts: Path) -> None:
    text = (texts / "texts" / "one.txt").read_text()
    write([Document("one.txt", text, spans=(Span(0, 4, "PERSON"),), complete=False)], texts / "gold.jsonl")
    args = ("annotate", "texts", "--regex", "PERSON=Mara", "--out", "w.jsonl", "--gold", "gold.jsonl")
    done = run(*args, "--report", "r.html")
    assert "* not final: gold is incomplete in 1 of 1 documents" in done.stdout
    assert "1 of 2 documents have gold" in done.stderr


def test_stop_lists_apply_to_patterns(run: Run, texts: Path) -> None:
    (texts / "stop.txt").write_text("VELTAZINE\nMara\n")
    args = ("annotate", "texts", "--regex", r"DRUG=\w+zine", "--regex", "PERSON=Will", "--capitalised")
    run(*args, "--stop", "stop.txt", "--out", "w.jsonl")
    doc = next(iter(read(texts / "w.jsonl")))
    assert [doc.text[s.start : s.end] for s in doc.spans] == ["Will"]
    unsure = [doc.text[s.start : s.end] for s in doc.unsure]
    assert unsure and "Mara" not in unsure


def test_sources_of_the_same_name_are_numbered(run: Run, texts: Path) -> None:
    (texts / "capitalised.tsv").write_text("Halden\tPLACE\n")
    twice = ("--dictionary", "capitalised.tsv", "--dictionary", "capitalised.tsv")
    rules = ("--regex", "X=Mara", "--regex", "X=Will", "--capitalised")
    facts = json.loads(run("annotate", "texts", *twice, *rules, "--out", "w.jsonl", "--json").stdout)
    names = {"capitalised.tsv", "capitalised.tsv 2", "regex X", "regex X 2", "capitalised"}
    assert {row["source"] for row in facts["sources"]} == names
    once = ("--dictionary", "capitalised.tsv", "--capitalised")
    facts = json.loads(run("annotate", "texts", *once, "--out", "w.jsonl", "--json").stdout)
    assert {row["source"] for row in facts["sources"]} == {"capitalised", "capitalised 2"}


PLACES = [Document(f"d{i}", f"{name} is a lake") for i, name in enumerate(("Alda", "Brim", "Cor", "Alda"))]


def gold_doc(name: str, id: str) -> Document:
    return Document(id, f"{name} is a lake", spans=(Span(0, len(name), "LAKE"),))


@pytest.mark.parametrize(
    "gold",
    [
        [gold_doc("Brim", "d1")],
        [gold_doc("Cor", "d2"), gold_doc("Alda", "d0")],
        [gold_doc("Alda", "d0"), gold_doc("Brim", "d1"), gold_doc("Cor", "d2")],
        [gold_doc("Brim", "0"), gold_doc("Cor", "1")],
        [gold_doc("Alda", "d3"), gold_doc("Alda", "d0")],
    ],
)
def test_gold_for_some_of_the_documents(run: Run, tmp_path: Path, gold: list[Document]) -> None:
    write(PLACES, tmp_path / "texts.jsonl")
    write(gold, tmp_path / "gold.jsonl")
    args = ("annotate", "texts.jsonl", "--regex", r"LAKE=^\w+", "--out", "w.jsonl", "--gold", "gold.jsonl")
    done = run(*args, "--json")
    facts = json.loads(done.stdout)
    assert (facts["documents"], facts["gold"]["documents"]) == (4, len(gold))
    assert facts["gold"]["precision"] == facts["gold"]["recall"] == 1.0
    assert f"{len(gold)} of 4 documents have gold" in done.stderr
    assert [len(doc.spans) for doc in read(tmp_path / "w.jsonl")] == [1] * 4


@pytest.mark.parametrize(
    ("gold", "sentence"),
    [
        ([gold_doc("Brum", "d1")], "gold document 'd1' differs in text in the corpus, from character 2"),
        ([gold_doc("Alda", "d0"), gold_doc("Dun", "x")], "gold.jsonl:2: gold document 'x' is not in the corpus"),
        ([gold_doc("Dun", "1")], "gold.jsonl:1: gold document '1' is not in the corpus"),
        ([gold_doc("Alda", "d0")] * 3, "gold document 'd0' is not in the corpus"),
        ([*(gold_doc(doc.text[:-10], doc.id) for doc in PLACES), gold_doc("Dun", "x")], "'x' is not in the corpus"),
        ([], "gold.jsonl: no document"),
    ],
)  # fmt: skip
def test_gold_for_other_documents(run: Run, tmp_path: Path, gold: list[Document], sentence: str) -> None:
    write(PLACES, tmp_path / "texts.jsonl")
    write(gold, tmp_path / "gold.jsonl")
    args = ("annotate", "texts.jsonl", "--regex", r"LAKE=^\w+", "--out", "w.jsonl", "--gold", "gold.jsonl")
    done = run(*args, status=2)
    assert sentence in done.stderr
    assert not (tmp_path / "w.jsonl").exists()


def test_entries_that_are_never_matched_are_counted(run: Run, texts: Path) -> None:
    (texts / "a.tsv").write_text("Mara\tPERSON\nveltazine\tDRUG\nMARA\tPLACE\n\u00ad\u00ad\tDRUG\n\tDRUG\n")
    own = {"id": "one.txt", "terms": [["Mara", "PERSON"], ["Will", "PERSON"]]}
    (texts / "own.jsonl").write_text(json.dumps(own))
    (texts / "stop.txt").write_text("mara\n")
    files = ("--dictionary", "a.tsv", "--dictionary", "own.jsonl", "--stop", "stop.txt")
    done = run("annotate", "texts", *files, "--out", "w.jsonl")
    assert "read a.tsv: 4 entries, 1 row skipped; 2 stopped, 1 empty after normalising\n" in done.stderr
    assert "read own.jsonl: 2 entries, 0 rows skipped; 1 stopped\n" in done.stderr


def test_terms_for_documents_outside_the_corpus_are_reported(run: Run, texts: Path) -> None:
    rows = [{"id": id, "terms": [["Mara", "PERSON"]]} for id in ("one.txt", "three.txt", "four.txt")]
    (texts / "own.jsonl").write_text("\n".join(map(json.dumps, rows)))
    done = run("annotate", "texts", "--dictionary", "own.jsonl", "--out", "w.jsonl", "--json")
    sentence = "own.jsonl: 2 of the 3 documents it has terms for are not in the corpus, the first is 'four.txt'"
    assert done.stderr.count(sentence) == 1
    assert sentence in json.loads(done.stdout)["problems"]
    rows[1:] = []
    (texts / "own.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert "not in the corpus" not in run("annotate", "texts", "--dictionary", "own.jsonl", "--out", "w.jsonl").stderr


def test_formats_and_encodings_can_be_named(run: Run, texts: Path) -> None:
    (texts / "terms.dat").write_text("Mara,PERSON\n")
    args = ("annotate", "texts", "--out", "w.jsonl", "--dictionary")
    assert "--dictionary-format" in run(*args, "terms.dat", status=2).stderr
    run(*args, "terms.dat", "--dictionary-format", "csv")
    assert found(texts / "w.jsonl")[0] == [("Mara", "PERSON")]
    (texts / "t.xlsx").write_bytes(b"PK")
    assert "save a spreadsheet as CSV" in run(*args, "t.xlsx", status=2).stderr
    (texts / "t.tsv").write_bytes("Москва\tLOC\nПетербург\tLOC\n".encode("cp1251"))
    assert "--dictionary-encoding" in run(*args, "t.tsv", status=2).stderr
    run(*args, "t.tsv", "--dictionary-encoding", "cp1251")


def test_wrong_options_are_reported_before_the_gazetteer_is_read(run: Run, texts: Path) -> None:
    (texts / "a.tsv").write_text("Mara\tPERSON\n")
    done = run("annotate", "texts", "--dictionary", "a.tsv", "--out", "w.xyz", status=2)
    assert "w.xyz: unknown ending" in done.stderr and "read a.tsv" not in done.stderr
    for workers in ("0", "1025", "9" * 400):  # each would be a process, started at once
        done = run("annotate", "texts", "--dictionary", "a.tsv", "--out", "w.jsonl", "--workers", workers, status=2)
        assert "'--workers'" in done.stderr and "read a.tsv" not in done.stderr


@pytest.mark.parametrize(
    ("out", "report"),
    [("terms.jsonl", "r.html"), ("weak.jsonl", "terms.jsonl"), ("w.jsonl", "w.jsonl"), ("g.jsonl", None)],
)
def test_inputs_are_never_overwritten(run: Run, texts: Path, out: str, report: str | None) -> None:
    (texts / "terms.jsonl").write_text('{"surface": "veltazine", "label": "DRUG"}\n')
    (texts / "g.jsonl").write_text('{"id": "two.txt", "text": "Nothing here."}\n')
    before = (texts / "terms.jsonl").read_bytes()
    more = ["--report", f"texts/../{report}"] if report else ["--gold", "g.jsonl"]
    done = run("annotate", "texts", "--dictionary", "terms.jsonl", "--out", out, *more, status=2)
    assert "is already an input or output" in done.stderr
    assert (texts / "terms.jsonl").read_bytes() == before


def test_gold_without_entities_is_reported(run: Run, texts: Path) -> None:
    (texts / "terms.tsv").write_text("veltazine\tDRUG\n")
    done = run("annotate", "texts", "--dictionary", "terms.tsv", "--out", "w.jsonl", "--gold", "texts")
    assert "no entity in this gold" in done.stderr


def test_no_documents_and_no_matches_are_reported(run: Run, tmp_path: Path) -> None:
    (tmp_path / "swapped.tsv").write_text("PERSON\tMara Teel\nPLACE\tHalden\nPLACE\tOslo\n")
    (tmp_path / "texts.txt").write_text("Mara Teel left Halden.\n")
    (tmp_path / "empty.txt").write_text("\n")
    done = run("annotate", "texts.txt", "--dictionary", "swapped.tsv", "--out", "weak.jsonl")
    assert "no match in any document: is it the right gazetteer" in done.stderr
    done = run("annotate", "empty.txt", "--dictionary", "swapped.tsv", "--out", "weak.jsonl")
    assert "empty.txt: no document" in done.stderr
    (tmp_path / "right.tsv").write_text("Mara Teel\tPERSON\n")
    done = run("annotate", "texts.txt", "--dictionary", "right.tsv", "--out", "weak.jsonl")
    assert "no match in any document" not in done.stderr
    done = run("evaluate", "weak.jsonl", "--gold", "texts.txt")
    assert "texts.txt: no entity" in done.stderr


def test_the_gazetteer_is_written_beside_the_labels_it_made(run: Run, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("Mara left Halden.\n")
    (tmp_path / "terms.tsv").write_text("Halden\tLOC\n")
    run("annotate", "texts.txt", "--dictionary", "terms.tsv", "--out", "weak.jsonl")
    assert "Halden" in (tmp_path / "weak.jsonl.gazetteer.json").read_text()
    run("annotate", "texts.txt", "--regex", "LOC=Halden", "--out", "weak.jsonl")
    assert not (tmp_path / "weak.jsonl.gazetteer.json").exists(), "that of earlier labels is not used for these"


def test_terms_and_labels_cannot_control_the_terminal(run: Run, tmp_path: Path) -> None:
    """An escape sequence in a label, a term, a pattern's label or a file name is shown, not sent to the terminal."""
    evil = "\x1b]0;title\x07\x1b[2J"
    (tmp_path / "texts.txt").write_text("will Mara and Halden\n" * 20)
    (tmp_path / "terms.tsv").write_text(f"Mara\tPER{evil}\nwill\tPER{evil}\nHalden\tLOC\nHalden\tLOC\n\tX{evil}\n")
    args = ("annotate", "texts.txt", "--dictionary", "terms.tsv", "--out", "w.jsonl", "--lint")
    done = run(*args, "--regex", f"A{evil}=and")
    assert "\x1b" not in done.stdout + done.stderr and "\x07" not in done.stdout + done.stderr
    assert "PER\u241b]0;title" in done.stdout, "visible"
    failed = run("annotate", f"texts{evil}.txt", "--dictionary", "terms.tsv", "--out", "w.jsonl", status=2)
    assert "\x1b" not in failed.stderr and "\u241b" in failed.stderr
