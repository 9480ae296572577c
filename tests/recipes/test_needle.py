"""NEEDLE and its baselines: stages, switches, calibration, little data, unusual data, and that it helps."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lacuner.annotate import annotate, gazetteer_source
from lacuner.annotate.gazetteer.entries import Entry
from lacuner.config import load_config
from lacuner.data import Document, Span, Splits
from lacuner.demo import Demo
from lacuner.errors import ConfigError, TrainingError
from lacuner.evaluate import score
from lacuner.models.lookup import LookupTagger
from lacuner.models.storage import save
from lacuner.recipes import RECIPES, needle
from lacuner.trainer.train import TrainingResult, train
from lacuner.training.dataset import TrainingSet
from lacuner.training.run_folder import Run
from tests.demo_corpus import demo_corpus
from tests.recipes.check_recipe import weights
from tests.recipes.test_roster import stages

DEMO = demo_corpus()
GOLD = DEMO.train[:24]
WEAK = [replace(doc, spans=doc.spans[:1], complete=False) for doc in DEMO.train[24:60]]
QUICK = ["train.epochs=2", "train.budget=256"]


def run(recipe: str, folder: Path, *settings: str, log: Any = print, **data: Any) -> TrainingResult:
    torch.set_num_threads(1)
    mine = ["noisy_epochs=1"] if recipe in ("needle", "wsl") and "start=encoder" not in settings else []
    if recipe == "needle" and not any(setting.startswith("completion=") for setting in settings):
        mine.append("completion=true")
    doubting = recipe == "needle" and not {"noise_aware=false", "completion=false"} & set(settings)
    mine += ["noise_aware=true", "parts=2"] if doubting else []
    config = load_config(RECIPES[recipe].Config, settings=[*QUICK, *mine, *settings])
    return train(recipe, Splits(**{"gold": GOLD, "weak": WEAK, **data}), folder, config, log=log)


def test_the_stages_and_what_they_leave(tmp_path: Path) -> None:
    lines: list[str] = []
    run("needle", tmp_path / "r", log=lines.append, dev=DEMO.dev[:5])
    assert stages(tmp_path / "r") == {"initial", "calibrate/1", "calibrate/2", "noisy/1", "finetune/1"}
    for name in ("completed.jsonl", "labels.json", "confidence.json"):
        assert (tmp_path / "r" / name).stat().st_size > 100
    bare = sum(not doc.spans for doc in WEAK)
    assert bare and any(f"sentences without a weak label skipped: {bare}" in line for line in lines)
    assert "needle: calibrated on 24 held-out gold sentences in 2 bins (fewer than 50" in "\n".join(lines)
    rows = [json.loads(line) for line in (tmp_path / "r" / "metrics.jsonl").read_text().splitlines()]
    assert [row["stage"] for row in rows].count("noisy/1") == 1
    assert all("dev" in row for row in rows), "held-out gold is scored by models that were stopped as the judged one"


@pytest.mark.parametrize(
    ("settings", "want"),
    [
        (["finetune=false"], {"initial", "calibrate/1", "calibrate/2", "noisy/1"}),
        (["noise_aware=false"], {"initial", "noisy/1", "finetune/1"}),
        (["completion=false"], {"initial", "noisy/1", "finetune/1"}),
        (["completion=false", "noise_aware=false", "finetune=false"], {"initial", "noisy/1"}),
        (
            ["rounds=2", "finetune_epochs=1"],
            {"initial", "calibrate/1", "calibrate/2", "noisy/1", "finetune/1", "noisy/2", "finetune/2"},
        ),
    ],
)
def test_every_part_can_be_switched_off(settings: list[str], want: set[str], tmp_path: Path) -> None:
    run("needle", tmp_path / "r", *settings)
    assert stages(tmp_path / "r") == want
    assert (tmp_path / "r" / "confidence.json").exists() == any("calibrate" in name for name in want)
    assert (tmp_path / "r" / "completed-2.jsonl").exists() == ("noisy/2" in want)


@pytest.mark.integration
@pytest.mark.parametrize("pretrained", [False, True])
def test_the_noise_handling_depends_on_the_encoder(
    pretrained: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a pretrained encoder sentences are weighted, as in the paper; with others, added entities are filtered."""
    from tests.pretraining.test_pretrain_huggingface import make_model

    name = f"hf:{make_model(tmp_path / 'bert')}" if pretrained else "tiny"
    minimum: list[float] = []
    complete_weak = needle.complete_weak
    monkeypatch.setattr(needle, "complete_weak", lambda *given: minimum.append(given[3]) or complete_weak(*given))
    config = load_config(needle.Config, settings=[*QUICK, "completion=true", f"encoder.name={name}"])
    train("needle", Splits(gold=GOLD, weak=WEAK), tmp_path / "r", config)
    rows = [json.loads(line) for line in (tmp_path / "r" / "metrics.jsonl").read_text().splitlines()]
    assert [row["stage"] for row in rows].count("noisy/1") == (1 if pretrained else 5)
    assert ("calibrate/1" in stages(tmp_path / "r")) == pretrained
    assert minimum == [0.0 if pretrained else 0.9]


