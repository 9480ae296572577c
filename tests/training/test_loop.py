from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lacuner.config import load_config
from lacuner.data import Lost, Splits
from lacuner.errors import ConfigError, ModelFileError, TrainingError
from lacuner.evaluate import Count
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.models.heads import build_head
from lacuner.models.model import Model
from lacuner.recipes import RECIPES
from lacuner.trainer.train import TrainingResult, train
from lacuner.training import loop
from lacuner.training.batches import epoch_batches
from lacuner.training.config import TrainConfig
from lacuner.training.dataset import training_set
from lacuner.training.optimizer import Optimizers, set_rate
from lacuner.training.run_folder import Run, Stage
from lacuner.training.steps import StepLoss, loss_step
from tests.demo_corpus import demo_corpus

DEMO = demo_corpus()
GOLD, DEV = DEMO.train[:60], DEMO.dev[:20]


def run(folder: Path, *settings: str, recipe: str = "supervised", seed: int = 1, dev: bool = True) -> TrainingResult:
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
    with pytest.raises(ConfigError, match="not empty and not a run"):
        run(tmp_path / "other")


def test_two_processes_do_not_share_a_folder(tmp_path: Path) -> None:
    first = Run(tmp_path / "r", {"seed": 1})
    with first.locked(), pytest.raises(ConfigError, match="another process"), Run(tmp_path / "r", {"seed": 1}).locked():
        pass


def test_a_damaged_state_is_not_loaded(tmp_path: Path) -> None:
    made = Run(tmp_path / "r", {"seed": 1})
    made.stage("a/b").save({"x": torch.arange(3)}, {"epoch": 4})
    stage = made.stage("a/b")
    assert stage.state["epoch"] == 4 and not stage.finished and stage.tensors["x"].tolist() == [0, 1, 2]
    [file] = stage.folder.glob("*.safetensors")
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with pytest.raises(ModelFileError, match="damaged"):
        made.stage("a/b")


@pytest.mark.integration
def test_without_dev_the_last_epoch_is_kept_and_with_dev_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = run(tmp_path / "last", dev=False)
    again = run(tmp_path / "again", dev=False)
    a, b = (list(t.tagger.model.state_dict().values()) for t in (last, again))  # type: ignore[union-attr]
    assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))
    weights: list[torch.Tensor] = []
    keep_best = loop._Trainer.keep_best

    def spy(self: Any, progress: Any, row: Any, scores: Any) -> None:
        good = replace(scores, correct=5 - progress.epoch, predicted=10, gold=10)
        weights.append(next(self.model.parameters()).detach().clone())
        keep_best(self, progress, row, good)

    monkeypatch.setattr(loop._Trainer, "keep_best", spy)
    best = run(tmp_path / "best", "train.epochs=4", "train.patience=2")
    assert len(weights) == 3, "it stops after two epochs without a better one"
    assert torch.equal(next(best.tagger.model.parameters()), weights[0])  # type: ignore[union-attr]


@pytest.mark.integration
@pytest.mark.parametrize("keep", ["best", "best or start", "last"])
def test_the_initial_weights_may_be_kept_as_the_best(keep: loop.Keep, tmp_path: Path) -> None:
    encoder = TinyEncoder(TinyConfig(width=32, layers=1, rows=512))
    labels = sorted({span.label for doc in GOLD for span in doc.spans})
    model = Model(encoder, build_head({"kind": "token", "labels": labels}, encoder.width))
    fresh = next(model.parameters()).detach().clone()
    data = training_set(model, GOLD[:10], Lost())
    step, correct = loss_step(data), iter(range(9, 0, -1))

    def worse() -> Count:
        return Count(next(correct), 10, 10)

    config = TrainConfig(epochs=5, patience=2, learning_rate=0.1, head_learning_rate=0.1, budget=512, device="cpu")
    stage = Stage(Run(tmp_path, {"seed": 1}), "train")
    rows = loop.fit(model, data.features, lambda _: step, config, stage, worse, keep)
    assert torch.equal(next(model.parameters()), fresh) == (keep == "best or start")
    epochs = {"best": 3, "best or start": 2, "last": config.epochs}
    assert len(rows) == epochs[keep], "patience counts from the best, wherever that was"
    assert all("dev" in row for row in rows)


def test_patience_may_begin_after_some_epochs() -> None:
    config = TrainConfig(epochs=9, patience=2, patience_after=4)
    stops = [loop._out_of_patience(loop._Progress(epoch=done, best=0.5, best_epoch=1), config) for done in range(2, 9)]
    assert stops.index(True) + 2 == 6, "two epochs after the first four"
    late = loop._Progress(epoch=7, best=0.5, best_epoch=6)
    assert not loop._out_of_patience(late, config) and "patience_after" not in TrainConfig().model_dump()


