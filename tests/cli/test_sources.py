"""`lacuner annotate --source`: every kind, and mistakes in the option."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lacuner.cli.sources import SOURCE_KINDS
from lacuner.corpus import read
from lacuner.models.lookup import LookupTagger
from lacuner.models.storage import save
from tests.cli.conftest import Run
from tests.models.test_gliner_source import FakeGLiNER, gliner
from tests.models.test_model_sources import make_classifier

__all__ = ["gliner"]  # a fixture

pytestmark = pytest.mark.integration
TEXT = "Ada Lovelace met Charles Babbage in London in 1833."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "texts.txt").write_text(TEXT + "\n")
    (tmp_path / "rules.txt").write_text("YEAR=\\b1[89]\\d\\d\\b\n")
    (tmp_path / "ruler.jsonl").write_text('{"label": "LOC", "pattern": [{"LOWER": "london"}]}\n')
    (tmp_path / "terms.tsv").write_text("London\tPLACE\n")
    save(LookupTagger({"Ada Lovelace": "PER"}), tmp_path / "earlier")
    return tmp_path


def found(path: Path) -> list[tuple[str, str, str | None]]:
    [doc] = read(path)
    return [(doc.text[s.start : s.end], s.label, s.source) for s in doc.spans]


def test_several_sources_beside_a_gazetteer(run: Run, folder: Path) -> None:
    sources = ("--source", "spacy:ruler.jsonl", "--source", "regex:rules.txt", "--source", "run:earlier")
    args = ("annotate", "texts.txt", "--dictionary", "terms.tsv", *sources, "--out", "w.jsonl")
    facts = json.loads(run(*args, "--json").stdout)
    assert found(folder / "w.jsonl") == [
        ("Ada Lovelace", "PER", "earlier"),
        ("London", "PLACE", "terms"),
        ("1833", "YEAR", "rules"),
    ]
    rows = {(row["source"], row["label"]): row for row in facts["sources"]}
    assert rows["ruler", "LOC"]["conflicts"] == rows["terms", "PLACE"]["conflicts"] == 1
    assert (rows["earlier", "PER"]["documents"], rows["earlier", "PER"]["overlaps"]) == (1, 0)
    run(*args, "--map", "LOC=PLACE", "--map", "PLACE=PLACE", "--by", "vote")
    [doc] = read(folder / "w.jsonl")
    place = next(span for span in doc.spans if span.label == "PLACE")
    assert (place.score, place.source) == (1.0, "terms+ruler")
    (folder / "stop.txt").write_text("ada lovelace\n")
    run(*args, "--stop", "stop.txt")
    assert [label for _, label, _ in found(folder / "w.jsonl")] == ["PLACE", "YEAR"]


def test_models_of_others(run: Run, folder: Path, gliner: Path) -> None:
    make_classifier(folder / "classifier")
    args = ("annotate", "texts.txt", "--out", "w.jsonl", "--source")
    run(*args, "hf:classifier")
    assert {label for _, label, _ in found(folder / "w.jsonl")} <= {"PER", "LOC"}
    assert {source for *_, source in found(folder / "w.jsonl")} == {"classifier"}
    FakeGLiNER.opened = None
    run(*args, f"gliner:{gliner}", "--labels", "someone's name=PER", "--labels", "place")
    assert FakeGLiNER.opened is not None
    assert [text for text, *_ in found(folder / "w.jsonl")] == ["Ada", "Lovelace", "Charles", "Babbage", "London"]
    run(*args, f"gliner:{gliner}", "--labels", "someone's name=PER", "--gliner-threshold", "0.8")
    assert found(folder / "w.jsonl") == []
    twice = run(*args, f"gliner:{gliner}", "--labels", "name=PER", "--labels", "name=ORG", status=2)
    assert "--labels gives 'name' two labels: 'PER' and 'ORG'" in twice.stderr


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("--source", "rules.txt"), "--source is written spacy:PATH, hf:PATH"),
        (("--source", "regex:"), "--source is written"),
        (("--source", "snorkel:x"), "not 'snorkel:x'"),
        (("--source", "regex:nowhere.txt"), "nowhere.txt: cannot read"),
        (("--source", "run:texts.txt"), "texts.txt"),
        (("--source", "hf:nowhere"), "nowhere: there is no such folder"),
        (("--source", "spacy:texts.txt"), "texts.txt: a spaCy source is"),
        (("--source", "regex:rules.txt", "--labels", "x"), "--labels are for GLiNER"),
        (("--source", "regex:rules.txt", "--gliner-threshold", "0.2"), "--gliner-threshold is for GLiNER"),
        (("--source", "regex:rules.txt", "--min-probability", "0.5"), "add --by model"),
        (("--source", "regex:rules.txt", "--report", "rules.txt"), "is already an input"),
    ],
)
def test_mistakes(run: Run, folder: Path, args: tuple[str, ...], sentence: str) -> None:
    assert sentence in run("annotate", "texts.txt", "--out", "w.jsonl", *args, status=2).stderr
    assert not (folder / "w.jsonl").exists()


def test_every_kind_is_tested() -> None:
    text = Path(__file__).read_text()
    assert [kind for kind in SOURCE_KINDS if f'"{kind}:' not in text and f'f"{kind}:' not in text] == []


def test_the_label_model(run: Run, folder: Path) -> None:
    (folder / "names.txt").write_text("PLACE=in (?P<entity>[A-Z]\\w+)\nPLACE=met\n")
    args = ("annotate", "texts.txt", "--dictionary", "terms.tsv", "--source", "spacy:ruler.jsonl", "--map", "LOC=PLACE")
    args = (*args, "--map", "PLACE=PLACE", "--source", "regex:names.txt", "--by", "model", "--out", "w.jsonl")
    done = run(*args, "--report", "r.html")
    assert "Estimated accuracy" in done.stdout
    assert ("London", "PLACE", "terms+ruler+names") in found(folder / "w.jsonl")
    facts = json.loads(run(*args, "--json").stdout)
    assert {(row["source"], row["label"]) for row in facts["accuracy"]} == {
        *(("terms", "PLACE"), ("ruler", "PLACE"), ("names", "PLACE"))
    }
    assert "Accuracy, estimated from agreement" in (folder / "r.html").read_text()
    two = ("annotate", "texts.txt", "--regex", "A=Ada", "--regex", "B=met", "--by", "model", "--out", "w.jsonl")
    assert "--by model needs at least 3 sources" in run(*two, status=2).stderr
    assert "no label has spans of 3 sources" in run(*two, "--regex", "C=in", status=2).stderr