def test_settings_of_parts_that_are_off_are_refused() -> None:
    for settings in (["finetune=false", "finetune_epochs=3"], ["completion=false", "parts=3"]):
        with pytest.raises(ConfigError, match="has no effect together with"):
            load_config(needle.Config, settings=settings)
    assert load_config(needle.Config, settings=["bins=3", "encoder.name=hf:bert"]).bins == 3


def test_noise_aware_needs_completion(tmp_path: Path) -> None:
    from tests.pretraining.test_pretrain_huggingface import make_model

    with pytest.raises(ConfigError, match="no effect with completion=false"):
        run("needle", tmp_path / "r", "completion=false", "noise_aware=true")
    run("needle", tmp_path / "hf", f"encoder.name=hf:{make_model(tmp_path / 'bert')}", "completion=false")
    assert stages(tmp_path / "hf") == {"initial", "noisy/1", "finetune/1"}


@pytest.mark.parametrize("settings", [[], ["noise_aware=false"]])
def test_completed_sentences_are_weighted_by_confidence_and_gold_by_one(
    settings: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[TrainingSet, Any]] = []
    loss_step = needle.loss_step
    monkeypatch.setattr(needle, "loss_step", lambda data, *loss: seen.append((data, loss)) or loss_step(data, *loss))
    run("needle", tmp_path / "r", *settings)
    weighted = [data for data, loss in seen if loss == (needle._noise_aware_loss,)]
    assert len(weighted) == (not settings)
    assert all(data.targets.weight is None for data, loss in seen if not loss), "all other stages are not weighted"
    if weighted:
        [data] = weighted
        assert data.targets.weight is not None
        first_words = data.targets.offsets[:-1]
        weight = data.targets.weight[first_words]
        assert torch.equal(data.targets.weight, weight.repeat_interleave(torch.from_numpy(data.features.lengths)))
        gold, completed = weight[: len(GOLD)], weight[len(GOLD) :]
        assert (gold == 1).all() and (completed <= 0.95).all()
        written = [json.loads(line) for line in (tmp_path / "r" / "completed.jsonl").read_text().splitlines()]
        assert completed.tolist() == pytest.approx([row["meta"]["confidence"] for row in written], abs=1e-6)


def calibration_task(gold: list[Document], folder: Path, folds: int) -> needle._Task:
    """A task with nothing but what the calibration reads, as long as no fold is trained."""
    config = load_config(needle.Config, settings=[f"parts={folds}"])
    nothing: Any = None
    return needle._Task(gold, WEAK, None, config, Run(folder, {"seed": 1}), nothing, nothing, True, True)


