"""`lacuner annotate`: weak labels from a dictionary."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lacuner.cli import options

if TYPE_CHECKING:
    from lacuner.annotate import LintRow, Source, Tally
    from lacuner.noise import Measurement
    from lacuner.types import Document, Lost

PROBLEMS = 20


def annotate(
    corpus: Annotated[Path, typer.Argument(metavar="CORPUS", help="Texts; labels in it are not looked at.")],
    out: Annotated[Path, typer.Option("--out", help="Where the texts with their weak labels go.")],
    dictionary: Annotated[
        list[Path] | None,
        typer.Option("--dictionary", help="TSV, CSV, TXT, JSON lines, SPARQL results; may be repeated."),
    ] = None,
    label: Annotated[str | None, typer.Option("--label", help="The label of entries that have none.")] = None,
    map_: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="CLASS=LABEL", help="Which class gives which label; may be repeated."),
    ] = None,
    case: Annotated[
        str, typer.Option("--case", help="exact, fold, or smart: folded but for acronyms and common words.")
    ] = "smart",
    ambiguous: Annotated[
        str, typer.Option("--ambiguous", help="An entry under two labels makes unsure spans, the first label, or drop.")
    ] = "unsure",
    overlaps: Annotated[str, typer.Option("--overlaps", help="Keep the longest match, or all.")] = "longest",
    spacing: Annotated[
        str, typer.Option("--spacing", help="Given words: white space as given, or tokens: `5 - FU` is 5-FU.")
    ] = "given",
    stop: Annotated[list[Path] | None, typer.Option("--stop", help="Terms never to match, one a line.")] = None,
    regex: Annotated[
        list[str] | None,
        typer.Option("--regex", metavar="LABEL=PATTERN", help="A pattern as a source; may be repeated."),
    ] = None,
    capitalised: Annotated[
        bool, typer.Option("--capitalised", help="Capitalised phrases that nothing else labels become unsure spans.")
    ] = False,
    by: Annotated[
        str, typer.Option("--by", help="Several sources combine by priority (their order) or vote.")
    ] = "priority",
    lint: Annotated[
        bool, typer.Option("--lint", help="Show the entries that do the damage, and suggest a stop list.")
    ] = False,
    gold: Annotated[Path | None, typer.Option("--gold", help="The truth for the same texts, to measure with.")] = None,
    report: Annotated[Path | None, typer.Option("--report", help="Write a report, one HTML file.")] = None,
    workers: Annotated[int | None, typer.Option("--workers", help="Processes; all cores by default.")] = None,
    format: options.Format = None,
    encoding: options.Encoding = "utf-8",
    dictionary_encoding: Annotated[
        str | None, typer.Option("--dictionary-encoding", help="Found out by default.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Label texts with the terms of a dictionary, and say what that dictionary does.

    Matches are the longest ones that begin and end with a word. What is not matched is unknown, not negative.
    """
    from lacuner.annotate import Judgement, Tally, stop_list, usable_cores
    from lacuner.annotate import annotate as annotated
    from lacuner.annotate import lint as linted
    from lacuner.cli.show import Watched, print_json, report_lost
    from lacuner.corpus import ReadOptions, write
    from lacuner.errors import ConfigError
    from lacuner.evaluate import pair
    from lacuner.noise import measure

    if not dictionary and not regex and not capitalised:
        raise ConfigError("nothing to label with: give --dictionary, --regex or --capitalised")
    matching = {"case": case, "overlaps": overlaps, "spacing": spacing, "stop": _stop_terms(stop)}
    sources = _dictionaries(dictionary, label, _pairs(map_, "--map"), dictionary_encoding, matching)
    sources += _rules(regex, capitalised)
    reading = ReadOptions(encoding=encoding)
    docs = Watched(corpus, format=format, options=reading)
    truth = Watched(gold, format=format, complete=True, options=reading) if gold else None
    tally, judgement, pairs = Tally(), Judgement() if truth else None, []
    count = usable_cores() if workers is None else workers
    settings: dict[str, Any] = {"by": by, "ambiguous": ambiguous, "overlaps": overlaps}
    weak = annotated(docs, sources, tally=tally, workers=count, **settings)

    def seen() -> Iterator[Document]:
        if truth is None or judgement is None:
            yield from weak
            return
        for real, doc in pair(truth, weak):
            judgement.add(doc, real)
            pairs.append((real, doc))
            yield doc

    lost = write(seen(), out)
    measured = measure([doc for _, doc in pairs], [real for real, _ in pairs]) if truth else None
    rows = [row for source in sources if source.entries for row in linted(source, tally, judgement=judgement)]
    report_lost(docs.lost, f"read {corpus}: {docs.documents:,} documents")
    report_lost(tally.lost, "labelled")
    report_lost(lost, f"wrote {out}")
    if json:
        print_json(_facts(tally, rows, measured, out, lost))
        return
    _show(tally, measured)
    if lint:
        _show_lint(rows, stop_list(rows))


