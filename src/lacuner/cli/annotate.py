"""`lacuner annotate`: weak labels from gazetteers and patterns (distant supervision)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option, echo

from lacuner.cli.console import CorpusReader, log, log_lost, print_json, print_scores, print_table
from lacuner.cli.options import InputOptions, Json, parse_pairs, refuse_overwriting
from lacuner.corpus import write
from lacuner.data import Document
from lacuner.errors import ConfigError, CorpusError

if TYPE_CHECKING:
    from lacuner.annotate import Entry, EntryPrecision, LabellingStatistics, LintRow, Source
    from lacuner.annotate.report import AnnotationReport, ExampleSampler
    from lacuner.noise import Measurement, NoiseMeter

PROBLEMS_SHOWN = 20
SUSPICIOUS_SHOWN = 30


@dataclass(frozen=True)
class SourceOptions:
    """Gazetteers, patterns and how they are matched; each field is an option of `lacuner annotate`."""

    dictionary: Annotated[
        list[Path] | None, Option(metavar="FILE", help="Gazetteer (TSV, CSV, TXT, JSON, SPARQL). Repeatable.")
    ] = None
    dictionary_format: Annotated[
        Literal["tsv", "csv", "txt", "jsonl", "json"] | None, Option(help="Default: from the file name.")
    ] = None
    dictionary_encoding: Annotated[str | None, Option(help="Gazetteer encoding. Default: detected.")] = None
    label: Annotated[str | None, Option(help="Label of entries that have none.")] = None
    map: Annotated[list[str] | None, Option(metavar="CLASS=LABEL", help="Label of a gazetteer class. Repeatable.")] = (
        None
    )
    case: Annotated[
        Literal["smart", "fold", "exact"], Option(help="smart: fold all but acronyms and common words.")
    ] = "smart"
    overlaps: Annotated[Literal["longest", "all"], Option(help="Overlapping matches to keep.")] = "longest"
    spacing: Annotated[Literal["given", "tokens"], Option(help="tokens: `5 - FU` matches 5-FU.")] = "given"
    stop: Annotated[list[Path] | None, Option(metavar="FILE", help="Stop list: one term per line. Repeatable.")] = None
    regex: Annotated[
        list[str] | None, Option(metavar="LABEL=PATTERN", help="Pattern; no label: unsure. Repeatable.")
    ] = None
    capitalised: Annotated[bool, Option("--capitalised", help="Mark other capitalised phrases as unsure.")] = False


def annotate(
    corpus: Annotated[Path, Argument(metavar="CORPUS", help="Input texts; existing labels are ignored.")],
    out: Annotated[Path, Option("--out", help="Output file with the weak labels.")],
    *,
    labelling: SourceOptions,
    ambiguous: Annotated[
        Literal["unsure", "first", "drop"], Option(help="Handling of entries with two labels.")
    ] = "unsure",
    by: Annotated[Literal["priority", "vote"], Option(help="How several sources are combined.")] = "priority",
    lint: Annotated[bool, Option("--lint", help="Show suspicious entries and suggest a stop list.")] = False,
    gold: Annotated[Path | None, Option(help="Gold annotations for all or some of the texts.")] = None,
    report: Annotated[Path | None, Option(help="HTML report.")] = None,
    workers: Annotated[int | None, Option(min=1, help="Number of processes. Default: all cores.")] = None,
    json: Json = False,
    inputs: InputOptions,
) -> None:
    """Create weak labels from gazetteers and patterns.

    Matches are the longest ones that start and end at word boundaries. Text without a match is unknown, not negative.
    """
    from lacuner.annotate import EntryPrecision, LabellingStatistics, NeighbourSample
    from lacuner.annotate import annotate as annotate_documents
    from lacuner.annotate import lint as lint_source
    from lacuner.annotate.report import AnnotationReport, ExampleSampler, report_json, write_report
    from lacuner.corpus.formats import format_of
    from lacuner.evaluate.align import align_partial
    from lacuner.noise import NoiseMeter
    from lacuner.processes import usable_cores

    format_of(out)  # fail early
    refuse_overwriting(
        {"--out": out, "--report": report}, corpus, gold, *(labelling.dictionary or ()), *(labelling.stop or ())
    )
    loaded = LabellingSources(labelling)
    reader = CorpusReader(corpus, inputs)
    gold_reader = CorpusReader(gold, inputs, complete=True) if gold else None
    statistics = LabellingStatistics(neighbours=NeighbourSample() if lint else None)
    weak = annotate_documents(
        reader,
        loaded.sources,
        by=by,
        ambiguous=ambiguous,
        overlaps=labelling.overlaps,
        statistics=statistics,
        workers=workers or usable_cores(),
    )
    examples, precision, noise_meter = ExampleSampler(), EntryPrecision(), NoiseMeter()
    unseen = set().union(*loaded.documents.values())
    pairs = align_partial(_read_gold(gold_reader), weak) if gold_reader else ((None, doc) for doc in weak)
    weak = _collect(pairs, unseen, examples, precision, noise_meter)
    lost = write(weak, out)  # nothing runs before `write` pulls the stream
    measured, measurement = (precision, noise_meter.result()) if gold else (None, None)
    missing = loaded.missing_documents(unseen)
    annotation = AnnotationReport(
        title=f"Weak labels of {corpus.name}",
        settings={"corpus": corpus, "gold": gold, "by": by, "ambiguous": ambiguous, **asdict(labelling)},
        statistics=statistics,
        sources=loaded.sources,
        examples=examples,
        lint_rows=[
            row for source in loaded.sources if source.entries for row in lint_source(source, statistics, measured)
        ],
        gold_scores=measurement.as_json() if measurement else None,
        lost={"reading": reader.lost, "writing": lost},
        problems=[*loaded.problems, *missing],
    )
    reader.log_lost()
    if gold_reader and measurement:
        _log_gold(gold_reader, measurement, statistics.documents)
    _log_labelling(corpus, statistics, missing)
    log_lost(lost, f"wrote {out}")
    loaded.write_gazetteer(out)
    if report is not None:
        write_report(report, annotation)
        log(f"wrote {report}")
    if json:
        print_json(report_json(annotation))
    else:
        _print_report(annotation, measurement, lint)


class LabellingSources:
    """The sources that the options name, in order of priority, gazetteers first; their problems are logged."""

    def __init__(self, options: SourceOptions) -> None:
        from lacuner.annotate import apply_stop_list, capitalised_source, read_stop_list, regex_source

        if not (options.dictionary or options.regex or options.capitalised):
            raise ConfigError("nothing to label with: give --dictionary, --regex or --capitalised")
        self.sources: list[Source] = []
        self.problems: list[str] = []
        """Problems in the gazetteer files, one sentence each."""
        self.documents: dict[Path, set[str]] = {}
        """For each gazetteer file with terms for single documents: the ids of these documents."""
        self.options = options
        self.entries: list[Sequence[Entry]] = []
        """The entries of each gazetteer that holds for all documents."""
        self.stop = stop = frozenset().union(*[read_stop_list(file) for file in options.stop or []])
        for file in options.dictionary or []:
            self._add_gazetteer(file, options, stop)
        for rule in options.regex or []:
            label, _, pattern = rule.partition("=")
            if not pattern:
                raise ConfigError(f"--regex is written LABEL=PATTERN, not {rule!r}")
            name = self._unique_name(f"regex {label.strip()}".strip())
            self.sources.append(regex_source(label.strip(), pattern, name=name))
        if options.capitalised:  # last: these spans have no type, so every other source has priority
            self.sources.append(capitalised_source(name=self._unique_name("capitalised")))
        if stop:  # gazetteers have applied it themselves
            self.sources = [source if source.entries else apply_stop_list(source, stop) for source in self.sources]

    def _add_gazetteer(self, file: Path, options: SourceOptions, stop: frozenset[str]) -> None:
        from lacuner.annotate import gazetteer_source, load_gazetteer, per_document_source

        gazetteer = load_gazetteer(
            file,
            label=options.label,
            mapping=parse_pairs(options.map or [], "--map", "CLASS=LABEL") or None,
            format=options.dictionary_format,
            encoding=options.dictionary_encoding,
        )
        problems = [str(problem) for problem in gazetteer.problems]
        for problem in problems[:PROBLEMS_SHOWN]:
            log(problem)
        if len(problems) > PROBLEMS_SHOWN:
            log(f"{file}: {len(problems) - PROBLEMS_SHOWN:,} more problems, listed in the report (--report)")
        self.problems += problems
        matching: dict[str, Any] = {"case": options.case, "overlaps": options.overlaps, "spacing": options.spacing}
        stems = [path.stem for path in options.dictionary or []]
        name = file.stem if stems.count(file.stem) == 1 else str(file)
        sources = []
        if len(gazetteer.entries):
            self.entries.append(gazetteer.entries)
            sources.append(gazetteer_source(gazetteer.entries, name=self._unique_name(name), stop=stop, **matching))
        if gazetteer.by_document:
            name = self._unique_name(f"{name}, by document")
            sources.append(per_document_source(gazetteer.by_document, name=name, stop=stop, **matching))
            self.documents.setdefault(file, set()).update(gazetteer.by_document)
        self.sources += sources
        log(f"read {file}: {len(gazetteer):,} entries, {gazetteer.skipped:,} rows skipped{_format_unmatched(sources)}")

    def write_gazetteer(self, out: Path) -> None:
        """Write the entries of all gazetteers beside the labels, for a tagger that is trained on them."""
        from lacuner.models.gazetteer import TaggerGazetteer, sidecar, write_sidecar

        if not self.entries:
            sidecar(out).unlink(missing_ok=True)  # of earlier labels in the same file
            return
        options = self.options
        gazetteer = TaggerGazetteer(self.entries[0], case=options.case, spacing=options.spacing, stop=self.stop)
        for entries in self.entries[1:]:
            gazetteer = gazetteer.extend(entries)
        log(f"wrote {write_sidecar(gazetteer, out)}: the gazetteer, for `lacuner train`")

    def _unique_name(self, name: str) -> str:
        """The name, with a number if another source has it."""
        taken = {source.name for source in self.sources}
        return next(unique for unique in chain([name], (f"{name} {n}" for n in count(2))) if unique not in taken)

    def missing_documents(self, unseen: set[str]) -> list[str]:
        """One sentence per gazetteer with terms for documents that did not occur in the corpus."""
        sentences = []
        for file, documents in self.documents.items():
            if missing := sorted(documents & unseen):
                share = f"{len(missing):,} of the {len(documents):,} documents it has terms for"
                sentences.append(f"{file}: {share} are not in the corpus, the first is {missing[0]!r}")
        return sentences


def _format_unmatched(sources: list[Source]) -> str:
    """How many entries are never matched, and why."""
    counts = {
        "stopped": sum(source.stopped for source in sources),
        "empty after normalising": sum(source.empty for source in sources),
    }
    text = ", ".join(f"{skipped:,} {name}" for name, skipped in counts.items() if skipped)
    return text and f"; {text}"


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
    for labels in similar_labels(statistics.spans):
        echo(f"labels that look alike: {labels}")
    if measurement:
        print_scores(measurement.scores, "weak", "\nAgainst gold")
    if lint:
        _print_lint(annotation.lint_rows)
    else:
        echo(f"{len(annotation.lint_rows):,} suspicious entries (--lint shows them)")


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
