"""Train, be killed at a given point, go on; all in forked children of one process, because loading torch takes long.

Usage: python -m tests.training.kill FOLDER RECIPE HEAD POINT...
A POINT is `step:N` (before the N-th step), `write:N` (in the middle of the N-th write of a file) or `stage:N` (before
the N-th stage is finished). Prints a JSON object: for each point the hashes of weights and metrics, and of a run that
nobody killed.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from lacuner import atomic
from lacuner.config import load_config
from lacuner.data import Splits
from lacuner.demo import build
from lacuner.noise import Noise, corrupt
from lacuner.recipes import RECIPES
from lacuner.trainer.train import train
from lacuner.training import loop
from lacuner.training import run_folder as run
from tests.recipes.check_recipe import DOUBTING, start


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(point: str) -> None:
    """Have this process killed at the point."""
    kind, number = point.split(":")
    left = int(number)

    def count(then: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                die()
            return then(*args, **kwargs)

        return counted

    if kind == "step":
        loop._Trainer._learn = count(loop._Trainer._learn)  # type: ignore[method-assign]
    elif kind == "stage":
        run.Stage.finish = count(run.Stage.finish)  # type: ignore[method-assign]
    else:
        # every file is written by `atomic_write`, which ends with this call: no writer can be forgotten
        atomic.os.replace = count(atomic.os.replace)


DEMO = build()
GOLD, DEV = DEMO.train[:40], DEMO.dev[:20]
WEAK = list(corrupt(GOLD, Noise(drop=0.3)))


def work(folder: Path, recipe: str, head: str, point: str | None) -> None:
    gold, dev, weak = GOLD, DEV, WEAK
    needs = RECIPES[recipe].NEEDS
    splits = Splits(weak=weak if "weak" in needs else None, gold=gold if "gold" in needs else None, dev=dev)
    settings = [] if recipe == "dictionary" else ["train.epochs=2", "train.budget=256", "train.checkpoint_seconds=0"]
    settings += DOUBTING if recipe == "needle" else []
    settings += [f"head.kind={head}"] if "head" in RECIPES[recipe].Config.model_fields else []
    if "start" in RECIPES[recipe].Config.model_fields:
        settings.append(f'start="{start(folder.parent / "start")}"')
    if point is not None:
        arm(point)
    train(recipe, splits, folder, load_config(RECIPES[recipe].Config, settings=settings))


def in_child(*args: Any) -> int:
    child = os.fork()
    if child == 0:
        try:
            work(*args)
            os._exit(0)
        except BaseException as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            os._exit(1)
    return os.waitpid(child, 0)[1]


def digest(folder: Path) -> dict[str, str]:
    names = [
        "model/model.safetensors",
        "model/config.json",
        "model/names.json",
        "metrics.jsonl",
        "suspects.jsonl",
        "suspects.tsv",
    ]
    names += [
        "removed.jsonl",
        "o_values.safetensors",
        "completed.jsonl",
        "labels.json",
        "confidence.json",
        "completed-2.jsonl",
        "confidence-2.json",
    ]
    found = [folder / name for name in names if (folder / name).exists()]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in found}


def main() -> None:
    folder, recipe, head, *points = sys.argv[1:]
    torch.set_num_threads(1)
    result: dict[str, Any] = {}
    assert in_child(Path(folder) / "whole", recipe, head, None) == 0
    result["whole"] = digest(Path(folder) / "whole")
    for i, point in enumerate(points):
        place = Path(folder) / f"killed{i}"
        killed = os.WIFSIGNALED(in_child(place, recipe, head, point))
        assert in_child(place, recipe, head, None) == 0, f"it did not go on after {point}"
        left = [file.name for file in place.rglob("*.part") if file.is_file()]
        result[point] = {"killed": killed, "digest": digest(place), "parts": len(left)}
    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    main()
