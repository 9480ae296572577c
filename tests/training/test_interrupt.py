"""Ctrl-C in the middle of an epoch: a checkpoint is written at once, and the run ends in the same bytes."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from lacuner.config import load_config
from lacuner.data import Splits
from lacuner.recipes import RECIPES
from lacuner.trainer.train import train
from lacuner.training import loop
from lacuner.training.optimizer import Optimizers
from lacuner.training.stage import DevScorer
from tests.demo_corpus import demo_corpus

DOCS, DEV = demo_corpus().train[:60], demo_corpus().dev[:10]


def run(folder: Path) -> tuple[dict[str, bytes], list[str]]:
    """All files of a run, and its log; there is no regular checkpoint in so short a time."""
    torch.set_num_threads(1)
    lines: list[str] = []
    config = load_config(
        RECIPES["negative_sampling"].Config, settings=["train.epochs=2", "train.budget=128", "encoder.name=tiny"]
    )
    train("negative_sampling", Splits(weak=DOCS, dev=DEV), folder, config, log=lines.append)
    files = {str(file.relative_to(folder)): file for file in sorted(folder.rglob("*")) if file.is_file()}
    return {name: file.read_bytes() for name, file in files.items()}, lines


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return run(tmp_path_factory.mktemp("whole") / "run")[0]


def press_ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("place", "method", "call", "act", "after", "resumed"),
    [
        (loop._Trainer, "_update", 15, interrupt, False, True),
        (loop._Trainer, "_backward", 15, interrupt, True, True),
        (loop._Trainer, "_backward", 15, press_ctrl_c, False, True),
        (Optimizers, "step", 15, press_ctrl_c, True, True),
        (Optimizers, "step", 15, interrupt, True, False),
        (DevScorer, "__call__", 1, press_ctrl_c, True, True),
        (loop._Trainer, "keep_best", 1, press_ctrl_c, True, True),
        (loop, "_seeded_step", 2, press_ctrl_c, True, True),
    ],
)
def test_it_resumes_where_it_was_interrupted(
    place: Any,
    method: str,
    call: int,
    act: Callable[[], None],
    after: bool,
    resumed: bool,
    whole: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before or after the given call; only an optimiser step that is cut in two cannot be saved."""
    function, left = getattr(place, method), call

    def counted(*args: Any, **options: Any) -> Any:
        nonlocal left
        left -= 1
        if not left and not after:
            act()
        result = function(*args, **options)
        if not left and after:
            act()
        return result

    monkeypatch.setattr(place, method, counted)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run")
    assert (tmp_path / "run" / "stages" / "train" / "state.json").exists() == resumed
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    monkeypatch.undo()
    files, lines = run(tmp_path / "run")
    assert any("resuming in epoch" in line for line in lines) == resumed
    assert files == whole
