"""The cost of a recipe relative to `trust` with the same head and encoder."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

from benchmarks.speed.models import documents, in_turns, ratio
from benchmarks.speed.row import Row


def measure(quick: bool = False) -> list[Row]:
    """Time whole trainings with default epochs, and a dev set of a third of the size; two_step without search."""
    from lacuner.config import load_config
    from lacuner.data import Splits
    from lacuner.recipes import RECIPES
    from lacuner.trainer.train import train

    sample = documents(200)
    docs, dev = [replace(doc, complete=False) for doc in sample[:150]], sample[150:]
    number = count()
    with tempfile.TemporaryDirectory() as folder:

        def learn(recipe: str) -> None:
            config = load_config(RECIPES[recipe].Config, settings=["head.kind=token"])
            train(recipe, Splits(weak=docs, dev=dev), Path(folder) / str(next(number)), config)

        times = in_turns({name: partial(learn, name) for name in ("trust", "two_step")}, 2 if quick else 5)
    words = sum(len(doc.words or ()) for doc in docs)
    speed = {name: words / min(seconds) for name, seconds in times.items()}
    return [
        Row(
            "two_step, whole training, words/s",
            speed["two_step"],
            speed["trust"],
            "our trust",
            ratio(times, "two_step", "trust"),
            1 / 1.2,
        )
    ]
