"""`lacuner convert`: read a corpus in one format and write it in another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from lacuner.atomic import STANDARD_STREAM
from lacuner.cli.console import CorpusReader, log, log_lost, print_json
from lacuner.cli.options import FormatName, InputOptions, Json, SchemeName, parse_pairs, refuse_overwriting
from lacuner.corpus import write
from lacuner.corpus.formats import format_of
from lacuner.data import Document
from lacuner.errors import ConfigError


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
        Option("--complete/--incomplete", help="Whether all entities are annotated, where the input does not say."),
    ] = None,
    json: Json = False,
    inputs: InputOptions,
) -> None:
    """Convert a corpus to another format.

    Documents are streamed, files are compressed if their name ends in .gz, .bz2, .xz or .zst, and what the output
    format cannot express is counted.
    """
    names = parse_pairs(map_ or (), "--map", "LABEL=LABEL")
    if target == STANDARD_STREAM and json:
        raise ConfigError("--json and OUT - both use standard output: write the documents to a file")
    format_of(target, format_out)  # fail early
    refuse_overwriting({"OUT": target}, source)
    reader = CorpusReader(source, inputs, complete=complete)
    counts: Counter[str] = Counter()
    lost = write(_rename(reader, names, counts), target, format=format_out, scheme=scheme_out)
    reader.log_lost()
    log_lost(lost, f"wrote {'standard output' if target == STANDARD_STREAM else target}")
    facts = {name: counts[name] for name in ("documents", "spans", "rejected", "unsure")}
    if json:
        print_json({**facts, "read": reader.lost.counts, "lost": lost.counts})
        return
    log(", ".join(f"{count:,} {name}" for name, count in facts.items()))


def _rename(docs: Iterable[Document], names: Mapping[str, str], counts: Counter[str]) -> Iterator[Document]:
    """Pass the documents on with renamed labels, and count what they contain."""
    for doc in docs:
        if names:
            states = {
                state: tuple([span._replace(label=names.get(span.label, span.label)) for span in getattr(doc, state)])
                for state in ("spans", "rejected", "unsure")
            }
            doc = replace(doc, **states)  # type: ignore[arg-type]
        counts.update(documents=1, spans=len(doc.spans), rejected=len(doc.rejected), unsure=len(doc.unsure))
        yield doc
