"""`lacuner bench`: recipes side by side."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from lacuner.cli import options


def bench(
    spec: Annotated[Path, typer.Argument(metavar="SPEC.toml", help="What to measure: data, noise, recipes, seeds.")],
    out: Annotated[Path, typer.Option("--out", help="The bench's folder; the same command continues it.")],
    data: Annotated[Path, typer.Option("--data", help="Where the folders of the data sets are.")] = Path(
        "../shared/data"
    ),
    workers: Annotated[int, typer.Option("--workers", min=1, help="Cells at a time, one thread each.")] = 2,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the spec, such as seeds=[1].")
    ] = None,
    run: Annotated[
        bool, typer.Option("--run/--no-run", help="Or only write table and report of what is there.")
    ] = True,
    json: options.Json = False,
) -> None:
    """Run every recipe on every data set with every noise and seed, and make a table and a report.

    What has been measured is never measured again; a cell that fails does not stop the rest, and is tried again the
    next time. The status is 1 if a cell failed.
    """
    from lacuner.bench.outputs import write_results
    from lacuner.bench.runner import open_bench, run_bench
    from lacuner.bench.spec import load_spec
    from lacuner.bench.table import percent
    from lacuner.cli.console import print_json, print_table, say

    chosen = [part for each in set_ or [] for part in ("--set", each)]
    command = shlex.join(
        ["lacuner", "bench", spec.as_posix(), "--data", data.as_posix(), "--out", out.as_posix(), *chosen]
    )
    found = open_bench(load_spec(spec, data, tuple(set_ or [])), data, out)
    try:
        if run:
            run_bench(found, data, out, workers, say)
    finally:
        if found.rows:
            lines = write_results(found, out, command)
    if not found.rows:
        say("nothing has been measured yet")
        return
    failed = {key: row["error"] for key, row in found.failed.items()}
    if json:
        counts = {"cells": len(found.cells), "finished": len(found.finished), "ran": found.ran, "failed": failed}
        print_json({"out": str(out), **counts, "lines": [line.as_json() for line in lines]})
    else:
        columns = ("data", "noise", "encoder", "recipe", "P", "R", "F1", "n", "of supervised", "of oracle")
        rows = [
            (
                *map(str, line.place),
                *[percent(line.values("test", name)) for name in ("precision", "recall", "f1")],
                len(line.rows),
                percent(line.of_supervised),
                percent(line.of_oracle),
            )
            for line in lines
            if line.rows
        ]
        print_table("", columns, rows)
        typer.echo(f"{len(found.finished):,} of {len(found.cells):,} cells finished, {len(failed):,} failed")
        typer.echo(f"table: {out / 'table.md'}\nreport: {out / 'report.html'}")
    if failed:
        raise typer.Exit(1)
