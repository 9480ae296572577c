"""`lacuner annotate`: weak labels from a dictionary."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lacuner.cli import options

if TYPE_CHECKING:
    from lacuner.annotate.report import Labelling
    from lacuner.types import Document

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
    words: options.Words = "unicode",
    dictionary_encoding: Annotated[
        str | None, typer.Option("--dictionary-encoding", help="Found out by default.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Label texts with the terms of a dictionary, and say what that dictionary does.

    Matches are the longest ones that begin and end with a word. What is not matched is unknown, not negative.
    """
    from lacuner.annotate import Judgement, Tally, usable_cores
    from lacuner.annotate import annotate as annotated
    from lacuner.annotate import lint as linted
    from lacuner.annotate.report import Examples, Labelling, report_json, write_report
    from lacuner.cli.show import Watched, print_json, report_lost, say
    from lacuner.cli.sources import dictionary_sources, named_pairs, rule_sources, stop_terms
    from lacuner.corpus import write
    from lacuner.errors import ConfigError
    from lacuner.evaluate import pair
    from lacuner.noise import measure

    if not dictionary and not regex and not capitalised:
        raise ConfigError("nothing to label with: give --dictionary, --regex or --capitalised")
    matching = {"case": case, "overlaps": overlaps, "spacing": spacing, "stop": stop_terms(stop)}
    mapping = named_pairs(map_, "--map")
    sources, problems = dictionary_sources(dictionary, label, mapping, dictionary_encoding, matching)
    sources += rule_sources(regex, capitalised)
    reading = options.read_options(encoding, words=words)
    docs = Watched(corpus, format=format, options=reading)
    truth = Watched(gold, format=format, complete=True, options=reading) if gold else None
    tally, judgement, examples = Tally(), Judgement() if truth else None, Examples()
    cores = usable_cores() if workers is None else workers
    combining: dict[str, Any] = {"by": by, "ambiguous": ambiguous, "overlaps": overlaps}
    weak = annotated(docs, sources, tally=tally, workers=cores, **combining)
    pairs: list[tuple[Document, Document]] = []

    def seen() -> Iterator[Document]:
        for real, doc in pair(truth, weak) if truth else ((None, doc) for doc in weak):
            examples.add(doc, real)
            if real is not None and judgement is not None:
                judgement.add(doc, real)
                pairs.append((real, doc))
            yield doc

    lost = write(seen(), out)
    labelling = Labelling(
        title=f"Weak labels of {corpus.name}",
        settings={"corpus": corpus, "dictionary": dictionary, "gold": gold, **matching, "stop": stop, **combining},
        tally=tally,
        sources=sources,
        examples=examples,
        lint_rows=[row for source in sources if source.entries for row in linted(source, tally, judgement=judgement)],
        measured=measure([doc for _, doc in pairs], [real for real, _ in pairs]) if truth else None,
        lost={"reading": docs.lost, "writing": lost},
        problems=problems,
    )
    report_lost(docs.lost, f"read {corpus}: {docs.documents:,} documents")
    report_lost(tally.lost, "labelled")
    report_lost(lost, f"wrote {out}")
    if report is not None:
        write_report(report, labelling)
        say(f"wrote {report}")
    if json:
        print_json(report_json(labelling))
    else:
        _show(labelling, lint)


def _show(labelling: Labelling, lint: bool) -> None:
    from lacuner.annotate import stop_list
    from lacuner.cli.show import print_table
    from lacuner.cli.tables import score_rows
    from lacuner.noise import Measurement

    tally, measured, suspicious = labelling.tally, labelling.measured, labelling.lint_rows
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
    if isinstance(measured, Measurement):
        print_table("\nAgainst gold", ("", "P", "R", "F1", "correct", "weak", "gold"), score_rows(measured.scores))
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
    print_table("\nSuspicious entries", ("entry", "labels", "matches", "wrong", "why", "where"), table)
    stops = stop_list(suspicious)
    typer.echo("\nA stop list to edit (save it, and give it as --stop):\n" + (stops or "(nothing to stop)"))
