"""`lacuner dictionary build`: the command, its report, and its mistakes."""

from __future__ import annotations

import bz2
import json
from pathlib import Path

import pytest

from lacuner.annotate.knowledge import KNOWLEDGE_FORMATS
from lacuner.cli import dictionary
from lacuner.corpus import read
from tests.annotate.knowledge import samples
from tests.cli.conftest import Run

pytestmark = pytest.mark.integration


def test_from_a_dump_to_weak_labels(run: Run, tmp_path: Path) -> None:
    (tmp_path / "latest-all.json.bz2").write_bytes(bz2.compress(samples.WIKIDATA.encode()))
    (tmp_path / "more.obo").write_text(samples.OBO)
    args = ("dictionary", "build", "latest-all.json.bz2", "more.obo", "--class", "Q5=PER", "--class", "Q515=LOC")
    done = run(*args, "--class", "DOID:4=DISEASE", "--language", "en", "--out", "terms.tsv")
    assert "wrote terms.tsv: 8 entries" in done.stderr
    assert "a common word" in done.stdout and "of another class" in done.stdout and "LOC" in done.stdout
    facts = json.loads(run(*args, "--language", "en", "--out", "terms.tsv", "--json").stdout)
    assert facts["entries"] == {"LOC": 2, "PER": 2} and facts["filtered"]["in another language"] == 3
    (tmp_path / "common.txt").write_text("Halden\t900\nFREDRIKSHALD 12\n")
    less = json.loads(run(*args, "--language", "en", "--common-words", "common.txt", "--out", "x.tsv", "--json").stdout)
    assert less["filtered"]["a common word"] == facts["filtered"]["a common word"] + 2 and less["entries"] == {"PER": 2}
    (tmp_path / "texts.txt").write_text("Mara Teel left Fredrikshald in May.\n")
    run("annotate", "texts.txt", "--dictionary", "terms.tsv", "--out", "weak.jsonl")
    [doc] = read(tmp_path / "weak.jsonl")
    assert [(doc.text[s.start : s.end], s.label) for s in doc.spans] == [("Mara Teel", "PER"), ("Fredrikshald", "LOC")]


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("x.obo", "--out", "terms.csv", "--label", "X"), "terms.csv: a gazetteer is written as TSV"),
        (("terms.tsv", "--out", "terms.tsv"), "is already an input or output"),
        (("x.obo", "--out", "t.tsv", "--class", "Q5"), "--class is written CLASS=LABEL"),
        (("x.obo", "--out", "t.tsv"), "name the label of all entries (--label)"),
        (("x.obo", "--out", "t.tsv", "--label", "X", "--min-length", "200"), "--min-length"),
        (("x.obo", "--out", "t.tsv", "--label", "X", "--kind", "nickname"), "--kind is one of label, alias"),
        (("x.obo", "--out", "t.tsv", "--label", "X", "--encoding", "latin-99"), "no encoding called"),
        (("x.obo", "--out", "t.tsv", "--label", "X", "--format", "owl"), "not well-formed XML"),
    ],
)
def test_mistakes(run: Run, tmp_path: Path, args: tuple[str, ...], sentence: str) -> None:
    (tmp_path / "x.obo").write_text(samples.OBO)
    (tmp_path / "terms.tsv").write_text("Halden\tLOC\n")
    assert sentence in run("dictionary", "build", *args, status=2).stderr
    assert not (tmp_path / "t.tsv").exists()


def test_the_choices_of_the_options_are_those_of_the_tables() -> None:
    assert dictionary.Format.__args__ == tuple(KNOWLEDGE_FORMATS)  # type: ignore[attr-defined]
