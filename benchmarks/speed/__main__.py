"""`make speed`: the speed of lacuner relative to other libraries, measured in one run.

Machines are noisy and differ, so only ratios are meaningful, and only because both sides take turns.
"""

from __future__ import annotations

import sys

from benchmarks.speed import annotate, corpus, export, models, recipes
from lacuner.cli.console import log, print_table

PARTS = [corpus, annotate, models, recipes, export]


def main() -> int:
    quick = "--quick" in sys.argv
    selected = [part for part in PARTS if part.__name__.rsplit(".", 1)[1] in sys.argv] or PARTS
    rows = []
    for part in selected:
        log(f"measuring {part.__name__.rsplit('.', 1)[1]} ...")
        rows += part.measure(quick)
    cells = [
        (
            row.name,
            f"{row.ours:,.4g}",
            f"{row.theirs:,.4g}",
            row.peer,
            f"{row.ratio:.2f}",
            f"{row.minimum:.2f}",
            "yes" if row.passed else "NO",
        )
        for row in rows
    ]
    print_table("", ("what", "lacuner", "other", "which", "ratio", "minimum", "met"), cells)
    return 0 if all(row.passed for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
