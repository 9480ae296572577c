"""`lacuner predict`: entities in new texts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from lacuner.cli import options
from lacuner.data import Document


def predict(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or the model folder inside it.")],
    corpus: Annotated[Path, typer.Argument(metavar="CORPUS", help="Texts; labels in it are ignored.")],
    out: Annotated[Path, typer.Option("--out", help="Where the texts with their predicted spans go.")],
    on_long: Annotated[
        str, typer.Option("--on-long", help="Long documents: window (read in pieces) or error.")
    ] = "window",
    format: options.Format = None,
    encoding: options.Encoding = "utf-8",
    words: options.Words = "unicode",
    separator: options.Separator = None,
    token_column: options.TokenColumn = 0,
    tag_column: options.TagColumn = -1,
    scheme: options.Scheme = None,
    json: options.Json = False,
) -> None:
    """Find entities, with a score each. Long documents are read through windows: no word is left unread."""
    from lacuner.cli.console import Watched, print_json, report_lost, say
    from lacuner.corpus import words_of, write
    from lacuner.errors import ConfigError
    from lacuner.models.storage import load

    options.keep_inputs({"--out": out}, corpus)
    if on_long not in ("window", "error"):
        raise ConfigError(f"--on-long is window or error, not {on_long!r}")
    tagger = load(run)
    docs = Watched(
        corpus,
        format=format,
        options=options.read_options(encoding, scheme, words, (separator, token_column, tag_column)),
    )
    spans = read = 0
    start = time.perf_counter()

    def counted() -> Iterator[Document]:
        nonlocal spans, read
        found = tagger.predict(docs, on_long=on_long)
        for doc in found:
            spans += len(doc.spans)
            read += len(words_of(doc))
            yield doc

    lost = write(counted(), out)
    seconds = time.perf_counter() - start
    report_lost(docs.lost, f"read {corpus}")
    report_lost(lost, f"wrote {out}")
    unread = tagger.words_unread
    if tagger.words_truncated:
        say(f"{tagger.words_truncated:,} words were truncated (too long for the encoder)")
    if json:
        rate = docs.documents / seconds
        print_json(
            {
                "documents": docs.documents,
                "words": read,
                "words_unread": unread,
                "spans": spans,
                "documents_per_second": rate,
            }
        )
        return
    say(f"{docs.documents / seconds:,.0f} documents/s, {read / seconds:,.0f} words/s")
    typer.echo(f"{docs.documents:,} documents, {read:,} words, {unread:,} words unread, {spans:,} entities: {out}")
