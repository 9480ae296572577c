"""Train in one of several processes that train together, or alone.

Usage: python -m tests.training.together FOLDER WHAT [RANK:STEP]
With RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in the environment, this is one of several processes. WHAT is
`dropout` or `pretrain_dropout` (training or pre-training with dropout and a checkpoint after every step), or `all`
(both, and `CASES` and pre-training without dropout).
RANK:STEP kills process RANK before that step. Prints a JSON object: the hash of the weights of each run.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import torch

from lacuner.config import load_config
from lacuner.data import Splits
from lacuner.errors import LacunerError
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.noise import Noise, corrupt
from lacuner.pretraining.pretrain import PretrainConfig, pretrain
from lacuner.recipes import RECIPES
from lacuner.trainer.streaming import keep_or_store
from lacuner.trainer.train import train
from lacuner.training import stage
from lacuner.training.data_parallel import process_rank
from lacuner.training.distributed import join_processes
from lacuner.training.run_folder import quiet
from tests.demo_corpus import demo_corpus
from tests.recipes.check_recipe import DOUBTING
from tests.training.kill import arm

DEMO = demo_corpus()
GOLD, DEV = DEMO.train[:40], DEMO.dev[:20]
WEAK = list(corrupt(GOLD, Noise(drop=0.3)))
# budget=40: some batches are one sentence, so one process has nothing to do
CASES: dict[str, list[str]] = {
    "trust": ["train.budget=40"],
    "partial": [],
    "negative_sampling": ["sampler=weighted"],
    "nrces": [],
    "needle": DOUBTING,
    "roster": ["models=2"],
    "pu": [],
}
STREAMED = ("negative_sampling", "nrces")
"""Recipes whose documents are stored on disk, by the first process."""


def train_case(recipe: str, settings: list[str], folder: Path) -> torch.nn.Module:
    needs = RECIPES[recipe].NEEDS
    weak = keep_or_store(lambda: WEAK, folder.parent / "prepared", [recipe], recipe in STREAMED, quiet)
    splits = Splits(weak=weak, gold=GOLD if "gold" in needs else None, dev=DEV)
    common = ["train.epochs=2", "train.budget=256", "encoder.name=tiny", *settings]
    return train(recipe, splits, folder, load_config(RECIPES[recipe].Config, settings=common)).tagger.model


def train_equal(folder: Path) -> dict[str, torch.nn.Module]:
    """Train all cases; the large table has sparse gradients."""
    models = {}
    for number, (recipe, settings) in enumerate(CASES.items()):
        sizes: dict[str, Any] = {"rows": 65536 if number % 2 else 4096, "feature": 16, "width": 32, "layers": 1}
        encoder = TinyConfig(**sizes, dropout=0, feature_dropout=0, word_dropout=0)
        stage.open_encoder = lambda *_, encoder=encoder: TinyEncoder(encoder)  # type: ignore[assignment]
        models[recipe] = train_case(recipe, ["head.dropout=0", *settings], folder / recipe)
    return models | {"pretrain": pretrain_case(["dropout=0"], folder / "pretrain")}


def pretrain_case(settings: list[str], folder: Path) -> torch.nn.Module:
    common = ["train.epochs=2", "train.budget=256", "held_out=0.2", "encoder.name=tiny"]
    return pretrain(DEMO.train[:60], folder, load_config(PretrainConfig, settings=[*common, *settings])).model


def main() -> None:
    folder, what, *death = sys.argv[1:]
    torch.set_num_threads(1)
    with join_processes():
        if death and process_rank() == int(death[0].partition(":")[0]):
            arm(f"step:{death[0].partition(':')[2]}")
        each_step = "train.checkpoint_seconds=0"
        models: dict[str, torch.nn.Module] = {}
        if what in ("dropout", "all"):
            settings = [each_step, "sampler=weighted"]
            models["dropout"] = train_case("negative_sampling", settings, Path(folder) / "dropout")
        if what in ("pretrain_dropout", "all"):
            models["pretrain_dropout"] = pretrain_case([each_step, "dropout=0.2"], Path(folder) / "pretrain_dropout")
        if what == "all":
            models |= train_equal(Path(folder))
        weights = {name: [tensor.numpy().tobytes() for tensor in m.state_dict().values()] for name, m in models.items()}
        hashes = {name: hashlib.sha256(b"".join(parts)).hexdigest() for name, parts in weights.items()}
        sys.stdout.write(json.dumps(hashes))


if __name__ == "__main__":
    try:
        main()
    except LacunerError as error:
        sys.exit(f"{type(error).__name__}: {error}")