@pytest.mark.parametrize("kind", ["token", "span", "crf"])
def test_when_memory_runs_out_the_batch_is_halved_and_the_step_is_the_same(kind: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    encoder = TinyEncoder(TinyConfig(width=32, layers=1, rows=512, dropout=0, feature_dropout=0, word_dropout=0))
    labels = sorted({span.label for doc in GOLD for span in doc.spans})
    model = Model(encoder, build_head({"kind": kind, "labels": labels, "dropout": 0}, encoder.width))
    fresh = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    # a third of the documents is incomplete, so that halves have different numbers of known words
    docs = [doc if i % 3 else replace(doc, complete=False, spans=()) for i, doc in enumerate(GOLD[:13])]
    data = training_set(model, docs, Lost())
    step = loss_step(data)
    config = TrainConfig(learning_rate=0.1, head_learning_rate=0.1, budget=512, device="cpu")
    results = []
    for most in (13, 6, 1):
        sizes: list[int] = []

        def tight(indices: np.ndarray, most: int = most, sizes: list[int] = sizes) -> StepLoss:
            if len(indices) > most:
                raise torch.OutOfMemoryError("CUDA out of memory")
            sizes.append(len(indices))
            return step(indices)

        model.load_state_dict(fresh)
        trainer = loop._Trainer(model, data.features, config, Stage(Run(tmp_path, {"seed": 1}), f"most {most}"))
        sums = trainer._update(tight, np.arange(13), 0)
        gradients = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
        weights = [parameter.detach().clone() for parameter in model.parameters()]
        results.append((sums, gradients, weights))
        assert sizes[-1] <= most
    assert sum(gradient.abs().sum() for gradient in results[0][1]) > 0.1
    for sums, gradients, weights in results[1:]:
        assert sums == pytest.approx(results[0][0], rel=1e-5)
        assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(gradients, results[0][1], strict=True))
        # Adam divides by the gradient's size, so that rounding shows where it is almost zero
        moved = [(a - b).abs().mean() for a, b in zip(weights, results[0][2], strict=True)]
        assert max(moved) < 1e-4 < (results[0][2][0] - fresh["encoder.table"]).abs().mean()


def test_a_sentence_that_fits_no_memory_ends_with_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> Any:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")

    monkeypatch.setattr("lacuner.techniques.label_masking.loss_step", lambda *_: full)
    with pytest.raises(TrainingError, match="not enough memory for a single sentence"):
        run(tmp_path / "r")


def test_a_loss_that_is_not_a_number_ends_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"not a number in epoch 1: try a lower train\.learning_rate"):
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
        set_rate(Optimizers([optimizer]), progress, 0.1)
        seen.append(optimizer.param_groups[0]["lr"])
    assert seen == pytest.approx([1.0, 2.0, 1.0, 0.0])


def test_settings_keep_the_recipe_s_own_defaults() -> None:
    config = load_config(RECIPES["partial"].Config, settings=["head.dropout=0.1"])
    assert (config.head.kind, config.head.dropout) == ("crf", 0.1)


def test_the_same_call_again_loads_the_run(tmp_path: Path) -> None:
    from lacuner.api import train as train_again

    docs = [replace(doc, words=None, complete=None) for doc in GOLD]
    for _ in range(2):  # the first call splits words, and reads gold as complete
        tagger = train_again(
            "supervised", out=tmp_path / "r", gold=docs, settings=["train.epochs=1", "train.budget=256"]
        )
    assert tagger.labels
    rows = [json.loads(line) for line in (tmp_path / "r" / "metrics.jsonl").read_text().splitlines()]
    assert rows[0]["known"] == 1.0, "gold that does not say otherwise is complete"
    settings = json.loads((tmp_path / "r" / "stages" / "train" / "settings.json").read_text())
    assert settings["learning_rate"] == 0.002


def test_a_file_is_no_place_for_a_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="this is a file; --out needs a folder"):
        run(tmp_path / "file")


def test_a_long_epoch_reports_that_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def messages(name: str) -> list[str]:
        lines: list[str] = []
        config = load_config(RECIPES["supervised"].Config, settings=["train.epochs=1", "train.budget=256"])
        train("supervised", Splits(gold=GOLD), tmp_path / name, config, log=lines.append)
        return [line for line in lines if "left in this epoch" in line]

    assert not messages("short")
    monkeypatch.setattr(loop, "REPORT_SECONDS", -1.0)
    reports = messages("long")
    shares = [int(line.removeprefix("train: epoch 1/1  ").partition(" %")[0]) for line in reports]
    assert len(shares) > 2 and shares == sorted(shares) and shares[0] > 0 and shares[-1] < 100
    first, second = ((tmp_path / name / "metrics.jsonl").read_bytes() for name in ("short", "long"))
    assert first == second


def test_a_label_that_fits_no_words_is_unsure_never_negative() -> None:
    from lacuner.data import Document, Lost, Span
    from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
    from lacuner.models.windows import cut_sentences

    lost = Lost()
    doc = Document("1", "Mara left Halden", spans=(Span(0, 3, "PER"),), complete=True)
    [known] = cut_sentences([doc], TinyEncoder(TinyConfig()), lost).annotations
    assert known.spans == [] and known.unsure == [(0, 1, "PER")]
    assert lost.counts == {"span does not fit the words": 1}


def test_names_learned_by_heart_are_found_in_other_white_space(tmp_path: Path) -> None:
    from lacuner.models.lookup import LookupTagger
    from lacuner.models.storage import load, save

    save(LookupTagger({"New York": "LOC", "Caf\u00e9": "ORG"}), tmp_path)
    found = load(tmp_path)("In New\n York the Cafe\u0301 was shut")
    assert [span.label for span in found.spans] == ["LOC", "ORG"]


def test_a_small_model_trains_on_one_thread_and_leaves_the_others_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, seen = torch.get_num_threads(), set()
    update = loop._Trainer._update

    def spy(self: Any, *given: Any) -> Any:
        seen.add(torch.get_num_threads())
        return update(self, *given)

    monkeypatch.setattr(loop._Trainer, "_update", spy)
    torch.set_num_threads(2)
    try:
        config = load_config(RECIPES["supervised"].Config, settings=["train.epochs=1"])
        train("supervised", Splits(gold=GOLD), tmp_path, config)
        assert seen == {1} and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
