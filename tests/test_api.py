"""The Python interface: paths, documents and texts go in; wrong arguments get one clear sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lacuner.api import annotate, augment, config_for, corrupt, measure, predict, read, score, train, write
from lacuner.data import Document, Span
from lacuner.errors import ConfigError, CorpusError
from lacuner.models.lookup import LookupTagger
from lacuner.noise import Noise
from lacuner.recipes.partial import Config as PartialConfig

GOLD = [Document("a", "Mara left Halden.", spans=(Span(0, 4, "PERSON"), Span(10, 16, "PLACE")), complete=True)]


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    write(GOLD, tmp_path / "gold.jsonl")
    return tmp_path / "gold.jsonl"


def test_texts_instead_of_documents(tmp_path: Path) -> None:
    gazetteer = tmp_path / "terms.tsv"
    gazetteer.write_text("aspirin\tDrug\n", encoding="utf-8")
    docs = list(annotate(["Take aspirin.", Document("mine", "no aspirin")], gazetteer))
    assert [doc.id for doc in docs] == ["1", "mine"]
    assert [doc.text[span.start : span.end] for doc in docs for span in doc.spans] == ["aspirin"] * 2
    tagger = LookupTagger({"aspirin": "Drug"})
    assert [doc.text for doc in predict(tagger, ["Take aspirin."]) if doc.spans] == ["Take aspirin."]


@pytest.mark.parametrize("as_text", [True, False])
def test_paths_instead_of_documents(gold: Path, tmp_path: Path, as_text: bool) -> None:
    path = str(gold) if as_text else gold
    weak = list(corrupt(path, Noise(drop=1.0)))
    assert [doc.spans for doc in weak] == [()]
    assert measure(weak, path).total["missing"] == 2
    labeled = list(annotate(path, {"Halden": "PLACE"}))
    assert score(path, labeled).exact.recall == 0.5
    tagger = train("dictionary", weak=path, out=tmp_path / "run", progress=False)
    write(predict(tmp_path / "run", path), tmp_path / "found.jsonl")
    assert score(path, tmp_path / "found.jsonl").exact.f1 == 1.0
    assert tagger.labels == ("PERSON", "PLACE")


def test_a_config_or_settings(tmp_path: Path) -> None:
    config = config_for("partial", frequent=7, train={"epochs": 1})
    assert isinstance(config, PartialConfig) and config.frequent == 7
    tagger = train("partial", weak=GOLD, dev=GOLD, out=tmp_path / "run", config=config)
    messages: list[str] = []
    again = train(
        "partial",
        weak=GOLD,
        dev=GOLD,
        out=tmp_path / "run",
        settings=["frequent=7", "train.epochs=1"],
        progress=messages.append,
    )
    assert again.labels == tagger.labels and any("finished" in message for message in messages)


def test_progress_is_shown_on_request_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for progress in (None, False):
        train("trust", weak=GOLD, out=tmp_path / str(progress), settings=["train.epochs=1"], progress=progress)
        assert capsys.readouterr() == ("", "")
    train("trust", weak=GOLD, out=tmp_path / "shown", settings=["train.epochs=1"], progress=True)
    assert "epoch 1/1" in capsys.readouterr().err


WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda: annotate(GOLD[0]), TypeError, "docs: expected a path or a list of documents, got Document"),
    (
        lambda: list(annotate([1], {"Mara": "PERSON"})),
        TypeError,
        r"docs\[0\]: expected lacuner.data.Document, got int",
    ),
    (lambda: score({"a": 1}, GOLD), TypeError, "gold: expected a path or a list of documents, got dict"),
    (lambda: predict(LookupTagger({}), "nowhere.jsonl"), CorpusError, "nowhere.jsonl: there is no such file"),
    (lambda: predict(LookupTagger({}), "Mara " * 100), CorpusError, "put a single text in a list"),
    (lambda: corrupt(GOLD, 0.5), TypeError, "noise: expected lacuner.noise.corrupt.Noise, got float"),
    (lambda: train("trust", weak=GOLD, config={"epochs": 1}), TypeError, "config: expected .* got dict; use"),
    (lambda: train("roster", weak=GOLD, config=PartialConfig()), TypeError, "expected lacuner.recipes.roster.Config"),
    (lambda: train(weak=GOLD, config=PartialConfig()), ConfigError, "takes settings, not a config"),
    (lambda: train("partial", weak=GOLD, config=PartialConfig(), settings=["a=1"]), ConfigError, "either config or"),
    (lambda: train("magic", weak=GOLD), ConfigError, "there is no recipe 'magic'"),
    (lambda: config_for("auto"), ConfigError, "recipe `auto` takes settings, not a config"),
    (lambda: train("trust", weak=GOLD, out=5), TypeError, "out: expected str or os.PathLike, got int"),
    (lambda: train("trust", weak=GOLD, seed="one"), TypeError, "seed: expected int, got str"),
    (lambda: config_for("magic"), ConfigError, "there is no recipe 'magic'"),
    (lambda: config_for("partial", frequnt=1), ConfigError, "did you mean 'frequent'"),
    (lambda: train("trust"), ConfigError, "needs --weak"),
    (
        lambda: annotate(GOLD, [("Mara", "PERSON")]),
        TypeError,
        "gazetteer: expected str or os.PathLike, got list; labels",
    ),
    (lambda: annotate(GOLD, {"PERSON": ["Mara"]}), TypeError, "label of 'PERSON': expected str, got list; as in {"),
    (lambda: annotate(GOLD, {"Mara": 1}), TypeError, "label of 'Mara': expected str, got int"),
    (lambda: list(annotate(GOLD)), ConfigError, "no source to label with: give a gazetteer or sources"),
    (lambda: predict(LookupTagger({}), "Mara left Halden."), CorpusError, "put a single text in a list"),
    (lambda: LookupTagger({})(["Mara"]), TypeError, r"text: expected str, got list; predict\(docs\) is for several"),
    (lambda: LookupTagger({})(None), TypeError, "text: expected str, got NoneType"),
    (lambda: predict(1, GOLD), TypeError, "tagger: expected a tagger or the folder of a run, got int"),
    (lambda: augment([1], "run:nowhere"), TypeError, "expected lacuner.data.Document"),
]


@pytest.mark.parametrize(("call", "error", "sentence"), WRONG)
def test_a_wrong_argument_gets_one_sentence(call: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence) as raised:
        call()
    assert "\n" not in str(raised.value)


def test_files_say_what_they_are_read_as(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"text": "Mara left."}\n')
    assert [doc.complete for doc in read(tmp_path / "x.jsonl")] == [None]
