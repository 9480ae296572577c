"""`python -m benchmarks.removal SPEC --data DIR`: does the angle-based vector make removal more precise?

For each data set, masking and seed of a bench spec, two-step learning explores twice, with the vector and without it,
and gold says how many of the words under suspicion belong to entities: if as many are removed as the recipe itself
estimates, half as many as are missing, and as many as are missing. Training never sees gold.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lacuner.bench.data import DataSet
from lacuner.bench.spec import gaps_of, load_spec
from lacuner.bench.table import markdown
from lacuner.config import load_config
from lacuner.errors import LacunerError
from lacuner.recipes.o_values import explore
from lacuner.recipes.parts import canonical
from lacuner.recipes.removed import Judged, judge_suspects, write_removed
from lacuner.recipes.train import in_role
from lacuner.recipes.two_step import Config
from lacuner.training.run import Run
from lacuner.types import Document

EPOCHS = 3


class Pair(NamedTuple):
    """Two explorations of the same documents."""

    where: str
    angle: Judged
    plain: Judged


def pairs(spec_file: Path, data_folder: Path) -> Iterator[Pair]:
    """Explore wherever the spec masks something."""
    spec = load_spec(spec_file, data_folder)
    for seed in spec.seeds:
        for name, data in spec.data.items():
            dataset = DataSet(name, data, data_folder)
            gold = list(in_role(dataset.read("gold"), True))
            for kind, rate, _ in gaps_of(spec, name, data):
                if kind != "masked" or rate == 0:
                    continue
                weak = canonical(in_role(dataset.splits(("weak",), kind, rate, seed).weak or (), False))
                with_it, without = (explored(weak, gold, seed, (*spec.settings, _angle(on))) for on in (True, False))
                yield Pair(f"{name} {rate:g} {seed}", with_it, without)


def _angle(on: bool) -> str:
    return f"head.angle={str(on).lower()}"


def explored(weak: Sequence[Document], gold: Sequence[Document], seed: int, settings: Sequence[str]) -> Judged:
    """What the recipe would remove, judged by gold."""
    config = load_config(Config, settings=settings)
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder, {"seed": seed})
        found = explore(weak, config, EPOCHS, run)
        write_removed(run.folder, weak, found, EPOCHS, found.suspects(EPOCHS, found.missing_share(EPOCHS)))
        return judge_suspects(run.folder, gold)


def precisions(judged: Judged) -> tuple[float, float, float]:
    """With as many removed as the recipe estimates, half as many as are missing, as many as are missing."""
    share = float(judged.missing.mean())
    return judged.precision, judged.if_removed(share / 2)[0], judged.if_removed(share)[0]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.removal", description=__doc__)
    parser.add_argument("spec", type=Path, nargs="?", default=Path("benchmarks/two_step.toml"))
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="where the data sets' folders are")
    given = parser.parse_args(arguments)
    rows, shown = [], []
    try:
        for pair in pairs(given.spec, given.data):
            rows.append((precisions(pair.angle), precisions(pair.plain)))
            shown.append([pair.where, *_cells(*rows[-1])])
            sys.stderr.write("  ".join(shown[-1]) + "\n")
    except (LacunerError, OSError) as error:
        sys.stderr.write(f"benchmarks.removal: {error}\n")
        return 2
    if not rows:
        sys.stderr.write(f"benchmarks.removal: nothing is masked in {given.spec}\n")
        return 2
    shown.append([f"mean of {len(rows)}", *_cells(*np.mean(rows, axis=0))])
    header = ("data, masked, seed", *(f"{share}: {how}" for share in _SHARES for how in ("angle", "plain")))
    sys.stdout.write(markdown(header, shown) + "\n")
    return 0


_SHARES = ("as estimated", "half of the missing", "as many as missing")


def _cells(angle: Sequence[float], plain: Sequence[float]) -> list[str]:
    return [f"{100 * each:.1f}" for both in zip(angle, plain, strict=True) for each in both]


if __name__ == "__main__":
    sys.exit(main())
