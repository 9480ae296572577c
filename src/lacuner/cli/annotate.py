"""`lacuner annotate`: weak labels from a dictionary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lacuner.cli import options

if TYPE_CHECKING:
    from lacuner.annotate.report import AnnotationReport
    from lacuner.cli.console import Watched
    from lacuner.data import Document

SUSPICIOUS = 30


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
        typer.Option("--regex", metavar="LABEL=PATTERN", help="A source; without a label: unsure. May be repeated."),
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
    gold: Annotated[Path | None, typer.Option("--gold", help="The truth for the texts, or for some of them.")] = None,
    report: Annotated[Path | None, typer.Option("--report", help="Write a report, one HTML file.")] = None,
    workers: Annotated[int | None, typer.Option("--workers", help="Processes; all cores by default.")] = None,
    format: options.Format = None,
    encoding: options.Encoding = "utf-8",
    words: options.Words = "unicode",
    dictionary_encoding: Annotated[
        str | None, typer.Option("--dictionary-encoding", help="Found out by default.")
    ] = None,
    dictionary_format: Annotated[
        str | None,
        typer.Option("--dictionary-format", help="If the ending does not tell: tsv, csv, txt, jsonl, json."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Label texts with the terms of a dictionary, and say what that dictionary does.

    Matches are the longest ones that begin and end with a word. What is not matched is unknown, not negative.
    """
    from lacuner.annotate import EntryPrecision, LabellingStatistics
    from lacuner.annotate import annotate as annotated
    from lacuner.annotate import lint as linted
    from lacuner.annotate.report import AnnotationReport, ExampleSampler, report_json, write_report
    from lacuner.cli.console import Watched, print_json, say
    from lacuner.cli.labelling_sources import dictionary_sources, named_pairs, rule_sources, stop_terms, unused_terms
    from lacuner.corpus import write
    from lacuner.evaluate.align import align_partial
    from lacuner.noise import NoiseMeter
    from lacuner.processes import usable_cores

    _check(bool(dictionary or regex or capitalised), workers, out)
    options.keep_inputs({"--out": out, "--report": report}, corpus, gold, *(dictionary or ()), *(stop or ()))
    stops = stop_terms(stop)
    matching = {"case": case, "overlaps": overlaps, "spacing": spacing, "stop": stops}
    files = {"format": dictionary_format, "encoding": dictionary_encoding}
    given = dictionary_sources(dictionary, label, named_pairs(map_, "--map"), files, matching)
    sources = [*given.sources, *rule_sources(regex, capitalised, stops, given.sources)]
    unseen = set().union(*given.by_document.values())
    reading = options.read_options(encoding, words=words)
    docs = Watched(corpus, format=format, options=reading)
    truth = Watched(gold, format=format, complete=True, options=reading) if gold else None
    statistics, examples, measuring = LabellingStatistics(), ExampleSampler(), NoiseMeter()
    precision = EntryPrecision() if truth else None
    combining: dict[str, Any] = {"by": by, "ambiguous": ambiguous, "overlaps": overlaps}
    weak = annotated(docs, sources, statistics=statistics, workers=workers or usable_cores(), **combining)

    def seen() -> Iterator[Document]:
        for real, doc in align_partial(_read_gold(truth), weak) if truth else ((None, doc) for doc in weak):
            unseen.discard(doc.id)
            examples.add(doc, real)
            if real is not None and precision is not None:
                precision.add(doc, real)
                measuring.add(doc, real)
            yield doc

    lost = write(seen(), out)
    measured = measuring.result() if truth else None
    labelling = AnnotationReport(
        title=f"Weak labels of {corpus.name}",
        settings={
            **{"corpus": corpus, "dictionary": dictionary, "label": label, "map": map_, "gold": gold},
            **{"regex": regex, "capitalised": capitalised, **matching, "stop": stop, **combining},
        },
        statistics=statistics,
        sources=sources,
        examples=examples,
        lint_rows=[row for source in sources if source.entries for row in linted(source, statistics, precision)],
        measured=measured,
        lost={"reading": docs.lost, "writing": lost},
        problems=[*given.problems, *unused_terms(given.by_document, unseen)],
    )
    _account_for(labelling, docs, truth, out, labelling.problems[len(given.problems) :])
    if report is not None:
        write_report(report, labelling)
        say(f"wrote {report}")
    if json:
        print_json(report_json(labelling))
    else:
        _show(labelling, lint)