def _pairs(given: list[str] | None, option: str) -> dict[str, str]:
    from lacuner.errors import ConfigError

    found = {}
    for each in given or []:
        left, equals, right = each.partition("=")
        if not equals or not left or not right:
            raise ConfigError(f"{option} is written NAME=VALUE, not {each!r}")
        found[left] = right
    return found


def _stop_terms(files: list[Path] | None) -> frozenset[str]:
    from lacuner.annotate import read_stop_list

    return frozenset().union(*[read_stop_list(file) for file in files or []])


def _dictionaries(
    files: list[Path] | None, label: str | None, mapping: dict[str, str], encoding: str | None, matching: dict[str, Any]
) -> list[Source]:
    """A source a dictionary; what is wrong with its file is said, row by row."""
    from lacuner.annotate import dictionary_source, load_dictionary, per_document_source
    from lacuner.cli.show import say

    sources = []
    names = [file.stem for file in files or []]
    for number, file in enumerate(files or []):
        found = load_dictionary(file, label=label, mapping=mapping or None, encoding=encoding)
        for problem in found.problems[:PROBLEMS]:
            say(str(problem))
        if len(found.problems) > PROBLEMS:
            say(f"{file}: {len(found.problems) - PROBLEMS:,} more such rows")
        say(f"read {file}: {len(found):,} entries, {found.skipped:,} rows skipped")
        name = names[number] if names.count(names[number]) == 1 else str(file)
        if len(found.entries):
            sources.append(dictionary_source(found.entries, name=name, **matching))
        if found.by_document:
            sources.append(per_document_source(found.by_document, name=f"{name}, by document", **matching))
    return sources


def _rules(regex: list[str] | None, capitalised: bool) -> list[Source]:
    from lacuner.annotate import capitalised_source, regex_source

    rules = [regex_source(label, pattern) for label, pattern in (each.split("=", 1) for each in _checked(regex))]
    return [*rules, *([capitalised_source()] if capitalised else [])]


def _checked(regex: list[str] | None) -> list[str]:
    _pairs(regex, "--regex")
    return regex or []


def _facts(tally: Tally, rows: list[LintRow], measured: Measurement | None, out: Path, lost: Lost) -> dict[str, Any]:
    """The same facts for machines."""
    return {
        "out": str(out),
        "documents": tally.documents,
        "documents_with_a_match": tally.matched,
        "spans": dict(sorted(tally.spans.items())),
        "unsure": dict(sorted(tally.unsure.items())),
        "sources": [asdict(row) for row in tally.table()],
        "suspicious": [
            {**row._asdict(), "where": row.where and [row.where.file, row.where.line], "precision": row.precision}
            for row in rows
        ],
        "lost": {**dict(tally.lost), **dict(lost)},
        "gold": None if measured is None else measured.as_json(),
    }


def _show(tally: Tally, measured: Measurement | None) -> None:
    from lacuner.cli.show import print_table
    from lacuner.cli.tables import score_rows

    share = tally.matched / max(tally.documents, 1)
    typer.echo(
        f"{tally.documents:,} documents, {100 * share:.1f} % of them with a match: {tally.spans.total():,} spans, "
        f"{tally.unsure.total():,} unsure"
    )
    columns = ("source", "label", "found", "kept", "documents", "meet another source", "contradict it")
    rows = [
        (r.source, r.label or "(any)", r.spans, r.kept, r.documents, r.overlaps, r.conflicts) for r in tally.table()
    ]
    print_table("", columns, rows)
    if measured is not None:
        print_table("\nAgainst gold", ("", "P", "R", "F1", "correct", "weak", "gold"), score_rows(measured.scores))


def _show_lint(rows: list[LintRow], stops: str) -> None:
    from lacuner.cli.show import print_table

    table = [
        (
            row.surface,
            " ".join(row.labels),
            row.matches,
            "" if row.wrong is None else row.wrong,
            ", ".join(row.reasons),
            f"{row.where.file}:{row.where.line}" if row.where else "",
        )
        for row in rows[:30]
    ]
    print_table("\nSuspicious entries", ("entry", "labels", "matches", "wrong", "why", "where"), table)
    typer.echo("\nA stop list to edit (save it, and give it as --stop):\n" + (stops or "(nothing to stop)"))
