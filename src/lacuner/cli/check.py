"""`lacuner check`: find problems in a corpus, with file and line."""

from __future__ import annotations

from collections import Counter, deque
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option

from lacuner.atomic import STANDARD_STREAM
from lacuner.cli.console import CorpusReader, echo, log, print_json
from lacuner.cli.options import InputOptions, Json, refuse_overwriting
from lacuner.corpus import write
from lacuner.corpus.streams import COMPRESSED, format_ending
from lacuner.data import Where
from lacuner.errors import ConfigError, CorpusError

if TYPE_CHECKING:
    from lacuner.corpus.check import Checker, Problem

SHOWN = 50
UNFIXABLE = ("unreadable", "crossing", "two labels")
"""Errors that need a decision by a person."""


def check(
    corpora: Annotated[list[Path], Argument(metavar="CORPUS", help="Files or folders, e.g. all splits; -: stdin.")],
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
    from lacuner.corpus.check import Checker

    if out is not None and (not fix or len(corpora) > 1):
        raise ConfigError("--out needs --fix and a single corpus")
    refuse_overwriting({"--out": out}, *corpora)
    problems: list[Problem] = []

    def report(problem: Problem) -> None:
        if json:
            problems.append(problem)
        elif all_ or checker.counts[problem.kind] <= SHOWN:
            echo(str(problem))

    checker = Checker(report)
    fixed: Counter[str] = Counter()
    for corpus in corpora:
        _check_corpus(corpus, inputs, checker, (out or _fixed_path(corpus)) if fix else None, fixed)
    checker.finish(rare)
    if json:
        print_json({**_counts(checker), "problems": [_row(problem) for problem in problems], "fixed": fixed})
    else:
        _print_summary(checker, all_)
        if fix:
            echo(f"fixed: {_join_counts(fixed) or 'nothing to fix'}")
    errors = sum(checker.counts[kind] for kind in UNFIXABLE) if fix else checker.errors
    raise Exit(2 if errors else 0)


def _fixed_path(corpus: Path) -> Path:
    """Where a repaired copy is written: beside the corpus, with the same ending; a folder becomes one file."""
    if corpus == STANDARD_STREAM:
        raise ConfigError("--fix of standard input needs --out")
    if corpus.is_dir():
        return corpus.with_name(f"{corpus.name}.fixed.jsonl")
    packed = corpus.suffix if corpus.suffix.lower() in COMPRESSED else ""
    plain = corpus.with_suffix("") if packed else corpus
    return corpus.with_name(f"{plain.stem}.fixed{plain.suffix}{packed}")


def _check_corpus(
    corpus: Path, inputs: InputOptions, checker: Checker, target: Path | None, fixed: Counter[str]
) -> None:
    """Check one corpus and, with a target, write a repaired copy there."""
    from lacuner.corpus.check import fix

    report = checker.add_unreadable
    try:
        reader = CorpusReader(corpus, inputs, keep_bad_spans=True, on_error=report)
        docs = checker.check(reader, str(corpus))
        if target is not None:
            before = checker.counts["unreadable"]
            same_ending = format_ending(target) == format_ending(corpus) and not corpus.is_dir()
            format = reader.format if same_ending else None
            lost = write((fix(doc, fixed) for doc in docs), target, format=format)
            lost.count("unreadable document", checker.counts["unreadable"] - before)
            log(f"wrote {target}: {lost}")
        else:
            deque(docs, maxlen=0)
    except CorpusError as error:
        report(error)
        return
    for reason, count in reader.lost:
        where = reader.lost.first.get(reason) or Where(str(corpus))
        checker.add("repaired while reading", where, f"{reason}: {count:,} in this file")


def _counts(checker: Checker) -> dict[str, Any]:
    return {
        "documents": checker.documents,
        "words": checker.words,
        "spans": checker.spans,
        "labels": dict(sorted(checker.labels.items())),
        "errors": checker.errors,
        "warnings": checker.warnings,
        "counts": checker.counts,
    }


def _row(problem: Problem) -> dict[str, Any]:
    file, line, _ = problem.where or (None, None, None)
    return {"kind": problem.kind, "error": problem.is_error, "file": file, "line": line, "message": problem.message}


def _print_summary(checker: Checker, show_all: bool) -> None:
    for kind, count in checker.counts.items():
        if count > SHOWN and not show_all:
            echo(f"{kind}: {count - SHOWN:,} more (--all shows them)")
    labels = ", ".join(f"{label} {count:,}" for label, count in checker.labels.most_common()) or "no labels"
    echo(f"{checker.documents:,} documents, {checker.words:,} words, {checker.spans:,} spans ({labels})")
    kinds = _join_counts(checker.counts) or "no problems"
    echo(f"{checker.errors:,} errors, {checker.warnings:,} warnings: {kinds}")


def _join_counts(counts: Counter[str]) -> str:
    return ", ".join(f"{name}: {count:,}" for name, count in counts.items())
