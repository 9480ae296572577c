"""`python -m benchmarks.removal SPEC --data DIR`: does the angle-based vector make label removal more precise?

For each data set, masking rate and seed of a bench spec, two-step learning explores with and without the vector. Gold,
which training never sees, shows how many of the removed tokens belong to entities if the number of removed tokens is
the recipe's own estimate, half the number of missing labels, or the number of missing labels.
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
from lacuner.techniques.filtered_tokens import write_removed
from lacuner.training.run_folder import Run

EPOCHS = 3


def compare_angle(spec_file: Path, data_folder: Path) -> Iterator[masked.Row]:
    """Yield the precision of three removals, each with and without the angle-based vector."""
    for data in masked.masked_data(spec_file, data_folder):
        with_angle, without = (
            precisions(explore_and_audit(data, (*data.settings, f"head.angle={value}"))) for value in ("true", "false")
        )
        scores = [score for pair in zip(with_angle, without, strict=True) for score in pair]
        yield f"{data.data} {data.rate:g} {data.seed}", scores


def explore_and_audit(data: masked.Masked, settings: Sequence[str]) -> FilteredTokens:
    """Find the tokens that the recipe would remove, and compare them with gold."""
    config = load_config(Config, settings=settings)
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder, {"seed": data.seed})
        explored = explore(data.weak, config, EPOCHS, run)
        removed = explored.likely_missing(EPOCHS, explored.missing_share(EPOCHS), config.rank)
        write_removed(run.folder, data.weak, explored.weak, explored.ranking(config.rank), EPOCHS, removed)
        return audit_filtered_tokens(run.folder, data.gold)


def precisions(tokens: FilteredTokens) -> tuple[float, float, float]:
    """Precision with the recipe's estimate, with half the number of missing labels, and with their number."""
    share = float(tokens.missing.mean())
    return tokens.precision, tokens.scores_at(share / 2)[0], tokens.scores_at(share)[0]


def main(arguments: Sequence[str] | None = None) -> int:
    shares = ("as estimated", "half of the missing", "as many as missing")
    header = ("data, masked, seed", *(f"{share}: {how}" for share in shares for how in ("angle", "plain")))
    return masked.main("benchmarks.removal", __doc__, "benchmarks/two_step.toml", header, compare_angle, arguments)


if __name__ == "__main__":
    sys.exit(main())
