"""Shared by experiments on the simulated missing labels of a bench spec: the data, and a table of scores."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lacuner.bench.datasets import DataSet
from lacuner.bench.report import markdown_table
from lacuner.bench.spec import load_spec, noise_levels
from lacuner.data import Document
from lacuner.errors import ConfigError, LacunerError
from lacuner.training.identity import set_complete, sort_documents


class Masked(NamedTuple):
    """A data set with simulated missing labels."""

    data: str
    rate: float
    seed: int
    weak: Sequence[Document]
    dev: Sequence[Document]
    gold: Sequence[Document]
    """The documents before labels were removed: for scoring, not for training."""
    settings: tuple[str, ...]
    """Common settings of the spec, and its first encoder."""


Row = tuple[str, Sequence[float]]
"""The name of a condition and its scores, between 0 and 1."""


def masked_data(spec_file: Path, data_folder: Path, first_seed: bool = False) -> Iterator[Masked]:
    """Yield the data of every masking rate of a spec, with each of its seeds or only the first."""
    spec = load_spec(spec_file, data_folder)
    levels = [
        (name, data, noise)
        for name, data in spec.data.items()
        for noise in noise_levels(spec, name, data)
        if noise.kind == "masked" and noise.rate > 0
    ]
    if not levels:
        raise ConfigError("this spec removes no labels: set noise.masked", file=spec_file)
    for seed in spec.seeds[:1] if first_seed else spec.seeds:
        for name, data, noise in levels:
            dataset = DataSet(name, data, data_folder)
            splits = dataset.splits(("weak",), noise, seed)
            weak, dev = (
                sort_documents(set_complete(splits.weak or (), False)),
                sort_documents(set_complete(splits.dev or (), True)),
            )
            gold = list(set_complete(dataset.read("gold"), True))
            settings = (*spec.settings, f'encoder.name="{spec.encoders[0]}"')
            yield Masked(name, noise.rate, seed, weak, dev, gold, settings)


def main(
    module: str,
    description: str | None,
    default_spec: str,
    header: Sequence[str],
    compute_rows: Callable[[Path, Path], Iterable[Row]],
    arguments: Sequence[str] | None,
) -> int:
    """Log each row of an experiment when it is ready, then print all rows and their mean as a table."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("spec", type=Path, nargs="?", default=Path(default_spec))
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the data sets")
    args = parser.parse_args(arguments)
    rows: list[Row] = []
    try:
        for row in compute_rows(args.spec, args.data):
            rows.append(row)
            sys.stderr.write("  ".join(_format_row(row)) + "\n")
    except (LacunerError, OSError) as error:
        sys.stderr.write(f"{module}: {error}\n")
        return 2
    mean = f"mean of {len(rows)}", np.mean([scores for _, scores in rows], axis=0)
    sys.stdout.write(markdown_table(header, [_format_row(row) for row in (*rows, mean)]) + "\n")
    return 0


def _format_row(row: Row) -> list[str]:
    return [row[0], *(f"{100 * score:.1f}" for score in row[1])]
