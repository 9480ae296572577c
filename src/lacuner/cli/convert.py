"""`lacuner convert`: read a corpus in one format and write it in another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from lacuner.atomic import STANDARD_STREAM
from lacuner.cli.console import LOST_SHOWN, CorpusReader, log, log_lost, log_unused_names, print_json
from lacuner.cli.options import FormatName, InputOptions, Json, SchemeName, parse_pairs, refuse_overwriting
from lacuner.corpus import write
from lacuner.corpus.formats import format_of
from lacuner.corpus.json_rows import write_lines
from lacuner.data import Document, Lost
from lacuner.errors import ConfigError
from lacuner.trainer.labels import rename_labels


def convert(
    source: Annotated[Path, Argument(metavar="IN", help="File or folder; - is standard input.")],
    target: Annotated[Path, Argument(metavar="OUT", help="File, or folder for brat; - is standard output.")],
    *,
    format_out: Annotated[
        FormatName | None, Option(help="Output format. Default: from the file name; jsonl on standard output.")
    ] = None,
    scheme_out: Annotated[SchemeName, Option(help="Tag scheme of formats with tags.")] = "IOB2",
    map_: Annotated[
        list[str] | None, Option("--map", metavar="LABEL=LABEL", help="Rename a label. Repeatable.")
    ] = None,
    complete: Annotated[
        bool | None,
        Option(
            "--complete/--incomplete",
            help="Mark documents as completely annotated or not, where the input does not say.",
        ),
    ] = None,
    lost_file: Annotated[
        Path | None,
        Option("--lost", help="File to write, in JSON lines: every span that was lost or changed, with the reason."),
    ] = None,
    json: Json = False,
    inputs: InputOptions,
) -> None:
    """Convert a corpus to another format.

    Documents are streamed, files are compressed if their name ends in .gz, .bz2, .xz or .zst, and what the output
    format cannot express is counted, and listed with --lost.
    """
    names = parse_pairs(map_ or (), "--map", "LABEL=LABEL")
    uses = {"--json": json, "OUT -": target == STANDARD_STREAM, "--lost -": lost_file == STANDARD_STREAM}
    if sum(uses.values()) > 1:
        first, second, *_ = (name for name, is_used in uses.items() if is_used)
        raise ConfigError(f"{first} and {second} both use standard output: write the documents to a file")
    format_of(target, format_out)  # fail early
    refuse_overwriting({"OUT": target, "--lost": lost_file}, source)
    reader = CorpusReader(source, inputs, complete=complete)
    counts: Counter[str] = Counter()
    unused = set(names)
    docs = rename_labels(reader, names, unused) if names else reader
    lost = write(_count(docs, counts), target, format=format_out, scheme=scheme_out)
    reader.log_lost()
    log_unused_names(unused)
    log_lost(lost, f"wrote {'standard output' if target == STANDARD_STREAM else target}")
    if lost_file is not None:
        _write_lost({"reading": reader.lost, "writing": lost}, lost_file)
    elif len(reader.lost.spans) > LOST_SHOWN or len(lost.spans) > LOST_SHOWN:
        log("--lost FILE lists every lost span")
    facts = {name: counts[name] for name in ("documents", "spans", "rejected", "unsure")}
    if json:
        print_json({**facts, "read": reader.lost.counts, "lost": lost.counts})
        return
    log(", ".join(f"{count:,} {name}" for name, count in facts.items()))


def _write_lost(steps: Mapping[str, Lost], path: Path) -> None:
    """List the spans that were lost in each step."""
    rows = [{"step": step, **row._asdict()} for step, lost in steps.items() for row in lost.spans]
    write_lines(path, rows)
    beyond = any(len(lost.spans) == Lost.MAX_ROWS for lost in steps.values())
    log(f"wrote {path}: {len(rows):,} lost spans{', of which later ones are only counted' if beyond else ''}")


def _count(docs: Iterable[Document], counts: Counter[str]) -> Iterator[Document]:
    """Pass the documents on, and count what they contain."""
    for doc in docs:
        counts.update(documents=1, spans=len(doc.spans), rejected=len(doc.rejected), unsure=len(doc.unsure))
        yield doc
