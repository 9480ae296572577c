"""`lacuner annotate`: weak labels from gazetteers, patterns and models (distant supervision)."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from lacuner.atomic import STANDARD_STREAM
from lacuner.cli.console import CorpusReader, echo, log, log_lost, print_json, print_scores, print_table
from lacuner.cli.options import FormatName, InputOptions, Json, parse_location, refuse_overwriting
from lacuner.cli.shards import AnnotateJob, ShardOptions, lost_of, refuse, run_in_shards, sample_documents
from lacuner.cli.sources import LabellingSources, SourceOptions
from lacuner.corpus import write
from lacuner.data import Document
from lacuner.errors import ConfigError, CorpusError

if TYPE_CHECKING:
    from lacuner.annotate import EntryPrecision, LabellingStatistics, LintRow
    from lacuner.annotate.report import AnnotationReport, ExampleSampler
    from lacuner.annotate.source_accuracy import AccuracyRow
    from lacuner.noise import Measurement, NoiseMeter

SUSPICIOUS_SHOWN = 30


def annotate(
    corpus: Annotated[
        Path, Argument(metavar="CORPUS", parser=parse_location, help="Input texts; existing labels are ignored.")
    ],
    out: Annotated[
        Path,
        Option(
            "--out", metavar="PATH", parser=parse_location, help="Output file with the weak labels. -: standard output."
        ),
    ],
    *,
    labelling: SourceOptions,
    ambiguous: Annotated[
        Literal["unsure", "first", "drop"],
        Option(help="What entries with two labels give: unsure spans, the first label, or nothing."),
    ] = "unsure",
    by: Annotated[
        Literal["priority", "vote", "model"],
        Option(help="How sources are combined: the earlier wins, one vote each, or by estimated accuracy."),
    ] = "priority",
    min_probability: Annotated[
        float | None,
        Option(min=0, max=1, help="With --by model: spans below this probability are unsure. Default: 0.2."),
    ] = None,
    lint: Annotated[bool, Option("--lint", help="Show suspicious entries and suggest a stop list.")] = False,
    gold: Annotated[
        Path | None, Option(help="Gold annotations of some or all of the texts, to measure the labels with.")
    ] = None,
    report: Annotated[Path | None, Option(help="HTML report to write: matches, examples, suspicious entries.")] = None,
    format_out: Annotated[
        FormatName | None, Option(help="Output format. Default: from the file name; jsonl with --on.")
    ] = None,
    json: Json = False,
    shards: ShardOptions,
    inputs: InputOptions,
) -> None:
    """Label texts with gazetteers, patterns and other models.

    Matches are the longest ones that start and end at word boundaries. Text without a match is unknown, not negative.
    """
    from lacuner.annotate import EntryPrecision, LabellingStatistics, LabelModel, NeighbourSample, label_documents
    from lacuner.annotate import lint as lint_source
    from lacuner.annotate.report import AnnotationReport, ExampleSampler, report_json, write_report
    from lacuner.corpus.formats import format_of
    from lacuner.evaluate.align import align_partial
    from lacuner.noise import NoiseMeter
    from lacuner.processes import usable_cores

    threshold = _threshold(by, min_probability)
    refuse_overwriting({"--out": out, "--report": report}, corpus, gold, *labelling.files())
    combine: dict[str, Any] = {"by": by, "ambiguous": ambiguous, "min_probability": threshold}
    if shards.on is not None:
        refuse({"--gold": gold, "--report": report, "--lint": lint})
        _annotate_in_shards(corpus, out, labelling, combine, format_out or "jsonl", shards, inputs, json)
        return
    shards.check_unused(out, workers=False)
    if json and out == STANDARD_STREAM:
        raise ConfigError("--json prints to standard output, too: give --out a file")
    format_of(out, format_out)  # fail early
    loaded = LabellingSources(labelling)
    reader = CorpusReader(corpus, inputs)
    gold_reader = CorpusReader(gold, inputs, complete=True) if gold else None
    statistics = LabellingStatistics(neighbours=NeighbourSample() if lint else None)
    model = LabelModel(loaded.sources, overlaps=labelling.overlaps, **combine)
    weak = label_documents(reader, model, statistics=statistics, workers=shards.workers or usable_cores())
    examples, precision, noise_meter = ExampleSampler(), EntryPrecision(), NoiseMeter()
    unseen = set().union(*loaded.documents.values())
    pairs = align_partial(_read_gold(gold_reader), weak) if gold_reader else ((None, doc) for doc in weak)
    weak = _collect(pairs, unseen, examples, precision, noise_meter)
    lost = write(weak, out, format=format_out)  # nothing runs before `write` pulls the stream
    measured, measurement = (precision, noise_meter.result()) if gold else (None, None)
    missing = loaded.missing_documents(unseen)
    annotation = AnnotationReport(
        title=f"Weak labels of {corpus.name}",
        settings=_settings(corpus, gold, combine, labelling),
        statistics=statistics,
        sources=loaded.sources,
        examples=examples,
        lint_rows=[
            row for source in loaded.sources if source.entries for row in lint_source(source, statistics, measured)
        ],
        gold_scores=measurement.as_json() if measurement else None,
        lost={"reading": reader.lost, "writing": lost},
        problems=[*loaded.problems, *missing],
        accuracy=model.accuracy.rows if model.accuracy else (),
    )
    reader.log_lost()
    if gold_reader and measurement:
        _log_gold(gold_reader, measurement, statistics.documents)
    _log_labelling(corpus, statistics, missing)
    log_lost(lost, f"wrote {'standard output' if out == STANDARD_STREAM else out}")
    loaded.write_gazetteer(out)
    if report is not None:
        write_report(report, annotation)
        log(f"wrote {report}")
    if json:
        print_json(report_json(annotation))
        return
    with redirect_stdout(sys.stderr if out == STANDARD_STREAM else sys.stdout):
        _print_report(annotation, measurement, lint)


def _settings(corpus: Path, gold: Path | None, combine: dict[str, Any], labelling: SourceOptions) -> dict[str, object]:
    """Inputs and options, for the report."""
    probability = combine["min_probability"] if combine["by"] == "model" else None
    options = {"by": combine["by"], "min_probability": probability, "ambiguous": combine["ambiguous"]}
    return {"corpus": corpus, "gold": gold, **options, **asdict(labelling)}


def _annotate_in_shards(
    corpus: Path,
    out: Path,
    labelling: SourceOptions,
    combine: dict[str, Any],
    format_out: str,
    shards: ShardOptions,
    inputs: InputOptions,
    json: bool,
) -> None:
    """Annotate with `--on`, and print the statistics of all shards together."""
    from lacuner.annotate import LabellingStatistics
    from lacuner.annotate import lint as lint_source
    from lacuner.annotate.pipeline import fit_to_beginning
    from lacuner.annotate.report import AnnotationReport, ExampleSampler, report_json

    loaded = LabellingSources(labelling)
    job = AnnotateJob(labelling, combine, format_out, all(source.forkable for source in loaded.sources))
    model = job.label_model(loaded)
    if combine["by"] == "model":
        fit_to_beginning(sample_documents(corpus, inputs), model)
        job = replace(job, accuracy=model.accuracy)
    summary = run_in_shards(job, corpus, out, inputs, shards)
    empty = LabellingStatistics().as_json()
    statistics = LabellingStatistics.from_json({**empty, **summary["counts"]})
    missing = loaded.missing_documents(
        set().union(*loaded.documents.values()) - set(summary["counts"].get("with_own_terms", ()))
    )
    annotation = AnnotationReport(
        title=f"Weak labels of {corpus.name}",
        settings=_settings(corpus, None, combine, labelling),
        statistics=statistics,
        sources=loaded.sources,
        examples=ExampleSampler(),
        lint_rows=[row for source in loaded.sources if source.entries for row in lint_source(source, statistics, None)],
        lost={step: lost_of(summary[step]) for step in ("reading", "writing")},
        problems=[*loaded.problems, *missing],
        accuracy=model.accuracy.rows if model.accuracy else (),
    )
    log_lost(annotation.lost["reading"], f"read {corpus}: {statistics.documents:,} documents")
    _log_labelling(corpus, statistics, missing)
    log_lost(annotation.lost["writing"], f"wrote {out}")
    loaded.write_gazetteer(out)
    if json:
        print_json({**report_json(annotation), "failed": summary["failed"]})
    else:
        _print_report(annotation, None, lint=False)


def _threshold(by: str, min_probability: float | None) -> float:
    """The probability below which spans are unsure; an error if the option has no effect."""
    from lacuner.annotate.label_model import MIN_PROBABILITY

    if min_probability is None:
        return MIN_PROBABILITY
    if by != "model":
        raise ConfigError("--min-probability is for sources that are combined by accuracy: add --by model")
    return min_probability


def _collect(
    pairs: Iterable[tuple[Document | None, Document]],
    unseen: set[str],
    examples: ExampleSampler,
    precision: EntryPrecision,
    noise_meter: NoiseMeter,
) -> Iterator[Document]:
    """Pass the weak documents on, while examples and counts for the report are collected from them and their gold."""
    for gold, doc in pairs:
        unseen.discard(doc.id)
        examples.add(doc, gold)
        if gold is not None:
            precision.add(doc, gold)
            noise_meter.add(doc, gold)
        yield doc


def _read_gold(reader: CorpusReader) -> Iterator[Document]:
    yield from reader
    if not reader.documents:
        raise CorpusError("no document in this gold file", file=reader.path)


def _log_gold(reader: CorpusReader, measurement: Measurement, documents: int) -> None:
    log_lost(reader.lost, f"read {reader.path}: {measurement.scores.documents:,} of {documents:,} documents have gold")
    if not measurement.scores.exact.gold:
        log(f"{reader.path}: no entity in this gold file, so every label counts as wrong")


def _log_labelling(corpus: Path, statistics: LabellingStatistics, missing: list[str]) -> None:
    for sentence in missing:
        log(sentence)
    log_lost(statistics.lost, "labeled")
    if not statistics.documents:
        log(f"{corpus}: no document in this corpus, so nothing was labeled")
    elif not statistics.matched:
        log("no match in any document: is it the right gazetteer, and are terms and labels in the right columns?")


def _print_report(annotation: AnnotationReport, measurement: Measurement | None, lint: bool) -> None:
    from lacuner.corpus.check import similar_labels

    statistics = annotation.statistics
    matched = 100 * statistics.matched / max(statistics.documents, 1)
    spans, unsure = statistics.spans.total(), statistics.unsure.total()
    echo(f"{statistics.documents:,} documents, {matched:.1f} % with a match: {spans:,} spans, {unsure:,} unsure")
    columns = ("source", "label", "found", "kept", "documents", "overlaps another source", "conflicts with it")
    table = statistics.table()
    rows = [(r.source, r.label or "(any)", r.spans, r.kept, r.documents, r.overlaps, r.conflicts) for r in table]
    print_table("", columns, rows)
    if annotation.accuracy:
        _print_accuracy(annotation.accuracy)
    for labels in similar_labels(statistics.spans):
        echo(f"labels that look alike: {labels}; if they are the same type, write them alike in the gazetteer")
    if measurement:
        print_scores(measurement.scores, "weak", "\nAgainst gold")
    if lint:
        _print_lint(annotation.lint_rows)
    else:
        echo(f"{len(annotation.lint_rows):,} suspicious entries (--lint shows them)")


def _print_accuracy(rows: Sequence[AccuracyRow]) -> None:
    cells = [
        (
            row.source,
            row.label,
            f"{row.claims:,}",
            f"{row.accuracy:.2f}" if row.propensity is not None else f"({row.accuracy:.2f})",
            "" if row.propensity is None else f"{row.propensity:.2f}",
        )
        for row in rows
    ]
    columns = ("source", "label", "spans", "accuracy", "propensity")
    print_table("\nEstimated accuracy", columns, cells)
    if any(row.propensity is None for row in rows):
        echo("(in brackets: too few sources have this label, so the accuracy is that of the source's other labels)")


def _print_lint(lint_rows: Sequence[LintRow]) -> None:
    from lacuner.annotate import format_longer_phrases, format_stop_list

    if not lint_rows:
        echo("no suspicious entries")
        return
    rows = [
        (
            row.surface,
            " ".join(row.labels),
            row.matches,
            "" if row.wrong is None else row.wrong,
            ", ".join(row.reasons),
            row.where or "",
        )
        for row in lint_rows[:SUSPICIOUS_SHOWN]
    ]
    print_table("\nSuspicious entries", ("entry", "labels", "matches", "wrong", "why", "where"), rows)
    stop_list = format_stop_list(lint_rows) or "(no entry to stop)"
    echo(f"\nSuggested stop list (edit and save it, then pass it as --stop):\n{stop_list}")
    if longer := format_longer_phrases(lint_rows):
        echo(f"Some entries are right, but inside longer phrases: add the longer phrases that are names:\n{longer}")
