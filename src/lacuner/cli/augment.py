"""`lacuner augment`: the same sentences with other words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lacuner.cli import options
from lacuner.data import Document

SHOWN = 5


def augment(
    corpus: Annotated[Path, typer.Argument(metavar="CORPUS", help="Texts, with labels or without.")],
    encoder: Annotated[
        str, typer.Option("--encoder", help="A run of `lacuner pretrain`, or hf:NAME_OR_PATH with a masked-word head.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Where the texts with other words go; their labels go along.")],
    rate: Annotated[float, typer.Option("--rate", min=0.0, max=1.0, help="Share of the words to try.")] = 0.15,
    least_top5: Annotated[
        float | None,
        typer.Option("--least-top5", help="Refuse an encoder whose five best guesses are less often right."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Another seed, other words.")] = 1,
    format: options.Format = None,
    encoding: options.Encoding = "utf-8",
    words: options.Words = "unicode",
    separator: options.Separator = None,
    token_column: options.TokenColumn = 0,
    tag_column: options.TagColumn = -1,
    scheme: options.Scheme = None,
    json: options.Json = False,
) -> None:
    """Rewrite texts so that labels stay right: an encoder that guesses hidden words puts others in their place."""
    from lacuner.cli.console import Watched, print_json, report_lost
    from lacuner.corpus import words_of, write
    from lacuner.pretraining.augmenting import LEAST_TOP5, changes, masked_model_for
    from lacuner.pretraining.augmenting import augment as augment_documents

    options.keep_inputs({"--out": out}, corpus)
    reading = Watched(
        corpus,
        format=format,
        options=options.read_options(encoding, scheme, words, (separator, token_column, tag_column)),
    )
    docs = list(reading)
    report_lost(reading.lost, f"read {corpus}: {reading.documents:,} documents")
    model = masked_model_for(encoder, docs, LEAST_TOP5 if least_top5 is None else least_top5)
    made = augment_documents(docs, model, rate, seed)
    report_lost(write(made, out), f"wrote {out}")
    changed = list(changes(docs, made))
    total = sum(len(words_of(doc)) for doc in docs)
    counts = {"documents": len(docs), "words": total, "changed": sum(count for *_, count in changed)}
    if json:
        print_json({**counts, "out": str(out)})
        return
    for before, after, _ in changed[:SHOWN]:
        typer.echo(f"  {_shown(before)}\n  {_shown(after)}\n")
    typer.echo(f"{counts['documents']:,} documents, {counts['changed']:,} of {counts['words']:,} words changed: {out}")


def _shown(doc: Document) -> str:
    """A text in one line, its labelled spans in brackets."""
    text, at = "", 0
    for span in sorted(doc.spans, key=lambda span: span.start):
        if span.start >= at:
            text += f"{doc.text[at : span.start]}[{doc.text[span.start : span.end]} {span.label}]"
            at = span.end
    return " ".join((text + doc.text[at:]).split())
