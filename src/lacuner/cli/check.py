"""`lacuner check`: find problems in a corpus, with file and line."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option, echo

from lacuner.cli.console import CorpusReader, log, print_json
from lacuner.cli.options import InputOptions, Json, refuse_overwriting
from lacuner.corpus import write
from lacuner.data import Where
from lacuner.errors import ConfigError, CorpusError

if TYPE_CHECKING:
    from lacuner.corpus.check import Checked, Problem

SHOWN = 50
UNFIXABLE = ("unreadable", "crossing", "two labels")
"""Errors that need a decision by a person."""


def check(
    corpora: Annotated[list[Path], Argument(metavar="CORPUS", help="Files or folders, e.g. all splits.")],
    *,
    fix: Annotated[bool, Option("--fix", help="Write a repaired copy.")] = False,
    out: Annotated[Path | None, Option(help="Repaired copy. Default: NAME.fixed.ENDING.")] = None,
    rare: Annotated[int, Option(help="Labels with fewer spans are reported as rare.")] = 5,
    all_: Annotated[bool, Option("--all", help=f"Show all problems, not {SHOWN} of each kind.")] = False,
    json: Json = False,
    inputs: InputOptions,
) -> None:
    """Find misaligned spans, duplicates, leaks and rare labels.

    Exit status 2 means that there are errors (with --fix: errors that need a decision), 0 that there are at most
    warnings.
    """
    from lacuner.corpus.check import Checked, finish

    if out is not None and (not fix or len(corpora) > 1):
        raise ConfigError("--out needs --fix and a single corpus")
    refuse_overwriting({"--out": out}, *corpora)
    problems: list[Problem] = []

    def report(problem: Problem) -> None:
        if json:
            problems.append(problem)
        elif all_ or checked.counts[problem.kind] <= SHOWN:
            echo(str(problem))

    checked = Checked(report)
    fixed: Counter[str] = Counter()
    for corpus in corpora:
        _check_corpus(corpus, inputs, checked, (out or _fixed_path(corpus)) if fix else None, fixed)
    finish(checked, rare)
    if json:
        print_json({**_counts(checked), "problems": [_row(problem) for problem in problems], "fixed": dict(fixed)})
    else:
        _print_summary(checked, all_)
        if fix:
            echo(f"fixed: {_join_counts(fixed) or 'nothing to fix'}")
    errors = sum(checked.counts[kind] for kind in UNFIXABLE) if fix else checked.errors
    raise Exit(2 if errors else 0)


def _fixed_path(corpus: Path) -> Path:
    return corpus.with_name(f"{corpus.name}.fixed.jsonl" if corpus.is_dir() else f"{corpus.stem}.fixed{corpus.suffix}")


def _check_corpus(
    corpus: Path, inputs: InputOptions, checked: Checked, target: Path | None, fixed: Counter[str]
) -> None:
    """Check one corpus and, with a target, write a repaired copy there."""
    from lacuner.corpus.check import check_corpus, fix, unreadable

    report = unreadable(checked)
    try:
        reader = CorpusReader(corpus, inputs, keep_bad_spans=True, on_error=report)
        docs = check_corpus(reader, str(corpus), checked)
        if target is not None:
            before = checked.counts["unreadable"]
            format = inputs.format if target.suffix == corpus.suffix else None
            lost = write((fix(doc, fixed) for doc in docs), target, format=format)
            lost.count("unreadable document", checked.counts["unreadable"] - before)
            log(f"wrote {target}: {lost}")
        else:
            for _ in docs:
                pass
    except CorpusError as error:
        report(error)
        return
    for reason, count in reader.lost:
        where = reader.lost.first.get(reason) or Where(str(corpus))
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


def _print_summary(checked: Checked, show_all: bool) -> None:
    for kind, count in checked.counts.items():
        if count > SHOWN and not show_all:
            echo(f"{kind}: {count - SHOWN:,} more (--all shows them)")
    labels = ", ".join(f"{label} {count:,}" for label, count in checked.labels.most_common()) or "no labels"
    echo(f"{checked.documents:,} documents, {checked.words:,} words, {checked.spans:,} spans ({labels})")
    counts = _counts(checked)
    kinds = _join_counts(checked.counts) or "no problems"
    echo(f"{counts['errors']:,} errors, {counts['warnings']:,} warnings: {kinds}")


def _join_counts(counts: Counter[str]) -> str:
    return ", ".join(f"{name}: {count:,}" for name, count in counts.items())
