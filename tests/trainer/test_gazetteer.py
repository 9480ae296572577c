"""Training with a gazetteer: it is stored, compared with the model, and identifies the run; its labels are checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from lacuner.annotate import Entry, annotate, gazetteer_source
from lacuner.config import load_config
from lacuner.data import Document, Span, Splits
from lacuner.errors import ConfigError, ModelFileError
from lacuner.models.gazetteer import TaggerGazetteer
from lacuner.models.storage import load
from lacuner.recipes import RECIPES
from lacuner.trainer.comparison import read_comparison
from lacuner.trainer.labels import check_labels, rename_labels
from lacuner.trainer.merge_rule import choose_rule, merge_all
from lacuner.trainer.train import TrainingResult, train
from tests.demo_corpus import demo_corpus

DEMO = demo_corpus()
NAMES = sorted({(doc.text[s.start : s.end], s.label) for doc in DEMO.train[:60] for s in doc.spans})
ENTRIES = [Entry(*name) for name in dict(NAMES).items()][::2]
WEAK = list(annotate([Document(doc.id, doc.text) for doc in DEMO.train[:60]], [gazetteer_source(ENTRIES)]))


def run(folder: Path, *, dev: bool = False, entries: list[Entry] = ENTRIES) -> TrainingResult:
    config = load_config(RECIPES["negative_sampling"].Config, settings=["train.epochs=1"])
    splits = Splits(weak=WEAK, dev=DEMO.dev[:40] if dev else None)
    return train("negative_sampling", splits, folder, config, gazetteer=TaggerGazetteer(entries))


def test_the_tagger_is_never_worse_than_the_gazetteer_on_what_it_knows(tmp_path: Path) -> None:
    result = run(tmp_path / "run", dev=True)
    assert result.comparison is not None
    scores = {row.system: row for row in result.comparison.rows}
    assert list(scores) == ["gazetteer alone", "model alone", "both"]
    assert scores["both"].count.f1 >= scores["gazetteer alone"].count.f1 > 0, "the threshold is tuned for both"
    assert all(row.low <= row.count.f1 <= row.high for row in scores.values())
    again = load(tmp_path / "run")
    text = DEMO.test[0].text
    assert again.gazetteer is not None and again(text).spans == result.tagger(text).spans


def test_another_gazetteer_is_another_run(tmp_path: Path) -> None:
    assert run(tmp_path / "run").comparison is None, "without dev there is nothing to compare on"
    with pytest.raises(ConfigError, match="holds another run"):
        run(tmp_path / "run", entries=ENTRIES[1:])


@pytest.mark.integration
def test_without_dev_gold_is_scored_by_models_that_were_not_trained_on_it(tmp_path: Path) -> None:
    config = load_config(RECIPES["wsl"].Config, settings=["train.epochs=2", "encoder.name=tiny"])
    gazetteer = TaggerGazetteer(ENTRIES)

    def run_with(gold: int, lines: list[str]) -> TrainingResult:
        splits = Splits(weak=WEAK, gold=DEMO.dev[:gold])
        return train("wsl", splits, tmp_path / str(gold), config, log=lines.append, gazetteer=gazetteer)

    lines: list[str] = []
    result = run_with(24, lines)
    assert result.comparison is not None and any("each trained without a part of gold" in line for line in lines)
    assert any(line.startswith("model 2 of 3: ") and line.endswith(" left in total") for line in lines)
    assert [row.system for row in result.comparison.rows] == ["gazetteer alone", "model alone", "both"]
    assert {row.count.gold for row in result.comparison.rows} == {sum(len(doc.spans) for doc in DEMO.dev[:24])}
    assert not (tmp_path / "24" / "comparison").exists(), "the models of the comparison are not kept"
    again: list[str] = []
    assert run_with(24, again).comparison == result.comparison and "this run is already finished" in again
    few: list[str] = []
    assert run_with(10, few).comparison is None and "20 to 500 documents as --gold" in "\n".join(few)


def merged_names(found: int) -> tuple[list[Document], list[Document], list[Document]]:
    """Names of two words, of which the gazetteer has the second; a model predicts the first `found` of 40 in full."""
    gold = [Document(str(n), "New Halden is big", spans=(Span(0, 10, "LOC"),), complete=True) for n in range(40)]
    matched = [Document(doc.id, doc.text, spans=(Span(4, 10, "LOC", None, "gazetteer"),)) for doc in gold]
    predicted = [
        Document(doc.id, doc.text, spans=(Span(0, 13, "LOC", 0.9) if n >= found else Span(0, 10, "LOC", 0.4),))
        for n, doc in enumerate(gold)
    ]
    return gold, matched, predicted


@pytest.mark.parametrize(("found", "rule"), [(40, "model"), (0, "extension"), (2, "extension")])
def test_the_merge_rule_is_the_best_on_gold_if_the_difference_is_clear(found: int, rule: str) -> None:
    """Improbable but right predictions are used by the rule `model` alone; two of them in 40 may be chance."""
    assert choose_rule(*merged_names(found)) == rule


def test_the_threshold_of_each_rule_decides_what_it_merges() -> None:
    gold, matched, predicted = merged_names(40)
    assert choose_rule(gold, matched, predicted, {"model": 0.5}) == "extension"
    assert [doc.spans for doc in merge_all(matched, predicted, "model", 0.5)] == [()] * 40


def test_a_comparison_of_an_earlier_version_has_the_default_rule(tmp_path: Path) -> None:
    (tmp_path / "comparison.json").write_text(
        '[{"system": "both", "correct": 1, "predicted": 2, "gold": 3, "low": 0, "high": 1}]'
    )
    comparison = read_comparison(tmp_path)
    assert comparison is not None and comparison.rule == "extension" and comparison.rows[0].count.f1 == 0.4
    (tmp_path / "comparison.json").write_text('{"rule": "coin", "chosen_on": "dev", "rows": []}')
    with pytest.raises(ModelFileError, match="not the comparison of a run"):
        read_comparison(tmp_path)


def doc(label: str) -> Document:
    return Document("1", "Mara left", spans=(Span(0, 4, label),))


@pytest.mark.parametrize(
    ("one", "other"), [("Person", "PERSON"), ("Persons", "Person"), ("bio:Person", "Person"), ("Person", "PER")]
)
def test_labels_that_look_alike_are_a_question(one: str, other: str) -> None:
    for data, gazetteer in (({"weak": [doc(one)], "gold": [doc(other)]}, ()), ({"weak": [doc(one)]}, (other,))):
        with pytest.raises(ConfigError, match=rf"uses {other}, weak uses {one}: .* add --map {other}={one}"):
            check_labels(data, gazetteer)
    assert not check_labels({"weak": [doc(one)], "gold": list(rename_labels([doc(other)], {other: one}))})


def test_labels_are_compared_before_a_recipe_is_chosen(tmp_path: Path) -> None:
    """`auto` ignores gold that has no label in common with weak; then it is too late to ask."""
    splits = Splits(weak=WEAK, gold=list(rename_labels(DEMO.dev[:40], {"PERSON": "Per"})))
    assert any(span.label == "PERSON" for doc in WEAK for span in doc.spans)
    with pytest.raises(ConfigError, match=r"gold uses Per, weak uses PERSON: .* add --map Per=PERSON; if not, rename"):
        train("auto", splits, tmp_path / "run")


@pytest.mark.parametrize("role", ["gold", "dev"])
def test_gold_or_dev_without_any_common_label_is_an_error(role: str, tmp_path: Path) -> None:
    """It was ignored (gold), or every entity of it counted as missed (dev), after a training of minutes."""
    data = {"weak": [doc("Disease")], role: [doc("Drug"), doc("Disorder")]}
    message = rf"{role} has no label in common .*\(Disorder, Drug instead of Disease\): .* --map Disorder=NAME"
    with pytest.raises(ConfigError, match=message):
        check_labels(data)
    with pytest.raises(ConfigError, match=message):
        train("negative_sampling", Splits(**data), tmp_path / "run")
    assert not check_labels({"weak": [doc("Disease")], role: []})
    assert not check_labels({"weak": [doc("Disease")]}, ["Drug"])[1:]  # a gazetteer may have other types


def test_a_label_that_only_one_input_has_is_named() -> None:
    assert check_labels({"weak": [doc("PER")], "dev": [doc("VESSEL"), doc("PER")]}) == [
        "only dev has the label VESSEL: weak has no example of it, so its entities count as missed on dev"
    ]
    assert check_labels({"weak": [doc("PER")], "gold": [doc("VESSEL"), doc("PER")]}, ["LOC"]) == [
        "only the gazetteer has the label LOC: weak has no example of it",
        "only gold has the label VESSEL: weak and the gazetteer have no example of it",
    ]
