from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lacuner.config import load_config
from lacuner.demo import build
from lacuner.errors import ConfigError, ModelFileError, TrainingError
from lacuner.recipes import RECIPES
from lacuner.recipes.parts import Splits
from lacuner.recipes.train import Trained, train
from lacuner.training import loop
from lacuner.training.batches import epoch_batches
from lacuner.training.optimizer import set_rate
from lacuner.training.run import Run

DEMO = build()
GOLD, DEV = DEMO.train[:60], DEMO.dev[:20]


def run(folder: Path, *settings: str, recipe: str = "supervised", seed: int = 1, dev: bool = True) -> Trained:
    torch.set_num_threads(1)
    config = load_config(RECIPES[recipe].Config, settings=["train.epochs=2", "train.budget=256", *settings])
    return train(recipe, Splits(gold=GOLD, dev=DEV if dev else None), folder, config, seed)


def test_the_run_folder_says_what_it_is(tmp_path: Path) -> None:
    run(tmp_path / "r")
    about = json.loads((tmp_path / "r" / "run.json").read_text())
    assert about["identity"]["recipe"] == "supervised" and about["identity"]["seed"] == 1
    assert about["identity"]["config"]["train"]["epochs"] == 2
    assert about["identity"]["data"]["gold"]["documents"] == 60
    assert "torch" in about["versions"]
    rows = [json.loads(line) for line in (tmp_path / "r" / "metrics.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in rows] == [0, 1]
    assert all(row["known"] == 1.0 and "f1" in row["dev"] for row in rows)
    assert rows[1]["loss"] < rows[0]["loss"]


@pytest.mark.parametrize(
    ("change", "words"),
    [({"seed": 2}, "seed is 1 there and 2 here"), ({"settings": ["train.epochs=3"]}, "config.train.epochs is 2 there")],
)
def test_another_run_is_not_overwritten(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    run(tmp_path / "r")
    with pytest.raises(ConfigError, match=words):
        run(tmp_path / "r", *change.pop("settings", []), **change)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    with pytest.raises(ConfigError, match="not empty, and not a run"):
        run(tmp_path / "other")


def test_two_processes_do_not_share_a_folder(tmp_path: Path) -> None:
    first = Run(tmp_path / "r", {"seed": 1})
    with first.locked(), pytest.raises(ConfigError, match="another process"), Run(tmp_path / "r", {"seed": 1}).locked():
        pass


def test_a_damaged_state_is_not_loaded(tmp_path: Path) -> None:
    made = Run(tmp_path / "r", {"seed": 1})
    with made.stage("a/b") as stage:
        stage.save({"x": torch.arange(3)}, {"epoch": 4})
    with made.stage("a/b") as stage:
        assert stage.state["epoch"] == 4 and not stage.finished and stage.tensors["x"].tolist() == [0, 1, 2]
    [file] = stage.folder.glob("*.safetensors")
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with pytest.raises(ModelFileError, match="damaged"), made.stage("a/b"):
        pass


def test_without_dev_the_last_epoch_is_kept_and_with_dev_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = run(tmp_path / "last", dev=False)
    again = run(tmp_path / "again", dev=False)
    a, b = (list(t.tagger.model.state_dict().values()) for t in (last, again))  # type: ignore[union-attr]
    assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))
    weights: list[torch.Tensor] = []
    judge = loop._Trainer._judge

    def spy(self: Any, at: Any, row: Any, scores: Any) -> None:
        good = replace(scores, exact=replace(scores.exact, correct=5 - at.epoch, predicted=10, gold=10))
        weights.append(next(self.model.parameters()).detach().clone())
        judge(self, at, row, good)

    monkeypatch.setattr(loop._Trainer, "_judge", spy)
    best = run(tmp_path / "best", "train.epochs=4", "train.patience=2")
    assert len(weights) == 3, "it stops after two epochs without a better one"
    assert torch.equal(next(best.tagger.model.parameters()), weights[0])  # type: ignore[union-attr]


def test_when_memory_runs_out_the_batch_is_halved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lacuner.recipes import parts

    believe = parts.believe
    sizes: list[int] = []

    def tight(data: Any, *args: Any) -> Any:
        step = believe(data, *args)

        def stepped(indices: Any) -> Any:
            if len(indices) > 4:
                raise torch.OutOfMemoryError("CUDA out of memory")
            sizes.append(len(indices))
            return step(indices)

        return stepped

    monkeypatch.setattr(parts, "believe", tight)
    halved = run(tmp_path / "halved", "head.dropout=0")
    assert sizes and max(sizes) <= 4
    rows = [json.loads(line) for line in (halved.run.folder / "metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["loss"] < rows[0]["loss"]


def test_a_loss_that_is_not_a_number_ends_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="not a number in epoch 1: try a lower learning rate"):
        run(
            tmp_path / "r",
            "train.learning_rate=1e30",
            "train.head_learning_rate=1e30",
            "train.clip=1e30",
            "train.warmup=0",
        )


def test_batches_hold_everybody_once_and_depend_on_the_seed_alone() -> None:
    costs = np.random.default_rng(0).integers(0, 40, 500)
    one, same, other = (epoch_batches(costs, 200, seed) for seed in (1, 1, 2))
    assert sorted(np.concatenate(one).tolist()) == np.flatnonzero(costs).tolist()
    assert all(np.array_equal(a, b) for a, b in zip(one, same, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(one, other, strict=False))
    padded = sum(len(batch) * costs[batch].max() for batch in one)
    assert costs.sum() / padded > 0.85, "little padding"


def test_the_learning_rate_rises_and_falls() -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    optimizer.param_groups[0]["rate"] = 2.0
    seen = []
    for progress in (0.05, 0.1, 0.55, 1.0):
        set_rate(optimizer, progress, 0.1)
        seen.append(optimizer.param_groups[0]["lr"])
    assert seen == pytest.approx([1.0, 2.0, 1.0, 0.0])


def test_settings_keep_the_recipe_s_own_defaults() -> None:
    config = load_config(RECIPES["partial"].Config, settings=["head.dropout=0.1"])
    assert (config.head.kind, config.head.dropout) == ("crf", 0.1)


def test_the_same_call_again_loads_the_run(tmp_path: Path) -> None:
    from lacuner.api import train as train_again

    docs = [replace(doc, words=None, complete=None) for doc in GOLD]
    for _ in range(2):  # the first call splits words, and reads gold as complete
        tagger = train_again("supervised", tmp_path / "r", gold=docs, settings=["train.epochs=1", "train.budget=256"])
    assert tagger.labels
    rows = [json.loads(line) for line in (tmp_path / "r" / "metrics.jsonl").read_text().splitlines()]
    assert rows[0]["known"] == 1.0, "gold that does not say otherwise is complete"
    settings = json.loads((tmp_path / "r" / "stages" / "train" / "settings.json").read_text())
    assert settings["learning_rate"] == 0.002


def test_a_file_is_no_place_for_a_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="a file, not a folder"):
        run(tmp_path / "file")


def test_a_label_that_fits_no_words_is_unsure_never_negative() -> None:
    from lacuner.models.sentences import cut_sentences
    from lacuner.models.tiny import TinyConfig, TinyEncoder
    from lacuner.types import Document, Lost, Span

    lost = Lost()
    doc = Document("1", "Mara left Halden", spans=(Span(0, 3, "PER"),), complete=True)
    [known] = cut_sentences([doc], TinyEncoder(TinyConfig()), lost).annotations
    assert known.spans == [] and known.unsure == [(0, 1, "PER")]
    assert lost.counts == {"span does not fit the words": 1}


def test_names_learned_by_heart_are_found_in_other_white_space(tmp_path: Path) -> None:
    from lacuner.models.lookup import LookupTagger, load_lookup

    LookupTagger({"New York": "LOC", "Caf\u00e9": "ORG"}).save(tmp_path)
    found = load_lookup(tmp_path)("In New\n York the Cafe\u0301 was shut")
    assert [span.label for span in found.spans] == ["LOC", "ORG"]
