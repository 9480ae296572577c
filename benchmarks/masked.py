"""What paired_tests share that train wherever a bench spec masks something: the places, and a table of percentages."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lacuner.bench.datasets import DataSet
from lacuner.bench.spec import load_spec, noise_levels
from lacuner.bench.table import markdown_table
from lacuner.data import Document
from lacuner.errors import ConfigError, LacunerError
from lacuner.training.identity import canonical, in_role


class Place(NamedTuple):
    """Where something is masked."""

    data: str
    rate: float
    seed: int
    weak: Sequence[Document]
    dev: Sequence[Document]
    gold: Sequence[Document]
    """What was masked: to judge by, not to learn from."""
    settings: tuple[str, ...]
    """Those of the whole spec, and its first encoder."""


Row = tuple[str, Sequence[float]]
"""A place and its shares."""


def places(spec_file: Path, data_folder: Path, first_seed: bool = False) -> Iterator[Place]:
    """The places of a spec, with each of its seeds or the first alone."""
    spec = load_spec(spec_file, data_folder)
    nothing = True
    for seed in spec.seeds[:1] if first_seed else spec.seeds:
        for name, data in spec.data.items():
            dataset = DataSet(name, data, data_folder)
            for noise in noise_levels(spec, name, data):
                if noise.kind == "masked" and noise.rate > 0:
                    nothing = False
                    found = dataset.splits(("weak",), noise, seed)
                    weak, dev = (
                        canonical(in_role(docs, whole))
                        for docs, whole in ((found.weak or (), False), (found.dev or (), True))
                    )
                    gold = list(in_role(dataset.read("gold"), True))
                    settings = (*spec.settings, f'encoder.name="{spec.encoders[0]}"')
                    yield Place(name, noise.rate, seed, weak, dev, gold, settings)
    if nothing:
        raise ConfigError("nothing is masked", file=spec_file)


def main(
    module: str,
    about: str | None,
    default: str,
    header: Sequence[str],
    rows: Callable[[Path, Path], Iterable[Row]],
    arguments: Sequence[str] | None,
) -> int:
    """Show each row of a comparison as it comes, and then all as a table with their mean."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=about)
    parser.add_argument("spec", type=Path, nargs="?", default=Path(default))
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="where the data sets' folders are")
    given = parser.parse_args(arguments)
    found: list[Row] = []
    try:
        for row in rows(given.spec, given.data):
            found.append(row)
            sys.stderr.write("  ".join(_cells(row)) + "\n")
    except (LacunerError, OSError) as error:
        sys.stderr.write(f"{module}: {error}\n")
        return 2
    mean = f"mean of {len(found)}", np.mean([shares for _, shares in found], axis=0)
    sys.stdout.write(markdown_table(header, [_cells(row) for row in (*found, mean)]) + "\n")
    return 0


def _cells(row: Row) -> list[str]:
    return [row[0], *(f"{100 * each:.1f}" for each in row[1])]
