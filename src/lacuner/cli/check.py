"""`lacuner check`: what is wrong with my data, with file and line."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from lacuner.cli import options

MOST = 50


def check(
    corpora: Annotated[
        list[Path], typer.Argument(metavar="CORPUS...", help="Files or folders, for example the splits.")
    ],
    fix: Annotated[bool, typer.Option("--fix", help="Repair what needs no judgement, into another file.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Where the repaired corpus goes; NAME.fixed.ENDING if not given.")
    ] = None,
    rare: Annotated[int, typer.Option("--rare", help="A label with fewer spans than this is rare.")] = 5,
    everything: Annotated[
        bool, typer.Option("--all", help=f"Print all problems, not the first {MOST} of a kind.")
    ] = False,
    format: options.Format = None,
    encoding: options.Encoding = "utf-8",
    separator: options.Separator = None,
    token_column: options.TokenColumn = 0,
    tag_column: options.TagColumn = -1,
    scheme: options.Scheme = None,
    json: options.Json = False,
) -> None:
    """Name every misaligned, empty, crossing, duplicate or whitespace span, texts shared by two corpora, rare labels.

    Ends with status 2 if there is an error, 0 if there are only warnings.
    """
    from lacuner.cli.show import Watched, print_json, say
    from lacuner.corpus import write
    from lacuner.corpus.check import Checked, Problem, check_corpus, finish, unreadable
    from lacuner.corpus.check import fix as fixed_document
    from lacuner.errors import ConfigError, CorpusError
    from lacuner.types import Where

    if out is not None and (not fix or len(corpora) > 1):
        raise ConfigError("--out goes with --fix and a single corpus")
    reading = replace(options.read_options(encoding, separator, token_column, tag_column, scheme), keep_bad_spans=True)
    rows: list[dict[str, Any]] = []
    shown: Counter[str] = Counter()

    def note(problem: Problem) -> None:
        shown[problem.kind] += 1
        if json:
            file, line = problem.where[:2] if problem.where else (None, None)
            rows.append(
                {
                    "kind": problem.kind,
                    "error": problem.is_error,
                    "file": file,
                    "line": line,
                    "message": problem.message,
                }
            )
        elif everything or shown[problem.kind] <= MOST:
            typer.echo(str(problem))

    checked = Checked(note)
    repaired: Counter[str] = Counter()
    written: list[str] = []
    for corpus in corpora:
        try:
            docs = Watched(corpus, format=format, options=reading, on_error=unreadable(checked))
            stream = check_corpus(docs, str(corpus), checked)
            if fix:
                target = out or corpus.with_name(f"{corpus.stem}.fixed{corpus.suffix or '.jsonl'}")
                lost = write(
                    (fixed_document(doc, repaired) for doc in stream), target, format=format if corpus.suffix else None
                )
                written.append(str(target))
                say(f"wrote {target} ({lost})")
            else:
                for _ in stream:
                    pass
            for reason, where in docs.lost.first.items():
                checked.add(
                    "repaired tag",
                    Where(*where[:2]),
                    f"{reason}: {docs.lost.counts[reason]:,} in this file, here the first",
                )
        except CorpusError as error:
            unreadable(checked)(error)
    finish(checked, rare)
    if json:
        print_json(
            {
                "documents": checked.documents,
                "words": checked.words,
                "spans": checked.spans,
                "labels": dict(sorted(checked.labels.items())),
                "errors": checked.errors,
                "warnings": checked.counts.total() - checked.errors,
                "counts": dict(checked.counts),
                "problems": rows,
                "fixed": dict(repaired),
                "written": written,
            }
        )
    else:
        _summary(checked, repaired, fix, everything)
    raise typer.Exit(2 if checked.errors and not fix else 0)


def _summary(checked: Any, repaired: Counter[str], fix: bool, everything: bool) -> None:
    for kind, count in checked.counts.items():
        if count > MOST and not everything:
            typer.echo(f"{kind}: {count - MOST:,} more (--all shows them)")
    labels = ", ".join(f"{label} {count:,}" for label, count in checked.labels.most_common())
    typer.echo(
        f"{checked.documents:,} documents, {checked.words:,} words, {checked.spans:,} spans ({labels or 'no labels'})"
    )
    kinds = ", ".join(f"{kind}: {count:,}" for kind, count in checked.counts.items()) or "nothing is wrong"
    typer.echo(f"{checked.errors:,} errors, {checked.counts.total() - checked.errors:,} warnings: {kinds}")
    if fix:
        typer.echo(
            "fixed: " + (", ".join(f"{what}: {count:,}" for what, count in repaired.items()) or "nothing to fix")
        )
