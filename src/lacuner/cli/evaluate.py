"""`lacuner evaluate`: how good are predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lacuner.cli import options


def evaluate(
    predictions: Annotated[
        Path,
        typer.Argument(metavar="RUN_OR_PREDICTIONS", help="A run folder, or a corpus whose spans are predictions."),
    ],
    gold: Annotated[Path, typer.Option("--gold", help="The truth, complete unless the file says otherwise.")],
    format: options.Format = None,
    encoding: options.Encoding = "utf-8",
    separator: options.Separator = None,
    token_column: options.TokenColumn = 0,
    tag_column: options.TagColumn = -1,
    scheme: options.Scheme = None,
    strict: options.Strict = False,
    json: options.Json = False,
) -> None:
    """Precision, recall and F1 of spans, exact in place and type, micro-averaged; per type; and what else helps."""
    from lacuner.cli.console import Watched, print_json, print_table, report_lost, say
    from lacuner.cli.score_table import incomplete_note, score_rows
    from lacuner.evaluate import score

    reading = options.read_options(encoding, scheme, columns=(separator, token_column, tag_column), strict=strict)
    truth = Watched(gold, format=format, complete=True, options=reading)
    unread: int | None = None  # unknown for a file of predictions
    if predictions.is_dir():
        from lacuner.models.storage import load

        docs, tagger = list(truth), load(predictions)
        scores = score(docs, tagger.predict(docs))
        unread = tagger.words_unread
        report_lost(truth.lost, f"read {gold}")
    else:
        guess = Watched(predictions, format=format, options=reading)
        scores = score(truth, guess)
        for read in (truth, guess):
            report_lost(read.lost, f"read {read.path}")
    if json:
        print_json({**scores.as_json(), "words_unread": unread})
        return
    print_table("", ("", "P", "R", "F1", "correct", "predicted", "gold"), score_rows(scores))
    tokens, sentences = scores.as_json()["token_accuracy"], scores.as_json()["sentence_accuracy"]
    typer.echo(f"words right {100 * tokens:.1f} %, documents wholly right {100 * sentences:.1f} %")
    not_read = "" if unread is None else f", {unread:,} words unread"
    typer.echo(f"{scores.documents:,} documents, {scores.words:,} words{not_read}")
    if not scores.final:
        typer.echo(incomplete_note(scores))
    if not scores.exact.gold:
        say(f"{gold}: there is no entity in it, so that every figure is 0")
    if len(scores.lost):
        say(f"words: {scores.lost}")