@pytest.mark.parametrize("every_fold", [True, False])
def test_gold_is_scored_by_models_that_have_not_seen_it(
    every_fold: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = DEMO.train[:60]
    seen: list[tuple[set[str], set[str]]] = []

    class Spy(LookupTagger):
        def __init__(self, texts: set[str]) -> None:
            super().__init__({})
            self.texts = texts

        def predict(self, docs: Any) -> Any:
            docs = list(docs)
            seen.append((self.texts, {doc.text for doc in docs}))
            return iter(docs)

    def train_fold(task: Any, chosen: np.ndarray, name: str) -> Spy:
        assert name == f"calibrate/{len(seen) + 1}"
        return Spy({doc.text for doc, use in zip(docs, chosen, strict=True) if use})

    monkeypatch.setattr(needle, "_train_fold", train_fold)
    monkeypatch.setattr(needle, "ENOUGH_GOLD", 61 if every_fold else 60)
    task = calibration_task(docs, tmp_path, 4)
    calibration = needle._calibrate(task, needle._predict_by_folds(task))
    assert len(seen) == (4 if every_fold else 1) and (calibration.accuracy == 1).all()
    assert all(not trained & scored and trained | scored == {doc.text for doc in docs} for trained, scored in seen)
    assert calibration.sizes.sum() == (60 if every_fold else 15)


def test_without_a_fold_model_there_is_no_calibration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docs = [replace(GOLD[0], complete=False), replace(GOLD[1], unsure=(Span(0, 1, ""),)), GOLD[2]]
    trained: list[str] = []
    monkeypatch.setattr(needle, "_train_fold", lambda task, chosen, name: trained.append(name))
    task = calibration_task(docs, tmp_path, 3)
    calibration = needle._calibrate(task, needle._predict_by_folds(task))
    assert len(trained) == 1, "only the fold of the third document can be scored"
    assert len(calibration.accuracy) == calibration.sizes.sum() == 0


@pytest.mark.parametrize(("right", "helps"), [(True, True), (False, False)])
def test_labels_are_completed_if_that_improves_those_of_held_out_gold(
    right: bool, helps: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[str] = set()

    class Judge(LookupTagger):
        """Predicts what gold has, or an entity at each first word."""

        def predict(self, docs: Any) -> Any:
            for doc in docs:
                seen.add(doc.text)
                spans = doc.spans if right else (Span(0, len(doc.text.split()[0]), doc.spans[0].label),)
                yield replace(doc, spans=tuple(span._replace(score=1.0) for span in spans), complete=None)

    monkeypatch.setattr(needle, "_train_fold", lambda *_: Judge({}))
    lines: list[str] = []
    gold = [doc for doc in GOLD if doc.spans]
    config = load_config(needle.Config, settings=[*QUICK, "noisy_epochs=1", "noise_aware=true"])
    data = Splits(gold=gold, weak=WEAK, dev=DEMO.dev[:5])
    train("needle", data, tmp_path / "r", config, log=lines.append)
    [sentence] = [line for line in lines if line.startswith("needle: completion is")]
    assert sentence.startswith(f"needle: completion is {'on' if helps else 'off'}: on ")
    assert seen == {doc.text for doc in gold}, "neither dev nor test has a say"
    assert (tmp_path / "r" / "confidence.json").exists() == helps, "only completed sentences are weighted"


def test_with_one_gold_document_nothing_is_completed(tmp_path: Path) -> None:
    lines: list[str] = []
    config = load_config(needle.Config, settings=[*QUICK, "noisy_epochs=1", "finetune=false"])
    [one] = [doc for doc in GOLD if len(doc.spans) > 1][:1]
    train("needle", Splits(gold=[one], weak=WEAK), tmp_path / "r", config, log=lines.append)
    assert any("completion is off: there is too little gold" in line for line in lines)


def test_without_completion_unlabeled_words_are_o(tmp_path: Path) -> None:
    run("needle", tmp_path / "r", "completion=false", "noise_aware=false")
    written = [json.loads(line) for line in (tmp_path / "r" / "completed.jsonl").read_text().splitlines()]
    assert all(row["complete"] and len(row["spans"]) == 1 for row in written)


def test_another_run_may_complete(tmp_path: Path) -> None:
    save(LookupTagger({"the": "PLACE"}), tmp_path / "names")
    run("needle", tmp_path / "r", f'complete_from="{tmp_path / "names"}"')
    assert stages(tmp_path / "r") == {"initial", "noisy/1", "finetune/1"}, "gold is held out for it already"
    rows = [json.loads(line) for line in (tmp_path / "r" / "completed.jsonl").read_text().splitlines()]
    added = {row["text"][s["start"] : s["end"]] for row in rows for s in row["spans"] if s.get("source")}
    assert added == {"the"}
    lines: list[str] = []
    for role, folder in (("weak", "gold learned"), ("gold", "gold seen")):
        data = {"weak": None, "gold": GOLD} if role == "gold" else {"weak": WEAK}
        run("supervised" if role == "gold" else "trust", tmp_path / folder, **data)
        run("needle", tmp_path / role, f'complete_from="{tmp_path / folder}"', log=lines.append)
        assert any("was trained on this gold" in line for line in lines) == (role == "gold")
    shutil.rmtree(tmp_path / "names")
    save(LookupTagger({"a": "PLACE"}), tmp_path / "names")
    with pytest.raises(ConfigError, match="this folder holds another run"):
        run("needle", tmp_path / "r", f'complete_from="{tmp_path / "names"}"')


@pytest.mark.parametrize("encoder", ["lstm", "run", "hf"])
def test_other_encoders(encoder: str, tmp_path: Path) -> None:
    name = encoder
    if encoder == "hf":
        from tests.pretraining.test_pretrain_huggingface import make_model

        name = f"hf:{make_model(tmp_path / 'bert')}"
    if encoder == "run":
        run("supervised", tmp_path / "first", weak=None)
        name = f"run:{tmp_path / 'first'}"
    labels = {span.label for doc in (*GOLD, *WEAK) for span in doc.spans}
    trained = run("needle", tmp_path / "r", f"encoder.name={name}")
    assert set(trained.tagger.labels) == labels
    assert stages(tmp_path / "r") == {"initial", "calibrate/1", "calibrate/2", "noisy/1", "finetune/1"}


@pytest.mark.parametrize("recipe", ["needle", "sst"])
def test_gold_without_entities_is_refused(recipe: str, tmp_path: Path) -> None:
    bare = [replace(doc, spans=()) for doc in GOLD]
    with pytest.raises(TrainingError, match="no labeled span in gold"):
        run(recipe, tmp_path / "r", gold=bare)


def test_wsl_learns_from_weak_alone_if_gold_has_no_entities(tmp_path: Path) -> None:
    assert run("wsl", tmp_path / "r", gold=[replace(doc, spans=()) for doc in GOLD]).tagger.labels


@pytest.mark.parametrize("recipe", ["needle", "sst", "wsl"])
def test_weak_without_entities_leaves_gold(recipe: str, tmp_path: Path) -> None:
    lines: list[str] = []
    bare = [replace(doc, spans=()) for doc in WEAK]
    assert run(recipe, tmp_path / "r", weak=bare, log=lines.append).tagger.labels
    assert any("only gold is left to train on" in line for line in lines) == (recipe == "needle")


@pytest.mark.parametrize("recipe", ["needle", "sst", "wsl"])
def test_one_gold_sentence(recipe: str, tmp_path: Path) -> None:
    lines: list[str] = []
    [one] = [doc for doc in GOLD if len(doc.spans) > 1][:1]
    trained = run(recipe, tmp_path / "r", gold=[one], log=lines.append)
    assert set(trained.tagger.labels) >= {span.label for span in one.spans}
    assert any("too little gold to calibrate" in line for line in lines) == (recipe == "needle")


def test_labels_that_gold_lacks(tmp_path: Path) -> None:
    lines: list[str] = []
    middle = len(WEAK) // 2  # without any common label, the inputs are refused
    strange = [replace(doc, spans=tuple(s._replace(label="STRANGE") for s in doc.spans)) for doc in WEAK[:middle]]
    strange += WEAK[middle:]
    assert "STRANGE" in run("needle", tmp_path / "r", weak=strange, log=lines.append).tagger.labels
    assert any("gold has no example of STRANGE" in line for line in lines)
    assert "STRANGE" not in run("sst", tmp_path / "s", weak=strange).tagger.labels, "its labels are not looked at"


def test_documents_without_words_and_long_ones(tmp_path: Path) -> None:
    long = Document("long", " ".join(doc.text for doc in DEMO.train[60:90]), complete=False)
    long = replace(long, spans=(Span(0, len(long.text.split()[0]), GOLD[0].spans[0].label),))
    odd = [Document("empty", "", complete=False), Document("space", " ", complete=False), long]
    run("needle", tmp_path / "r", weak=[*WEAK, *odd], gold=[*GOLD, Document("nothing", "", complete=True)])
    texts = [json.loads(line)["text"] for line in (tmp_path / "r" / "completed.jsonl").read_text().splitlines()]
    assert long.text in texts and "" not in texts


def test_sst_never_looks_at_weak_labels(tmp_path: Path) -> None:
    run("sst", tmp_path / "a")
    run("sst", tmp_path / "b", weak=[replace(doc, spans=()) for doc in WEAK])
    assert weights(tmp_path / "a") == weights(tmp_path / "b")
    run("sst", tmp_path / "whole", weak=[replace(doc, complete=True) for doc in WEAK])
    assert weights(tmp_path / "a") == weights(tmp_path / "whole"), "nor at whether they are marked complete"
    rejected = [replace(doc, rejected=(Span(0, len(doc.text), ""),), spans=()) for doc in WEAK]
    run("sst", tmp_path / "rejected", weak=rejected)
    assert weights(tmp_path / "a") == weights(tmp_path / "rejected")
    run("sst", tmp_path / "c", "rounds=2", "fresh=true")
    assert stages(tmp_path / "c") == {"initial", "train/1", "train/2"}


def test_the_forms_of_wsl_differ(tmp_path: Path) -> None:
    forms = {
        "plain": [],
        "weighted": ["weight=0.1"],
        "partial": ["unlabeled=unknown"],
        "weighted partial": ["unlabeled=unknown", "weight=0.1"],
        "token": ["head.kind=token"],
        "robust": ["head.kind=token", "loss=mse"],
    }
    found = {}
    for name, settings in forms.items():
        run("wsl", tmp_path / name, *settings)
        found[name] = weights(tmp_path / name)
    assert len(set(found.values())) == len(forms)
    with pytest.raises(ConfigError, match=r"loss: loss=mse needs head\.kind=token"):
        load_config(RECIPES["wsl"].Config, settings=["loss=mse"])


def test_wsl_is_needle_without_its_three_techniques(tmp_path: Path) -> None:
    """As in the paper, whose table has the same numbers in both rows."""
    run("wsl", tmp_path / "wsl", "noisy_epochs=1", dev=DEMO.dev[:5])
    run("needle", tmp_path / "n", "completion=false", "noise_aware=false", "finetune=false", dev=DEMO.dev[:5])
    assert weights(tmp_path / "wsl") == weights(tmp_path / "n")
    run("wsl", tmp_path / "encoder", "start=encoder")
    assert stages(tmp_path / "encoder") == {"train"}


def test_several_languages_in_two_stages_and_one_in_the_third(tmp_path: Path) -> None:
    """Stages I and II on the gold and weak labels of two languages, stage III on the gold of one."""
    chinese = [
        Document(f"zh{i}", f"玛拉住在哈尔登{i}号", spans=(Span(0, 2, "PERSON"),), complete=True) for i in range(8)
    ]
    labels = {span.label for doc in GOLD for span in doc.spans}
    assert "PERSON" in labels
    weak = [*WEAK, *(replace(doc, id=f"w{doc.id}", complete=False) for doc in chinese)]
    both = run("needle", tmp_path / "both", "finetune=false", "noise_aware=false", gold=[*GOLD, *chinese], weak=weak)
    config = load_config(RECIPES["finetune"].Config, settings=[*QUICK, f'start="{tmp_path / "both"}"'])
    tuned = train("finetune", Splits(gold=chinese), tmp_path / "tuned", config)
    assert tuned.tagger.labels == both.tagger.labels
    assert weights(tmp_path / "tuned") != weights(tmp_path / "both")


def test_the_weight_of_wsl_is_that_of_weak_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lacuner.recipes import wsl

    seen: list[Any] = []
    loss_step = wsl.loss_step
    monkeypatch.setattr(wsl, "loss_step", lambda data, *loss: seen.append(data) or loss_step(data, *loss))
    run("wsl", tmp_path / "r", "weight=0.1", "unlabeled=unknown")
    gold_data, data = seen
    assert gold_data.targets.weight is None, "the first model sees gold alone"
    gold = np.repeat(data.sentences.document < len(GOLD), data.features.lengths)
    assert (data.targets.weight.numpy()[gold] == 1).all()
    assert data.targets.weight.numpy()[~gold] == pytest.approx(0.1)
    assert data.targets.known.numpy()[gold].all() and 0 < data.targets.known.numpy()[~gold].mean() < 0.5


def dictionary_labels(demo: Demo, docs: list[Document]) -> list[Document]:
    source = gazetteer_source([Entry(surface, label) for surface, label in demo.dictionary])
    return list(annotate([replace(doc, spans=(), complete=False) for doc in docs], [source]))


@pytest.mark.integration
def test_it_helps(tmp_path: Path) -> None:
    """T9: with 40 gold sentences, and 400 that a dictionary has labeled, NEEDLE is above gold alone."""
    torch.set_num_threads(1)
    gold, weak = DEMO.train[:40], dictionary_labels(DEMO, DEMO.train[1000:1400])
    f1 = {}
    for recipe, more in (("supervised", ["head.kind=crf"]), ("needle", [])):
        config = load_config(RECIPES[recipe].Config, settings=more)
        splits = Splits(gold=gold, weak=weak if recipe == "needle" else None)
        tagger = train(recipe, splits, tmp_path / recipe, config).tagger
        f1[recipe] = score(DEMO.test[:300], tagger.predict(DEMO.test[:300])).exact.f1
    assert f1["needle"] > f1["supervised"] + 0.05, f1
