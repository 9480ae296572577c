"""`lacuner predict`: tag entities in new texts."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from lacuner.atomic import STANDARD_STREAM, atomic_write
from lacuner.cli.console import CorpusReader, echo, log, log_lost, print_json
from lacuner.cli.options import FormatName, InputOptions, Json, parse_location, refuse_overwriting
from lacuner.cli.shards import ShardOptions, lost_of, refuse, run_in_shards
from lacuner.corpus import words_of, write
from lacuner.data import Document
from lacuner.errors import ConfigError
from lacuner.reporting.entities import EntityPage


def predict(
    run: Annotated[Path, Argument(metavar="RUN", help="Run folder or model folder.")],
    corpus: Annotated[
        Path,
        Argument(
            metavar="CORPUS", parser=parse_location, help="Texts; existing labels are ignored. -: standard input."
        ),
    ],
    out: Annotated[
        Path,
        Option(
            "--out",
            metavar="PATH",
            parser=parse_location,
            help="Output file with the predicted spans. -: standard output.",
        ),
    ] = STANDARD_STREAM,
    *,
    format_out: Annotated[
        FormatName | None, Option(help="Output format. Default: from the file name; jsonl on standard output.")
    ] = None,
    html: Annotated[
        Path | None, Option(metavar="FILE", help="Page with highlighted entities (the first documents).")
    ] = None,
    threshold: Annotated[
        float | None, Option(help="Minimum probability of a predicted span, 0 to 1. Default: the model's own.")
    ] = None,
    on_long: Annotated[
        Literal["window", "error"], Option(help="Long documents: split into windows or refuse.")
    ] = "window",
    no_gazetteer: Annotated[bool, Option("--no-gazetteer", help="Predict with the model alone.")] = False,
    dictionary: Annotated[
        list[Path] | None, Option(metavar="FILE", help="Further gazetteer entries. Repeatable.")
    ] = None,
    json: Json = False,
    shards: ShardOptions,
    inputs: InputOptions,
) -> None:
    """Tag entities in new texts, with a score per span.

    Matches of the gazetteer that the model was trained with are tagged too.
    """
    from lacuner.evaluate.threshold import check_threshold
    from lacuner.models.storage import load_with_entries

    refuse_overwriting({"--out": out, "--html": html}, corpus, *(dictionary or ()))
    check_threshold(threshold)
    if shards.on is not None:
        from lacuner.scale.prediction import PredictJob

        refuse({"--html": html})
        names = tuple(path.absolute() for path in dictionary or ())
        job = PredictJob(run.absolute(), format_out or "jsonl", threshold, on_long, not no_gazetteer, names)
        _report_shards(run_in_shards(job, corpus, out, inputs, shards), out, json)
        return
    shards.check_unused(out)
    if json and out == STANDARD_STREAM:
        raise ConfigError("--json prints to standard output, too: give --out a file")
    tagger = load_with_entries(run, gazetteer=not no_gazetteer, dictionary=dictionary or [], log=log)
    reader = CorpusReader(corpus, inputs)
    page = EntityPage(out.name if html is None else html.stem)
    counts: Counter[str] = Counter()
    start = time.perf_counter()
    docs = _count(tagger.predict(reader, on_long=on_long, threshold=threshold), counts, page if html else None)
    lost = write(docs, out, format=format_out)
    seconds = time.perf_counter() - start
    if html is not None:
        with atomic_write(html) as stream:
            stream.write(page.render().encode())
    reader.log_lost()
    log_lost(lost, f"wrote {'standard output' if out == STANDARD_STREAM else out}")
    if tagger.words_truncated:
        log(f"{tagger.words_truncated:,} words were truncated (too long for the encoder)")
    documents, words, spans = (counts[name] for name in ("documents", "words", "spans"))
    if json:
        facts = {"documents": documents, "words": words, "words_unread": tagger.words_unread, "spans": spans}
        print_json({**facts, "documents_per_second": documents / seconds})
        return
    log(f"{documents / seconds:,.0f} documents/s, {words / seconds:,.0f} words/s")
    unread = f"{tagger.words_unread:,} words unread"
    summary = f"{documents:,} documents, {words:,} words, {unread}, {spans:,} entities"
    if out == STANDARD_STREAM:
        log(summary)
    else:
        echo(f"{summary}: {out}")


def _report_shards(summary: dict[str, Any], out: Path, json: bool) -> None:
    """Print what a run in shards has done."""
    counts = summary["counts"]
    spans = sum(counts.get("spans", {}).values())
    facts = {"documents": counts["documents"], **{name: counts.get(name, 0) for name in ("words", "words_unread")}}
    if json:
        print_json({**facts, "spans": spans, "failed": summary["failed"]})
        return
    log_lost(lost_of(summary["writing"]), "written")
    unread = f"{facts['words_unread']:,} words unread"
    echo(f"{facts['documents']:,} documents, {facts['words']:,} words, {unread}, {spans:,} entities: {out}")


def _count(docs: Iterable[Document], counts: Counter[str], page: EntityPage | None) -> Iterator[Document]:
    """Pass the documents on, count them, their words and their spans, and add them to the page."""
    for doc in docs:
        counts.update(documents=1, words=len(words_of(doc)), spans=len(doc.spans))
        if page is not None:
            page.add(doc)
        yield doc
