"""`lacuner audit`: what to look at."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lacuner.cli import options

if TYPE_CHECKING:
    from lacuner.audit.sampling import Audit

app = typer.Typer(help="Look into a training.", no_args_is_help=True)


@app.command()
def sampling(
    weak: Annotated[Path, typer.Option("--weak", help="Labels with gaps.")],
    gold: Annotated[Path, typer.Option("--gold", help="The truth about the same texts; only the watch sees it.")],
    out: Annotated[Path, typer.Option("--out", help="Where report.html and sampling.json go.")],
    dev: Annotated[Path | None, typer.Option("--dev", help="Complete labels to choose the best epoch by.")] = None,
    recipe: Annotated[
        list[str] | None,
        typer.Option("--recipe", help="What to watch; several stand side by side. [negative_sampling]"),
    ] = None,
    follow: Annotated[
        list[str] | None, typer.Option("--follow", metavar="TEXT", help="An unlabelled entity to follow, by its text.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Another seed, other weights.")] = 1,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting, for all of the recipes that have it."),
    ] = None,
    format: options.Format = None,
    encoding: options.Encoding = "utf-8",
    words: options.Words = "unicode",
    separator: options.Separator = None,
    token_column: options.TokenColumn = 0,
    tag_column: options.TagColumn = -1,
    scheme: options.Scheme = None,
    json: options.Json = False,
) -> None:
    """Train, and see what becomes of the gaps.

    How many negatives are entities, how sparse entities are, and how much the model takes some unlabelled entities for
    what they are, epoch by epoch. No model is kept.
    """
    from lacuner.audit.report import write_audit
    from lacuner.audit.sampling import audit_sampling, plan
    from lacuner.cli.console import print_json, read_roles, say
    from lacuner.data import Splits

    recipes, settings, names = recipe or ["negative_sampling"], set_ or [], follow or []
    plans = plan(recipes, settings)
    reading = options.read_options(encoding, scheme, words, (separator, token_column, tag_column))
    files = {role: [path] for role, path in (("weak", weak), ("gold", gold), ("dev", dev)) if path is not None}
    given = read_roles(files, format, reading)
    audit = audit_sampling(plans, Splits(**given), names, seed, say=say)
    chosen = {"--recipe": recipes, "--follow": names, "--set": settings}
    read = [part for role, [path] in files.items() for part in (f"--{role}", str(path))]
    more = [part for option, values in chosen.items() for value in values for part in (option, value)]
    command = shlex.join(["lacuner", "audit", "sampling", *read, *more, "--seed", str(seed), "--out", str(out)])
    write_audit(audit, out, command)
    if json:
        print_json({"out": str(out), **audit.as_json()})
        return
    _show(audit)
    typer.echo(f"report: {out / 'report.html'}\nfigures: {out / 'sampling.json'}")


def _show(audit: Audit) -> None:
    from lacuner.audit.report import columns, number_text, share
    from lacuner.cli.console import print_table

    shown = columns(audit)
    rows = [
        (watched.name, number, *[number_text(row.get(name), name) for name in shown])
        for watched in audit.watched
        for number, row in enumerate(watched.epochs, 1)
    ]
    print_table("", ("recipe", "epoch", *shown.values()), rows)
    facts = audit.as_json()
    sparse, real, limit = facts["sparsity"], facts["corpus"], facts["bound"]
    typer.echo(
        f"{sparse['dense']:,} of {sparse['sentences']:,} sentences have more than sqrt(n) entities; "
        f"on average {sparse['words']:.1f} words and {sparse['entities']:.2f} entities"
    )
    least = "" if limit["at_least"] is None else f" (the bound: {limit['at_least']:.3f})"
    typer.echo(
        f"drawing {audit.rate:g} negatives a word, none is an entity with a probability of {limit['worst_case']:.3f}"
        f"{least} in {limit['words']} words with sqrt(n) unlabelled entities, and of {real['clean']:.3f} in a sentence "
        "of this corpus"
    )
    typer.echo(f"drawn uniformly, {share(real['missampling'])} of the negatives are expected to be entities")
    for watched in audit.watched:
        if len(watched.table) and audit.followed:
            first, last = watched.means
            typer.echo(
                f"{watched.name}: {len(audit.followed):,} unlabelled entities are taken for what they are with a mean "
                f"probability of {first:.3f} after the first epoch and {last:.3f} after the last"
            )


@app.command()
def removed(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Runs of two_step; several stand side by side.")],
    gold: Annotated[Path, typer.Option("--gold", help="The truth about the texts that they learned from.")],
    out: Annotated[Path | None, typer.Option("--out", help="Where the pictures go; none without it.")] = None,
    format: options.Format = None,
    encoding: options.Encoding = "utf-8",
    words: options.Words = "unicode",
    separator: options.Separator = None,
    token_column: options.TokenColumn = 0,
    tag_column: options.TagColumn = -1,
    scheme: options.Scheme = None,
    json: options.Json = False,
) -> None:
    """Judge the words that two-step learning removed: how many of them belong to entities that nobody labelled."""
    from lacuner.audit.filtered_tokens import audit_filtered_tokens, removal_curve, removal_figures
    from lacuner.cli.console import print_json, print_table, read_roles
    from lacuner.reporting.svg import write_figures

    reading = options.read_options(encoding, scheme, words, (separator, token_column, tag_column))
    docs = read_roles({"gold": [gold]}, format, reading).get("gold", [])
    judged = {str(run): audit_filtered_tokens(run, docs) for run in runs}
    if out is not None:
        write_figures(removal_figures(judged), out)
    if json:
        shares = [dict(zip(("run", "share", "precision", "recall"), row, strict=True)) for row in removal_curve(judged)]
        print_json({"runs": {name: found.as_json() for name, found in judged.items()}, "shares": shares})
        return
    columns = ("run", "unlabelled words", "of entities", "removed", "P", "R")
    counts = {name: found.as_json() for name, found in judged.items()}
    rows = [
        (
            name,
            *[f"{n[key]:,}" for key in ("words", "missing", "removed")],
            f"{n['precision']:.3f}",
            f"{n['recall']:.3f}",
        )
        for name, n in counts.items()
    ]
    print_table("", columns, rows)
    tried = [(name, f"{share:.4f}", f"{p:.3f}", f"{r:.3f}") for name, share, p, r in removal_curve(judged)]
    print_table("\nIf another share had been removed", ("run", "share", "P", "R"), tried)


@app.command()
def completion(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Runs of needle; several stand side by side.")],
    gold: Annotated[Path, typer.Option("--gold", help="The truth about the weak texts that they learned from.")],
    out: Annotated[Path | None, typer.Option("--out", help="Where the pictures go; none without it.")] = None,
    format: options.Format = None,
    encoding: options.Encoding = "utf-8",
    words: options.Words = "unicode",
    separator: options.Separator = None,
    token_column: options.TokenColumn = 0,
    tag_column: options.TagColumn = -1,
    scheme: options.Scheme = None,
    json: options.Json = False,
) -> None:
    """Judge completed weak labels: how many entities were fixed, how many broken, and how far to trust them."""
    from lacuner.audit.completion import CHANGES, COLUMNS, audit_completion, completion_figures, completion_rows
    from lacuner.cli.console import print_json, print_table, read_roles
    from lacuner.reporting.svg import write_figures

    reading = options.read_options(encoding, scheme, words, (separator, token_column, tag_column))
    docs = read_roles({"gold": [gold]}, format, reading).get("gold", [])
    judged = {
        str(run) if number == 1 else f"{run}, round {number}": found
        for run in runs
        for number, found in audit_completion(run, docs).items()
    }
    if out is not None:
        write_figures(completion_figures(judged), out)
    if json:
        print_json({"runs": {name: found.as_json() for name, found in judged.items()}})
        return
    print_table("", COLUMNS, completion_rows(judged))
    for name, what in CHANGES.items():
        typer.echo(f"{name}: {what}")
    left = {name: found.without_gold for name, found in judged.items() if found.without_gold}
    for name, count in left.items():
        typer.echo(f"{name}: gold does not have {count:,} of the completed texts")
