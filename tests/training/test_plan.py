"""The time left for a whole run: estimated from measured epochs, in the order and number of the planned stages."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lacuner.config import load_config
from lacuner.data import Splits
from lacuner.recipes import RECIPES
from lacuner.trainer.train import train
from lacuner.training.plan import EpochReport, Plan, read_report
from lacuner.training.run_folder import Run
from tests.demo_corpus import demo_corpus

GOLD, DEV = demo_corpus().train[:20], demo_corpus().dev[:10]
WEAK = [replace(doc, spans=doc.spans[:1], complete=False) for doc in GOLD]


def report(stage: str, done: int, epochs: int, seconds: float | None) -> EpochReport:
    return EpochReport(stage, "loss 0.5", done, epochs, seconds)


def test_stages_without_measured_epochs_are_like_the_others() -> None:
    plan = Plan({"a": 4, "b": 2, "c": 10})
    plan.record(report("a", 1, 4, 10))
    assert plan.describe("a") == "stage 1 of 3, 2:30 left in total"
    plan.record(report("b", 1, 2, 30))  # `a` was stopped early
    assert plan.seconds_left() == 30 + 10 * 20
    plan.record(report("c", 10, 10, 1))
    assert plan.describe("c") == "stage 3 of 3, 0:00 left in total"


def test_parallel_stages_share_the_time() -> None:
    plan = Plan({"m/0": 10, "m/1": 10, "m/2": 10, "train": 20})
    plan.run_in_parallel(["m/0", "m/1", "m/2"], 2)
    plan.record(report("m/1", 1, 10, 6))
    assert plan.seconds_left() == 54 + 60 + 120, "the third starts when the second has ended"
    plan.record(report("m/0", 1, 10, 6))
    plan.finish("m/0")
    plan.finish("m/1")
    assert plan.seconds_left() == 60 + 120
    plan.run_in_parallel([], 1)
    plan.record(report("train", 1, 20, 6))
    assert plan.seconds_left() == 19 * 6


def test_models_for_a_comparison_are_trained_after_this_one() -> None:
    plan = Plan({"a": 4, "b": 2})
    plan.repetitions = 3
    plan.record(report("a", 1, 4, 10))
    assert plan.describe("a") == "stage 1 of 2, 3:50 left in total"
    alone = Plan({"train": 2})
    alone.repetitions = 1
    alone.record(report("train", 1, 2, 10))
    assert alone.describe("train") == "0:30 left in total"


def test_a_recipe_within_a_recipe_puts_its_stages_first() -> None:
    plan = Plan({"finetune": 4})
    plan.add({"early": 2, "student": 2}, {})
    plan.record(report("early", 1, 2, 60))
    assert plan.describe("early") == "stage 1 of 3, 7:00 left in total"


def test_one_stage_and_none(tmp_path: Path) -> None:
    lines: list[str] = []
    run = Run(tmp_path, {"seed": 1}, lines.append)
    run.log_epoch(report("train", 1, 3, 110))
    run.log_epoch(report("train", 1, 3, None))
    run.plan({"train": 3})
    run.log_epoch(report("train", 2, 3, 50))
    assert lines == ["loss 0.5  3:40 left", "loss 0.5", "loss 0.5  0:50 left"]


def test_a_resumed_run_counts_what_is_trained(tmp_path: Path) -> None:
    lines: list[str] = []
    run = Run(tmp_path, {"seed": 1}, lines.append)
    run.stage("a").finish({}, {})
    run.stage("b").save({}, {"epoch": 6})
    (tmp_path / "stages" / "c").mkdir()
    (tmp_path / "stages" / "c" / "state.json").write_text("[]")
    run.plan({"a": 10, "b": 10, "c": 10})
    run.log_epoch(report("b", 7, 10, 2))
    assert lines == ["loss 0.5  stage 2 of 3, 0:26 left in total"]


def test_other_lines_of_a_child_process_are_no_reports() -> None:
    for line in ("", "{}", "[1]", "3", '{"stage": "a"}', "a: resuming in epoch 2, batch 1"):
        assert read_report(line) is None


SETTINGS = {
    "bond": [],
    "cupul": ["voters=2"],
    "eer": [],
    "mproto": [],
    "ensemble": ["models=2"],
    "needle": ["noise_aware=true", "parts=2", "rounds=2"],
    "negative_sampling": ["try_rate=[0.2,0.5]", "sampler=weighted", "ablation.oracle=heldout"],
    "nrces": ["try_w=[1,2]"],
    "pu": [],
    "roster": ["models=2"],
    "sst": ["rounds=2"],
    "then_gold": [],
    "two_step": ["search=true"],
    "weighted_partial": [],
    "wsl": [],
}


@pytest.mark.integration
@pytest.mark.parametrize("recipe", RECIPES)
def test_recipes_plan_what_they_train(recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if recipe in ("dictionary", "finetune"):
        return  # no training, and one stage
    record, lines = Plan.record, list[str]()

    def check(self: Plan, report: EpochReport) -> None:
        assert self._stages[report.stage].epochs == report.epochs
        record(self, report)

    monkeypatch.setattr(Plan, "record", check)
    torch.set_num_threads(1)
    settings = ["train.epochs=1", "train.budget=256", *SETTINGS.get(recipe, [])]
    config = load_config(RECIPES[recipe].Config, settings=settings)
    train(recipe, Splits(weak=WEAK, gold=GOLD, dev=DEV), tmp_path / "run", config, log=lines.append)
    lines = [line for line in lines if "words/s" in line]
    assert lines[-1].endswith("0:00 left in total" if recipe in SETTINGS else "  0:00 left")
    if recipe in SETTINGS:
        positions = [re.findall(r"  stage (\d+) of (\d+), ", line)[0] for line in lines]
        numbers = [int(number) for number, _ in positions]
        assert numbers == sorted(numbers) and {int(total) for _, total in positions} == {numbers[-1]}
