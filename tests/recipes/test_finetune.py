"""Fine-tuning the model of another run: any head, the same labels, and what identifies the run."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from lacuner.config import load_config
from lacuner.data import Document, Splits
from lacuner.errors import ConfigError, ModelFileError, TrainingError
from lacuner.evaluate import score
from lacuner.models.lookup import LookupTagger
from lacuner.models.storage import load, save
from lacuner.recipes import RECIPES
from lacuner.trainer.train import TrainingResult, train
from tests.demo_corpus import demo_corpus
from tests.recipes.check_recipe import start, weights

DEMO = demo_corpus()
GOLD = DEMO.train[:30]


def first(folder: Path, recipe: str, *settings: str, seed: int = 1, docs: list[Document] = GOLD) -> Path:
    torch.set_num_threads(1)
    config = load_config(RECIPES[recipe].Config, settings=["train.epochs=2", "train.budget=256", *settings])
    splits = Splits(weak=[replace(doc, spans=doc.spans[:1], complete=False) for doc in docs])
    train(recipe, splits, folder, config, seed)
    return folder


def finetune(
    folder: Path, begin: Path | None, *settings: str, gold: list[Document] = GOLD, **data: Any
) -> TrainingResult:
    torch.set_num_threads(1)
    where = [] if begin is None else [f'start="{begin}"']
    config = load_config(RECIPES["finetune"].Config, settings=["train.epochs=2", "train.budget=256", *where, *settings])
    return train("finetune", Splits(gold=gold, **data), folder, config)


@pytest.mark.parametrize(
    ("recipe", "settings"),
    [
        ("trust", ["head.kind=token"]),
        ("trust", ["head.kind=crf"]),
        ("trust", ["head.kind=span"]),
        ("negative_sampling", ["head.threshold=0.4"]),
        ("trust", ["head.kind=entity_type"]),
        ("two_step", ["explore=1"]),
    ],
)
def test_any_head_can_be_fine_tuned(recipe: str, settings: list[str], tmp_path: Path) -> None:
    begin = first(tmp_path / "first", recipe, *settings)
    trained = finetune(tmp_path / "r", begin, "rate=1.0", dev=DEMO.dev[:10])
    before, after = load(begin).model, trained.tagger.model  # type: ignore[union-attr]
    old, new = before.head.config(), after.head.config()
    if recipe == "negative_sampling":
        assert old.pop("threshold") == 0.4 and 0 < new.pop("threshold") < 1, "chosen on dev again"
    assert old == new and before.encoder.config() == after.encoder.config()
    assert weights(begin) != weights(tmp_path / "r")
    assert any((a != b).any() for a, b in zip(before.parameters(), after.parameters(), strict=True))


@pytest.mark.integration
def test_training_continues_from_the_weights_of_the_other_run(tmp_path: Path) -> None:
    """Hardly any rate, hardly any change; and a usual one makes it better."""
    begin = first(tmp_path / "first", "trust", "head.kind=crf", "train.epochs=6", docs=DEMO.train[:150])
    still = finetune(tmp_path / "still", begin, "rate=1e-6")
    for a, b in zip(load(begin).model.parameters(), still.tagger.model.parameters(), strict=True):  # type: ignore[union-attr]
        torch.testing.assert_close(a, b, atol=1e-5, rtol=0)
    better = finetune(tmp_path / "better", begin, "rate=1.0", "train.epochs=8", gold=DEMO.train[:150])
    test = DEMO.test[:200]
    f1 = [score(test, tagger.predict(test)).exact.f1 for tagger in (load(begin), better.tagger)]
    assert f1[1] > f1[0] + 0.05, f1


def test_labels_that_the_run_does_not_know_are_an_error(tmp_path: Path) -> None:
    begin = start(tmp_path / "start")
    gold = [replace(doc, spans=tuple(s._replace(label="NEW") for s in doc.spans)) for doc in GOLD]
    with pytest.raises(
        TrainingError, match=r"gold has the label 'NEW', which this model does not know: it knows ORGAN"
    ):
        finetune(tmp_path / "r", begin, gold=gold)


def test_runs_that_cannot_be_fine_tuned(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="recipe `finetune` needs --from RUN"):
        finetune(tmp_path / "a", None)
    with pytest.raises(ConfigError, match="cannot read the file of setting start"):
        finetune(tmp_path / "b", tmp_path / "nowhere")
    (tmp_path / "bare").mkdir()
    with pytest.raises(ModelFileError, match="contains no model"):
        finetune(tmp_path / "c", tmp_path / "bare")
    save(LookupTagger({"Rome": "PLACE"}), tmp_path / "names")
    with pytest.raises(ConfigError, match="this run has no weights: it was trained with the `dictionary` recipe"):
        finetune(tmp_path / "d", tmp_path / "names")


def test_gold_without_entities(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="no labeled span in gold"):
        finetune(tmp_path / "r", start(tmp_path / "start"), gold=[replace(doc, spans=()) for doc in GOLD])


def test_another_model_in_the_same_place_is_another_run(tmp_path: Path) -> None:
    begin = first(tmp_path / "first", "trust", "head.kind=token")
    finetune(tmp_path / "r", begin)
    shutil.rmtree(begin)
    first(tmp_path / "first", "trust", "head.kind=token", seed=2)
    with pytest.raises(ConfigError, match=r"this folder holds another run \(contents\.start is '"):
        finetune(tmp_path / "r", begin)


def test_weak_labels_first_then_gold(tmp_path: Path) -> None:
    """The same as two runs: the recipe on weak labels, then `finetune`."""
    weak = [replace(doc, spans=doc.spans[:1], complete=False) for doc in GOLD]
    settings = ["train.epochs=2", "train.budget=256", "first=trust"]
    train(
        "then_gold",
        Splits(weak=weak, gold=GOLD),
        tmp_path / "one",
        load_config(RECIPES["then_gold"].Config, settings=settings),
    )
    assert {path.name for path in (tmp_path / "one" / "stages").iterdir()} == {"train", "finetune"}
    # fine-tuning draws from seeds of its stage, which has another name there: what it began with is the same
    first_stage = next((tmp_path / "one" / "stages" / "train").glob("*.safetensors"))
    alone = next((first(tmp_path / "two", "trust") / "stages" / "train").glob("*.safetensors"))
    assert first_stage.read_bytes() == alone.read_bytes()
    assert weights(tmp_path / "one") != weights(tmp_path / "two")


def test_gold_has_no_label_that_the_weak_documents_lack(tmp_path: Path) -> None:
    new = [replace(doc, spans=tuple(span._replace(label="NEW") for span in doc.spans)) for doc in GOLD[1:]]
    new.append(next(doc for doc in GOLD if doc.spans))  # without any common label, training stops earlier
    config = load_config(RECIPES["then_gold"].Config, settings=["train.epochs=1", "train.budget=256", "first=trust"])
    with pytest.raises(TrainingError, match="gold has the label 'NEW', which this model does not know"):
        train("then_gold", Splits(weak=[replace(doc, complete=False) for doc in GOLD], gold=new), tmp_path, config)
