"""`lacuner convert`: from any format to any other, with what was lost."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from lacuner.corpus import FORMATS, read, write
from lacuner.corpus.formats import detect_format
from lacuner.corpus.reader import CorpusFile
from lacuner.data import Document, Span
from tests.cli.conftest import Run

DOC = Document("1", "Mara Teel left Halden.", spans=(Span(0, 9, "PER", 0.9), Span(15, 21, "LOC")), complete=False)


@pytest.mark.parametrize("name", FORMATS)
def test_from_our_format_to_each_other(run: Run, tmp_path: Path, name: str) -> None:
    write([DOC], tmp_path / "in.jsonl")
    done = run("convert", "in.jsonl", "out", "--format-out", name)
    assert "read in.jsonl: 1 documents (jsonl): 0 lost" in done.stderr
    assert "wrote out: " in done.stderr
    assert (tmp_path / "out").exists()


def test_compressed_label_studio_to_columns(run: Run, tmp_path: Path) -> None:
    write([DOC], tmp_path / "in.json.gz", format="labelstudio")
    done = run("convert", "in.json.gz", "out.conll.xz", "--scheme-out", "BIOES", "--map", "PER=PERSON", "--json")
    facts = json.loads(done.stdout)
    assert (facts["documents"], facts["spans"]) == (1, 2)
    assert facts["lost"]["score not written"] == 1
    [doc] = read(tmp_path / "out.conll.xz")
    assert [span.label for span in doc.spans] == ["PERSON", "LOC"]


def test_every_lost_span_is_listed(run: Run, tmp_path: Path) -> None:
    text = "Bank of Halden near 🚀"
    spans = (Span(0, 14, "ORG"), *[Span(0, end, "LOC") for end in range(1, 8)], Span(8, 14, "LOC", 0.5))
    write([Document("a", text, spans=spans, unsure=(Span(15, 19, ""),))], tmp_path / "in.jsonl")
    assert "--lost FILE lists every lost span" in run("convert", "in.jsonl", "out.conll").stderr
    done = run("convert", "in.jsonl", "out.conll", "--lost", "lost.jsonl")
    assert "wrote lost.jsonl: 9 lost spans" in done.stderr
    rows = [json.loads(line) for line in (tmp_path / "lost.jsonl").read_text().splitlines()]
    reasons = {(row["start"], row["end"], row["reason"]) for row in rows}
    assert len(rows) == 9 and {(8, 14, "span overlaps a longer one"), (15, 19, "unsure span not written")} <= reasons
    assert rows[0]["document"] == "a" and {row["step"] for row in rows} == {"writing"}
    (tmp_path / "brat").mkdir()
    (tmp_path / "brat" / "1.txt").write_text("Mara and Bram Teel")
    (tmp_path / "brat" / "1.ann").write_text("T1\tPER 0 4;14 18\tMara Teel\n")
    run("convert", "brat", "out.jsonl", "--lost", "lost.jsonl")
    [row] = map(json.loads, (tmp_path / "lost.jsonl").read_text().splitlines())
    assert (row["step"], row["text"]) == ("reading", "Mara and Bram Teel")
    assert "OUT - and --lost - both use standard output" in run("convert", "brat", "-", "--lost", "-", status=2).stderr


def test_standard_input_and_output(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '{"text": "Mara left", "label": [[0, 4, "PER"]]}\n'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    done = run("convert", "-", "-")
    assert json.loads(done.stdout)["spans"] == [{"start": 0, "end": 4, "label": "PER"}]
    assert "read standard input: 1 documents (doccano): 0 lost" in done.stderr


def test_what_the_input_does_not_say(run: Run, tmp_path: Path) -> None:
    write([DOC], tmp_path / "in.conll")
    run("convert", "in.conll", "out.jsonl", "--complete")
    assert [doc.complete for doc in read(tmp_path / "out.jsonl")] == [True]


def test_label_names(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"tokens": ["Mara", "left"], "ner_tags": [1, 0]}\n')
    (tmp_path / "names.txt").write_text("O\nB-PER\n")
    assert "give --label-names O,B-PER" in run("convert", "in.jsonl", "out.conll", status=2).stderr
    for names in ("O,B-PER", "names.txt"):
        run("convert", "in.jsonl", "out.conll", "--label-names", names)
        assert (tmp_path / "out.conll").read_text() == "Mara\tB-PER\nleft\tO\n\n"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["in.jsonl", "in.jsonl"], "already an input"),
        (["in.jsonl", "out.xyz"], "--format-out"),
        (["in.jsonl", "-", "--json"], "both use standard output"),
        (["in.jsonl", "out.conll", "--map", "PER"], "--map is written LABEL=LABEL"),
        (["in.jsonl", "out.conll", "--label-names", "nothing"], "--label-names is a list"),
        (["missing.jsonl", "out.conll"], "no such file"),
    ],
)
def test_mistakes_are_one_sentence(run: Run, tmp_path: Path, args: list[str], words: str) -> None:
    write([DOC], tmp_path / "in.jsonl")
    assert words in run("convert", *args, status=2).stderr.strip().splitlines()[-1]
    assert not list(tmp_path.glob("out*"))


def test_check_recognises_the_format_and_repairs_in_it(run: Run, tmp_path: Path) -> None:
    doc = Document("1", "Mara Teel left.", spans=(Span(0, 5, "PER"),), complete=True)
    for name, format in (("export.json", "labelstudio"), ("export.json.gz", "argilla"), ("x.jsonl.zst", "prodigy")):
        write([doc], tmp_path / name, format=format)
        done = run("check", name, status=2)
        assert "whitespace: document '1': PER 0-5" in done.stdout
        assert "white space trimmed: 1" in run("check", name, "--fix").stdout
        stem, _, endings = name.partition(".")
        fixed = tmp_path / f"{stem}.fixed.{endings}"
        assert detect_format(CorpusFile(fixed)) == format
        assert [span.key for [doc] in [read(fixed)] for span in doc.spans] == [(0, 4, "PER")]


def test_names_after_map_that_do_not_occur(run: Run, tmp_path: Path) -> None:
    write([DOC], tmp_path / "in.jsonl")
    done = run("convert", "in.jsonl", "out.jsonl", "--map", "PER=PERSON", "--map", "PLACE=LOC")
    assert "--map names labels that do not occur: PLACE\n" in done.stderr
    assert "do not occur" not in run("convert", "in.jsonl", "out.jsonl", "--map", "PER=PERSON").stderr
