"""`lacuner evaluate`: score predictions against gold, or a model against a reviewed sample."""

from __future__ import annotations

from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from lacuner.cli.console import CorpusReader, echo, log, log_unused_names, print_json, print_scores, print_table
from lacuner.cli.options import InputOptions, Json, parse_pairs
from lacuner.errors import ConfigError

if TYPE_CHECKING:
    from lacuner.evaluate import Evaluation
    from lacuner.review.sample import SampleScores


def evaluate(
    predictions: Annotated[Path, Argument(metavar="RUN_OR_PREDICTIONS", help="Run folder or predicted corpus.")],
    *,
    gold: Annotated[Path | None, Option("--gold", help="Gold annotations of the same texts.")] = None,
    reviewed: Annotated[
        Path | None, Option("--reviewed", help="Reviewed random sample: its folder or decisions.jsonl.")
    ] = None,
    map_: Annotated[
        list[str] | None,
        Option("--map", metavar="LABEL=LABEL", help="Rename a label of gold and predictions. Repeatable."),
    ] = None,
    json: Json = False,
    inputs: InputOptions,
) -> None:
    """Measure precision, recall and F1, overall and per type.

    Without gold, --reviewed estimates them, with intervals, from a random sample that a reviewer has labeled.
    """
    from lacuner.evaluate import score
    from lacuner.trainer.labels import rename_labels

    names = parse_pairs(map_ or (), "--map", "LABEL=LABEL")
    unused = set(names)
    if (gold is None) == (reviewed is None):
        raise ConfigError("give either --gold or --reviewed")
    if reviewed is not None:
        if names:
            raise ConfigError("--map is for --gold: a reviewed sample has the labels of its run")
        _evaluate_sample(predictions, reviewed, json)
        return
    assert gold is not None
    gold_docs = CorpusReader(gold, inputs, complete=True)
    words_unread: int | None = None  # a file of predictions does not record it
    if predictions.is_dir():
        from lacuner.models.storage import load

        tagger = load(predictions)
        docs, texts = tee(gold_docs)  # the tagger reads ahead a few thousand documents
        scores = score(*(rename_labels(side, names, unused) for side in (docs, tagger.predict(texts))))
        words_unread = tagger.words_unread
        readers = [gold_docs]
    else:
        readers = [gold_docs, CorpusReader(predictions, inputs)]
        scores = score(*(rename_labels(reader, names, unused) for reader in readers))
    for reader in readers:
        reader.log_lost()
    facts = scores.as_json()
    if json:
        print_json({**facts, "words_unread": words_unread})
        _warn_of_labels(scores, unused)
        return
    print_scores(scores, "predicted")
    words, documents = 100 * facts["token_accuracy"], 100 * facts["sentence_accuracy"]
    echo(f"accuracy: {words:.1f} % of words, {documents:.1f} % of documents")
    unread_note = "" if words_unread is None else f", {words_unread:,} words unread"
    echo(f"{scores.documents:,} documents, {scores.words:,} words{unread_note}")
    if not scores.exact.gold:
        log(f"{gold}: no entity in this file, so every score is 0")
    if len(scores.lost):
        log(f"words: {scores.lost}")
    _warn_of_labels(scores, unused)


def _warn_of_labels(scores: Evaluation, unused: set[str]) -> None:
    """Report labels to rename that do not occur, and gold and predictions that have no label in common."""
    log_unused_names(unused)
    gold = [label for label, count in scores.per_type.items() if count.gold]
    predicted = [label for label, count in scores.per_type.items() if count.predicted]
    if gold and predicted and {*gold}.isdisjoint(predicted):
        log(
            f"gold ({', '.join(gold)}) and predictions ({', '.join(predicted)}) have no label in common: rename those "
            f"that are the same type with --map {gold[0]}=NAME"
        )


def _evaluate_sample(run: Path, reviewed: Path, json: bool) -> None:
    """Estimate the scores of a run from the sentences that a reviewer has labeled."""
    from lacuner.models.storage import load
    from lacuner.review.decisions import DecisionLog
    from lacuner.review.queue import DECISIONS, FOLDER, open_queue
    from lacuner.review.sample import score_sample

    if not run.is_dir():
        raise ConfigError("--reviewed needs a run folder, not a file of predictions", file=run)
    decisions = reviewed / FOLDER / DECISIONS if reviewed.is_dir() else reviewed
    if not decisions.is_file():
        raise ConfigError("there are no decisions here: `lacuner review` writes them", file=decisions)
    queue, tagger = open_queue(decisions.parent.parent), load(run)
    spans = {doc.id: doc.spans for doc in tagger.predict(queue.documents.values())}
    scores = score_sample(queue, DecisionLog(decisions).state(), spans)
    if json:
        counts = {key: getattr(scores, key) for key in ("reviewed", "skipped", "left", "documents")}
        print_json({**{key: getattr(scores, key).as_json() for key in ("precision", "recall", "f1")}, **counts})
        return
    _print_sample(scores)


def _print_sample(scores: SampleScores) -> None:
    rows = [
        (name, f"{100 * estimate.value:.1f}", f"{100 * estimate.low:.1f} - {100 * estimate.high:.1f}")
        for name, estimate in (("precision", scores.precision), ("recall", scores.recall), ("F1", scores.f1))
    ]
    print_table("", ("", "estimate", "95 % interval"), rows)
    skipped = f", {scores.skipped:,} skipped" if scores.skipped else ""
    echo(f"{scores.reviewed:,} sentences labeled{skipped}, a random sample of {scores.documents:,} documents")
    further = scores.f1.halving
    if further is not None:
        enough = "" if further <= scores.left else f"; {scores.left:,} are left in this sample: draw a larger one"
        echo(f"{further:,} further sentences would halve the intervals{enough}")
