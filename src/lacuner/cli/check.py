"""`lacuner check`: what is wrong with my data, with file and line."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lacuner.cli import options

if TYPE_CHECKING:
    from lacuner.corpus import ReadOptions
    from lacuner.corpus.check import Checked, Problem

MOST = 50
UNFIXED = ("unreadable", "crossing", "two labels")
"""Errors that only a person can mend."""


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
    words: options.Words = "unicode",
    json: options.Json = False,
) -> None:
    """Name every misaligned, empty, crossing, duplicate or whitespace span, texts shared by two corpora, rare labels.

    Ends with status 2 if there is an error (after --fix: one that needs judgement), 0 if there are only warnings.
    """
    from lacuner.cli.console import print_json
    from lacuner.corpus.check import Checked, finish
    from lacuner.errors import ConfigError

    if out is not None and (not fix or len(corpora) > 1):
        raise ConfigError("--out goes with --fix and a single corpus")
    options.keep_inputs({"--out": out}, *corpora)
    reading = replace(
        options.read_options(encoding, scheme, words, (separator, token_column, tag_column)), keep_bad_spans=True
    )
    problems: list[Problem] = []

    def note(problem: Problem) -> None:
        if json:
            problems.append(problem)
        elif everything or checked.counts[problem.kind] <= MOST:
            typer.echo(str(problem))

    checked = Checked(note)
    fixed: Counter[str] = Counter()
    for corpus in corpora:
        _check_one(corpus, format, reading, checked, (out or _beside(corpus)) if fix else None, fixed)
    finish(checked, rare)
    if json:
        print_json({**_counts(checked), "problems": [_row(problem) for problem in problems], "fixed": dict(fixed)})
    else:
        _summary(checked, everything)
        if fix:
            typer.echo(
                "fixed: " + (", ".join(f"{what}: {count:,}" for what, count in fixed.items()) or "nothing to fix")
            )
    left = sum(checked.counts[kind] for kind in UNFIXED) if fix else checked.errors
    raise typer.Exit(2 if left else 0)


def _beside(corpus: Path) -> Path:
    return corpus.with_name(f"{corpus.name}.fixed.jsonl" if corpus.is_dir() else f"{corpus.stem}.fixed{corpus.suffix}")


def _check_one(
    corpus: Path, format: str | None, reading: ReadOptions, checked: Checked, target: Path | None, fixed: Counter[str]
) -> None:
    """Check a corpus and, if there is a target, write it there repaired."""
    from lacuner.cli.console import Watched, say
    from lacuner.corpus import write
    from lacuner.corpus.check import check_corpus, fix, unreadable
    from lacuner.data import Where
    from lacuner.errors import CorpusError

    note = unreadable(checked)
    try:
        docs = Watched(corpus, format=format, options=reading, on_error=note)
        seen = check_corpus(docs, str(corpus), checked)
        if target is not None:
            before = checked.counts["unreadable"]
            same_form = format if target.suffix == corpus.suffix else None
            lost = write((fix(doc, fixed) for doc in seen), target, format=same_form)
            lost.count("document that cannot be read", checked.counts["unreadable"] - before)
            say(f"wrote {target}: {lost}")
        else:
            for _ in seen:
                pass
    except CorpusError as error:
        note(error)
        return
    for reason, count in docs.lost:
        where = docs.lost.first.get(reason) or Where(str(corpus))
        checked.add("not as it was", where, f"{reason}: {count:,} in this file")


def _counts(checked: Checked) -> dict[str, Any]:
    return {
        "documents": checked.documents,
        "words": checked.words,
        "spans": checked.spans,
        "labels": dict(sorted(checked.labels.items())),
        "errors": checked.errors,
        "warnings": checked.counts.total() - checked.errors,
        "counts": dict(checked.counts),
    }


def _row(problem: Problem) -> dict[str, Any]:
    file, line = (problem.where.file, problem.where.line) if problem.where else (None, None)
    return {"kind": problem.kind, "error": problem.is_error, "file": file, "line": line, "message": problem.message}


def _summary(checked: Checked, everything: bool) -> None:
    for kind, count in checked.counts.items():
        if count > MOST and not everything:
            typer.echo(f"{kind}: {count - MOST:,} more (--all shows them)")
    labels = ", ".join(f"{label} {count:,}" for label, count in checked.labels.most_common()) or "no labels"
    typer.echo(f"{checked.documents:,} documents, {checked.words:,} words, {checked.spans:,} spans ({labels})")
    kinds = ", ".join(f"{kind}: {count:,}" for kind, count in checked.counts.items()) or "nothing is wrong"
    typer.echo(f"{checked.errors:,} errors, {checked.counts.total() - checked.errors:,} warnings: {kinds}")
