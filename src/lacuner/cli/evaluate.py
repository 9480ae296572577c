"""`lacuner evaluate`: score predictions against gold."""

from pathlib import Path
from typing import Annotated

from typer import Argument, echo

from lacuner.cli.console import CorpusReader, log, print_json, print_scores
from lacuner.cli.options import Gold, InputOptions, Json


def evaluate(
    predictions: Annotated[Path, Argument(metavar="RUN_OR_PREDICTIONS", help="Run folder or predicted corpus.")],
    gold: Gold,
    *,
    json: Json = False,
    inputs: InputOptions,
) -> None:
    """Precision, recall and F1 of spans, overall and per type."""
    from lacuner.evaluate import score

    gold_docs = CorpusReader(gold, inputs, complete=True)
    words_unread: int | None = None  # a file of predictions does not record it
    if predictions.is_dir():
        from lacuner.models.storage import load

        tagger = load(predictions)
        docs = list(gold_docs)
        scores = score(docs, tagger.predict(docs))
        words_unread = tagger.words_unread
        readers = [gold_docs]
    else:
        readers = [gold_docs, CorpusReader(predictions, inputs)]
        scores = score(*readers)
    for reader in readers:
        reader.log_lost()
    facts = scores.as_json()
    if json:
        print_json({**facts, "words_unread": words_unread})
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
