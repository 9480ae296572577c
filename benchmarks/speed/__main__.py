"""`make speed`: the speed ratios of lacuner against its peers, measured in one run.

Machines are noisy and differ: only the ratios mean something, and only because both sides took turns.
"""

from __future__ import annotations

import sys

from benchmarks.speed import annotate, corpus, models, recipes
from lacuner.cli.console import log, print_table

PARTS = [corpus, annotate, models, recipes]


def main() -> int:
    quick = "--quick" in sys.argv
    wanted = [part for part in PARTS if part.__name__.rsplit(".", 1)[1] in sys.argv] or PARTS
    rows = []
    for part in wanted:
        log(f"measuring {part.__name__.rsplit('.', 1)[1]} ...")
        rows += part.measure(quick)
    cells = [
        (
            row.name,
            f"{row.ours:,.4g}",
            f"{row.theirs:,.4g}",
            row.peer,
            f"{row.ratio:.2f}",
            f"{row.bar:.2f}",
            "yes" if row.passed else "NO",
        )
        for row in rows
    ]
    print_table("", ("what", "lacuner", "peer", "which", "ratio", "bar", "met"), cells)
    return 0 if all(row.passed for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
