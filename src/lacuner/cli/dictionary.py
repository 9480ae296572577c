"""`lacuner dictionary build`: gazetteers from Wikidata, ontologies, UMLS, thesauri and spreadsheets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from typer import Argument, Option

from lacuner.cli.console import log, print_json, print_table
from lacuner.cli.options import Json, parse_pairs, refuse_overwriting

if TYPE_CHECKING:
    from lacuner.annotate.knowledge import BuildReport

PROBLEMS_SHOWN = 20
Format: TypeAlias = Literal["wikidata", "table", "xlsx", "obo", "owl", "json-ld", "rrf"]


def build(
    files: Annotated[list[Path], Argument(metavar="FILE", help="Knowledge base: dump, ontology, table, UMLS folder.")],
    out: Annotated[Path, Option("--out", help="Gazetteer to write (.tsv).")],
    *,
    classes: Annotated[
        list[str] | None,
        Option("--class", metavar="CLASS=LABEL", help="Label for a class; other classes are skipped. Repeatable."),
    ] = None,
    subclasses: Annotated[
        bool, Option("--subclasses", help="Wikidata dump: include subclasses of the classes; the dump is read twice.")
    ] = False,
    label: Annotated[str | None, Option(help="Label of all entries; in a table, of rows that have none.")] = None,
    language: Annotated[
        list[str] | None, Option(metavar="TAG", help="Language to keep, e.g. en. Repeatable. Default: all.")
    ] = None,
    kind: Annotated[
        list[str] | None,
        Option(
            metavar="KIND",
            help="Kind of names: label, alias, exact, narrow, broad, related, hidden. Default: the first three.",
        ),
    ] = None,
    min_length: Annotated[int, Option(min=1, help="Minimum number of characters of a name.")] = 2,
    max_length: Annotated[int, Option(min=1, max=1000, help="Maximum number of characters of a name.")] = 100,
    keep_common: Annotated[bool, Option("--keep-common", help="Keep names that are common English words.")] = False,
    common_words: Annotated[
        Path | None,
        Option(metavar="FILE", help="More common words to leave out, one per line, e.g. the top of a frequency list."),
    ] = None,
    keep_numbers: Annotated[bool, Option("--keep-numbers", help="Keep names without a letter.")] = False,
    format: Annotated[Format | None, Option(help="Format of the files. Default: detected.")] = None,
    encoding: Annotated[str, Option(help="Encoding of the files.")] = "utf-8",
    sheet: Annotated[str | None, Option(help="Sheet of an Excel file. Default: the first.")] = None,
    json: Json = False,
) -> None:
    """Build a gazetteer from a knowledge base.

    Names and synonyms become entries, with their identifier, kind and language. Names that are left out are counted by
    reason.
    """
    from lacuner.annotate.knowledge import KnowledgeFile, NameFilter, build_gazetteer
    from lacuner.annotate.knowledge.filters import DEFAULT_KINDS, read_common_words
    from lacuner.errors import ConfigError

    if out.suffix.lower() not in (".tsv", ".tab"):
        raise ConfigError("a gazetteer is written as TSV: use the ending .tsv", file=out)
    refuse_overwriting({"--out": out}, *files, common_words)
    if subclasses and not classes:
        raise ConfigError("--subclasses needs the classes whose subclasses count: give --class CLASS=LABEL")
    labels = parse_pairs(classes or [], "--class", "CLASS=LABEL") or None
    common = read_common_words(common_words) if common_words is not None else frozenset()
    names = NameFilter(language or (), kind or DEFAULT_KINDS, min_length, max_length, keep_common, keep_numbers, common)
    class_names = frozenset(labels or ())
    sources = [KnowledgeFile(file, encoding, class_names, sheet, label, subclasses) for file in files]
    report = build_gazetteer(sources, out, labels=labels, names=names, format=format)
    for problem in report.problems[:PROBLEMS_SHOWN]:
        log(str(problem))
    if len(report.problems) > PROBLEMS_SHOWN:
        log("more problems like these are counted below")
    log(f"wrote {out}: {report.entries.total():,} entries")
    if json:
        counts = {"entries": report.entries, "skipped": report.skipped, "filtered": report.filtered}
        facts = {name: dict(counter.most_common()) for name, counter in counts.items()}
        print_json({"concepts": report.concepts, **facts, "problems": list(map(str, report.problems))})
    else:
        _print_report(report)


def _print_report(report: BuildReport) -> None:
    print_table("", ("label", "entries"), [(name, f"{times:,}") for name, times in report.entries.most_common()])
    rows = [("name", reason, f"{times:,}") for reason, times in report.filtered.most_common()]
    rows += [("concept or line", reason, f"{times:,}") for reason, times in report.skipped.most_common()]
    print_table("\nNot used", ("what", "why", "number"), rows or [("", "nothing", "0")])