def _check(sources: bool, workers: int | None, out: Path) -> None:
    """What is better said now than after an hour."""
    from lacuner.corpus.formats import format_of
    from lacuner.errors import ConfigError

    if not sources:
        raise ConfigError("nothing to label with: give --dictionary, --regex or --capitalised")
    if workers is not None and workers < 1:
        raise ConfigError(f"--workers is {workers}, but at least 1 process has to do the work")
    format_of(out)


def _account_for(
    labelling: AnnotationReport, docs: Watched, truth: Watched | None, out: Path, problems: Iterable[str]
) -> None:
    """Say what was read, labelled and written, and what was lost on the way."""
    from lacuner.cli.console import report_lost, say
    from lacuner.noise import Measurement

    report_lost(docs.lost, f"read {docs.path}: {docs.documents:,} documents")
    measured, statistics = labelling.measured, labelling.statistics
    if truth and isinstance(measured, Measurement):
        having = f"{measured.scores.documents:,} of {statistics.documents:,} documents have gold"
        report_lost(truth.lost, f"read {truth.path}: {having}")
        if not measured.scores.exact.gold:
            say(f"{truth.path}: there is no entity in this gold, so that every label counts as wrong")
    for sentence in problems:
        say(sentence)
    report_lost(statistics.lost, "labelled")
    report_lost(labelling.lost["writing"], f"wrote {out}")
    if not statistics.documents:
        say(f"{docs.path}: there is no document in it, so that nothing was labelled")
    elif not statistics.matched:
        say(
            "nothing was found in any document: is it the right dictionary, and are terms and labels where they belong?"
        )


def _read_gold(gold: Watched) -> Iterator[Document]:
    """Gold documents; an error if there is none."""
    from lacuner.errors import CorpusError

    yield from gold
    if not gold.documents:
        raise CorpusError("there is no document in this gold", file=gold.path)


def _show(labelling: AnnotationReport, lint: bool) -> None:
    from lacuner.annotate import format_stop_list
    from lacuner.cli.console import print_table
    from lacuner.cli.score_table import incomplete_note, score_rows
    from lacuner.corpus.check import look_alike
    from lacuner.noise import Measurement

    statistics, measured, suspicious = labelling.statistics, labelling.measured, labelling.lint_rows
    share = statistics.matched / max(statistics.documents, 1)
    typer.echo(
        f"{statistics.documents:,} documents, {100 * share:.1f} % of them with a match: "
        f"{statistics.spans.total():,} spans, {statistics.unsure.total():,} unsure"
    )
    columns = ("source", "label", "found", "kept", "documents", "meet another source", "contradict it")
    rows = [
        (r.source, r.label or "(any)", r.spans, r.kept, r.documents, r.overlaps, r.conflicts)
        for r in statistics.table()
    ]
    print_table("", columns, rows)
    for named in look_alike(statistics.spans):
        typer.echo(f"labels that look alike: {named}")
    if isinstance(measured, Measurement):
        print_table("\nAgainst gold", ("", "P", "R", "F1", "correct", "weak", "gold"), score_rows(measured.scores))
        if measured.scores.incomplete:
            typer.echo(incomplete_note(measured.scores))
    if not lint:
        typer.echo(f"{len(suspicious):,} suspicious entries (--lint shows them)")
        return
    table = [
        (
            row.surface,
            " ".join(row.labels),
            row.matches,
            "" if row.wrong is None else row.wrong,
            ", ".join(row.reasons),
            f"{row.where.file}:{row.where.line}" if row.where else "",
        )
        for row in suspicious[:SUSPICIOUS]
    ]
    if not table:
        typer.echo("no suspicious entries")
        return
    print_table("\nSuspicious entries", ("entry", "labels", "matches", "wrong", "why", "where"), table)
    stops = format_stop_list(suspicious)
    typer.echo("\nA stop list to edit (save it, and give it as --stop):\n" + (stops or "(nothing to stop)"))
