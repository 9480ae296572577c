"""`python -m benchmarks.removal SPEC --data DIR`: does the angle-based vector make removal more precise?

For each data set, masking and seed of a bench spec, two-step learning explores twice, with the vector and without it,
and gold says how many of the words under suspicion belong to entities: if as many are removed as the recipe itself
estimates, half as many as are missing, and as many as are missing. Training never sees gold.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import masked
from lacuner.audit.filtered_tokens import FilteredTokens, audit_filtered_tokens
from lacuner.config import load_config
from lacuner.recipes.two_step import Config
from lacuner.techniques.early_learning import explore
from lacuner.techniques.label_removal import write_removed
from lacuner.training.run_folder import Run

EPOCHS = 3


def pairs(spec_file: Path, data_folder: Path) -> Iterator[masked.Row]:
    """Explore wherever the spec masks something: how precise three removals are with the vector and without it."""
    for place in masked.places(spec_file, data_folder):
        both = (explored(place, (*place.settings, _angle(on))) for on in (True, False))
        shares = [share for pair in zip(*map(precisions, both), strict=True) for share in pair]
        yield f"{place.data} {place.rate:g} {place.seed}", shares


def _angle(on: bool) -> str:
    return f"head.angle={str(on).lower()}"


def explored(place: masked.Place, settings: Sequence[str]) -> FilteredTokens:
    """What the recipe would remove, judged by gold."""
    config = load_config(Config, settings=settings)
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder, {"seed": place.seed})
        found = explore(place.weak, config, EPOCHS, run)
        write_removed(run.folder, place.weak, found, EPOCHS, found.suspects(EPOCHS, found.missing_share(EPOCHS)))
        return audit_filtered_tokens(run.folder, place.gold)


def precisions(judged: FilteredTokens) -> tuple[float, float, float]:
    """With as many removed as the recipe estimates, half as many as are missing, as many as are missing."""
    share = float(judged.missing.mean())
    return judged.precision, judged.scores_at(share / 2)[0], judged.scores_at(share)[0]


def main(arguments: Sequence[str] | None = None) -> int:
    shares = ("as estimated", "half of the missing", "as many as missing")
    header = ("data, masked, seed", *(f"{share}: {how}" for share in shares for how in ("angle", "plain")))
    return masked.main("benchmarks.removal", __doc__, "benchmarks/two_step.toml", header, pairs, arguments)


if __name__ == "__main__":
    sys.exit(main())
