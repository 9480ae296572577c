"""Train, get killed at a given point, resume: everything in forked children of one process, because torch loads slowly.

Usage: python -m tests.training.kill FOLDER RECIPE HEAD POINT...
A POINT is `step:N` (before the N-th training step), `write:N` (when half of the N-th file is written) or `stage:N`
(before the N-th stage is marked as finished). Prints a JSON object: for each point, and for an uninterrupted run, the
hashes of all files in the run folder.
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
from lacuner.noise import Noise, corrupt
from lacuner.recipes import RECIPES
from lacuner.trainer.train import train
from lacuner.training import loop
from lacuner.training import run_folder as run
from tests.demo_corpus import demo_corpus
from tests.recipes.check_recipe import DOUBTING, start


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(point: str) -> None:
    """Have this process kill itself at the point."""
    kind, number = point.split(":")
    remaining = int(number)

    def kill_at_last_call(function: Callable[..., Any], before_dying: Callable[..., Any] | None = None) -> Any:
        def counted(*args: Any, **kwargs: Any) -> Any:
            nonlocal remaining
            remaining -= 1
            if remaining == 0:
                if before_dying is not None:
                    before_dying(*args)
                die()
            return function(*args, **kwargs)

        return counted

    if kind == "step":
        loop._Trainer._update = kill_at_last_call(loop._Trainer._update)  # type: ignore[method-assign]
    elif kind == "stage":
        run.Stage.finish = kill_at_last_call(run.Stage.finish)  # type: ignore[method-assign]
    else:
        # `atomic_write` is the only writer of files (tests/test_layering.py) and ends with this call
        atomic.os.replace = kill_at_last_call(atomic.os.replace, halve)


def halve(file: str, _: object) -> None:
    os.truncate(file, os.path.getsize(file) // 2)


DEMO = demo_corpus()
GOLD, DEV = DEMO.train[:40], DEMO.dev[:20]
WEAK = list(corrupt(GOLD, Noise(drop=0.3)))


def work(folder: Path, recipe: str, head: str, point: str | None) -> None:
    gold, dev, weak = GOLD, DEV, WEAK
    needs = RECIPES[recipe].NEEDS
    splits = Splits(weak=weak if "weak" in needs else None, gold=gold if "gold" in needs else None, dev=dev)
    settings = [] if recipe == "dictionary" else ["train.epochs=2", "train.budget=256", "train.checkpoint_seconds=0"]
    settings += DOUBTING if recipe == "needle" else []
    settings += ["encoder.name=tiny"] if "encoder" in RECIPES[recipe].Config.model_fields else []
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
    """The hash of every file of a finished run."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and file.name != ".lock"]
    return {file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def main() -> None:
    folder, recipe, head, *points = sys.argv[1:]
    torch.set_num_threads(1)
    result: dict[str, Any] = {}
    assert in_child(Path(folder) / "whole", recipe, head, None) == 0
    result["whole"] = digest(Path(folder) / "whole")
    for i, point in enumerate(points):
        place = Path(folder) / f"killed{i}"
        killed = os.WIFSIGNALED(in_child(place, recipe, head, point))
        assert in_child(place, recipe, head, None) == 0, f"the run was not resumed after {point}"
        half_written = [file.name for file in place.rglob("*.part") if file.is_file()]
        result[point] = {"killed": killed, "digest": digest(place), "half_written": len(half_written)}
    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    main()
