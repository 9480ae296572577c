"""`lacuner bench`: compare recipes on data sets, noise levels and seeds."""

import shlex
from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option

from lacuner.cli.console import echo, log, print_json, print_table
from lacuner.cli.options import Json, On, to_arguments
from lacuner.processes import MAX_WORKERS


def bench(
    spec: Annotated[Path, Argument(metavar="SPEC.toml", help="Data sets, noise, recipes and seeds.")],
    out: Annotated[Path, Option("--out", help="Bench folder. The same command resumes it.")],
    *,
    data: Annotated[Path, Option(help="Folder of the data sets.")] = Path("../shared/data"),
    workers: Annotated[int, Option(min=1, max=MAX_WORKERS, help="Cells run in parallel, one thread each.")] = 2,
    on: On = "processes",
    set_: Annotated[
        list[str] | None, Option("--set", metavar="KEY=VALUE", help="Setting of the spec, e.g. seeds=[1].")
    ] = None,
    run: Annotated[
        bool, Option("--run/--no-run", help="Run the cells, or only write the table and the report.")
    ] = True,
    json: Json = False,
) -> None:
    """Run recipes x data x noise x seeds; write tables and plots.

    Finished cells are never run again. A failed cell does not stop the others and is retried by the next call; the
    exit status is then 1.
    """
    from lacuner.bench.report import CONDITION, SCORES, format_scores, write_results
    from lacuner.bench.runner import open_bench, run_bench
    from lacuner.bench.spec import load_spec
    from lacuner.scale.engines import open_launcher

    start = open_launcher(on) if on != "processes" else None
    settings = tuple(set_ or ())
    options = to_arguments({"data": [data.as_posix()], "out": [out.as_posix()], "set": settings})
    command = ["lacuner", "bench", spec.as_posix(), *options]
    opened = open_bench(load_spec(spec, data, settings), data, out)
    try:
        if run:
            run_bench(opened, data, out, workers, log, start)
    finally:
        if opened.rows:
            lines = write_results(opened, out, shlex.join(command))
    if not opened.rows:
        log("no cell has been run yet")
        return
    failed = {key: row["error"] for key, row in opened.failed.items()}
    if json:
        counts = {"cells": len(opened.cells), "finished": len(opened.finished), "ran": opened.ran, "failed": failed}
        print_json({"out": str(out), **counts, "lines": [line.as_json() for line in lines]})
    else:
        rows = [(*map(str, line.condition), *format_scores(line)) for line in lines if line.rows]
        print_table("", (*CONDITION, *SCORES), rows)
        echo(f"{len(opened.finished):,} of {len(opened.cells):,} cells finished, {len(failed):,} failed")
        echo(f"table: {out / 'table.md'}\nreport: {out / 'report.html'}")
    if failed:
        raise Exit(1)
