"""Train every recipe on forty demo documents and hash its final weights and predictions.

Usage: python -m tests.golden.write [NAME ...]  (rewrites tests/golden/hashes.json, or adds the named cases to it)

A refactoring must leave every hash as it was. Floating-point sums differ between CPU families and library versions, so
the file also records the environment, and the test is skipped anywhere else.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from lacuner.config import load_config
from lacuner.data import Splits
from lacuner.noise import Noise, corrupt
from lacuner.recipes import RECIPES
from lacuner.trainer.train import train
from tests.demo_corpus import demo_corpus

HASHES = Path(__file__).parent / "hashes.json"
SETTINGS = ["train.epochs=2"]
TINY = "encoder.name=tiny"
# beside the defaults: the heads, encoders and stages that the defaults do not reach
VARIANTS: dict[str, tuple[str, list[str]]] = {
    "trust+token": ("trust", ["head.kind=token"]),
    "trust+crf": ("trust", ["head.kind=crf"]),
    "trust+entity_type": ("trust", ["head.kind=entity_type"]),
    "trust+masking": (
        "trust",
        ["head.kind=token", "masking.labels=missing", "masking.warmup=0", "masking.refit=[1]"],
    ),
    "trust+lstm": ("trust", ["encoder.name=lstm"]),
    "negative_sampling+weighted": ("negative_sampling", ["sampler=weighted"]),
    "negative_sampling+try_rate": ("negative_sampling", ["try_rate=[0.3, 0.5]"]),
    "two_step+crf": ("two_step", ["head.kind=crf"]),
    "two_step+search": ("two_step", ["search=true"]),
    "roster+words": ("roster", ["head.kind=entity_type", "models=2"]),
    "needle+noise_aware": ("needle", ["completion=true", "noise_aware=true", "rounds=2"]),
    "sst+fresh": ("sst", ["fresh=true"]),
    "wsl+mse": ("wsl", ["head.kind=token", "loss=mse", "weight=0.5"]),
    "wsl+encoder": ("wsl", ["start=encoder"]),
    "then_gold+negative_sampling": ("then_gold", ["first=negative_sampling"]),
    "weighted_partial+hard": ("weighted_partial", ["weights=hard"]),
    "bond+hard": ("bond", ["labels=hard"]),
}


def environment() -> dict[str, str]:
    """What the last bits of a sum depend on."""
    cpu = next((line for line in _cpu_lines() if line.startswith("model name")), platform.processor())
    return {
        "cpu": cpu.partition(":")[2].strip() or cpu,
        "capability": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__.partition("+")[0],
        "numpy": np.__version__,
    }


def _cpu_lines() -> list[str]:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def cases() -> dict[str, tuple[str, list[str], bool]]:
    """Name -> recipe, settings, whether it has dev data."""
    found: dict[str, tuple[str, list[str], bool]] = {}
    for recipe in RECIPES:
        found[recipe] = (recipe, [], False)
        found[f"{recipe}+dev"] = (recipe, [], True)
    for name, (recipe, settings) in VARIANTS.items():
        found[name] = (recipe, settings, True)
    return found


def golden(recipe: str, settings: list[str], with_dev: bool, folder: Path) -> dict[str, str]:
    """The hashes of one training in an empty folder."""
    torch.set_num_threads(1)
    demo = demo_corpus()
    gold, dev = demo.train[:40], demo.dev[:20]
    needs = RECIPES[recipe].NEEDS
    given: dict[str, Any] = {"weak": list(corrupt(gold, Noise(drop=0.5)))} if "weak" in needs else {}
    if "gold" in needs:  # the oracle compares the very same documents; other recipes have a little gold of their own
        given["gold"] = gold if recipe == "oracle" else demo.train[40:60]
    if with_dev:
        given["dev"] = dev
    if recipe == "finetune":
        start = _config("trust", [*SETTINGS, TINY])
        train("trust", Splits(weak=list(corrupt(gold, Noise(drop=0.5)))), folder / "start", start)
    own = [*SETTINGS, TINY] if "encoder" in RECIPES[recipe].Config.model_fields else SETTINGS
    settings = [*([] if recipe == "dictionary" else own), *settings]
    if recipe == "finetune":
        settings.append(f'start="{folder / "start"}"')
    tagger = train(recipe, Splits(**given), folder / "run", _config(recipe, settings)).tagger
    model = folder / "run" / "model"
    files = [model / name for name in ("model.safetensors", "names.json") if (model / name).exists()]
    rows = [[list(span[:4]) for span in doc.spans] for doc in tagger.predict(demo.test[:40])]
    return {
        "weights": hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest(),
        "predictions": hashlib.sha256(json.dumps(rows).encode()).hexdigest(),
    }


def _config(recipe: str, settings: list[str]) -> Any:
    return load_config(RECIPES[recipe].Config, settings=settings)


def main(names: list[str]) -> None:
    hashes = json.loads(HASHES.read_text(encoding="utf-8"))["hashes"] if names else {}
    for name, case in ((name, case) for name, case in cases().items() if not names or name in names):
        with TemporaryDirectory() as folder:
            hashes[name] = golden(*case, Path(folder))
        sys.stderr.write(f"{name}\n")
    HASHES.write_text(json.dumps({"environment": environment(), "hashes": hashes}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
