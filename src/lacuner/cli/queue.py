"""`lacuner audit issues`, `sample`, `export`, `import`: what is to be reviewed, here or in another tool."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option

from lacuner.cli.console import (
    CorpusReader,
    echo,
    log,
    log_lost,
    print_json,
    print_table,
    read_or_store,
    read_splits,
)
from lacuner.cli.options import Dev, Encoder, FormatName, InputOptions, Json, LabelPrecision, Seed, Settings, Stream
from lacuner.data import Splits
from lacuner.errors import ConfigError

if TYPE_CHECKING:
    from lacuner.annotate.gazetteer.entries import Entry
    from lacuner.review.queue import ReviewQueue

ISSUES_SHOWN = 20
_Reviewed = Annotated[Path, Argument(metavar="RUN", help="Folder with a queue (`audit issues` or `audit sample`).")]


def issues(
    run: Annotated[Path, Argument(metavar="RUN", help="Run folder, or any folder: the issues go to RUN/review.")],
    weak: Annotated[list[Path], Option("--weak", metavar="FILE", help="Weak labels (incomplete). Repeatable.")],
    *,
    dev: Dev = None,
    signal: Annotated[
        Literal["cross-fitted", "aum"],
        Option(
            help="Evidence: predictions of models that were not trained on the document, or margins of one model while "
            "it is trained (`aum`): cheaper, for ranking only."
        ),
    ] = "cross-fitted",
    folds: Annotated[int, Option(help="Number of models; none predicts a document that it was trained on.")] = 3,
    recipe: Annotated[str, Option(help="Recipe that the models are trained with.")] = "negative_sampling",
    label_precision: LabelPrecision = 0.9,
    encoder: Encoder = None,
    stream: Stream = None,
    seed: Seed = 1,
    set_: Settings = None,
    json: Json = False,
    inputs: InputOptions,
) -> None:
    """Find labels that are probably missing, wrong or spurious.

    By default, each document is predicted by a model that did not train on it, and scores are calibrated, on dev or on
    names hidden from the models. `lacuner review RUN` shows the issues in the browser.
    """
    from lacuner.audit.cross_fitting import PREPARED, CrossFitOptions, cross_fit_settings
    from lacuner.audit.issues import count_kinds
    from lacuner.config import string_setting
    from lacuner.review.next_round import describe_inputs
    from lacuner.review.prepare import prepare_review
    from lacuner.review.queue import make_review_folder
    from lacuner.trainer.streaming import can_stream, check_stream
    from lacuner.trainer.train import load_recipe_config
    from lacuner.training.run_folder import stored_identity

    files = {"weak": weak, "dev": [dev] if dev else None}
    settings = [*cross_fit_settings(recipe, stored_identity(run)), *(set_ or [])]
    settings += string_setting("encoder.name", encoder)
    config = load_recipe_config(recipe, [role for role, paths in files.items() if paths], None, settings)
    if stream:
        check_stream(recipe)
    in_memory = not can_stream(recipe) or (signal == "aum" and not stream)
    storage = (False if in_memory else stream, make_review_folder(run) / PREPARED)
    weak_docs = read_or_store(weak, "weak", inputs, storage, ordered=True)
    splits = Splits(weak_docs, dev=read_splits({"dev": files["dev"]}, inputs).get("dev"))
    entries = _gazetteer_entries(run, weak)
    origin = describe_inputs(weak, dev, [text for text in settings if text.startswith("encoder.")], inputs.arguments())
    options = CrossFitOptions(recipe, config, folds, seed, label_precision, signal)
    queue = prepare_review(splits, run, options, entries, log, origin)
    if json:
        kinds = count_kinds(queue.issues)
        counts = {"documents": queue.facts["documents"], "issues": kinds, "groups": len(queue.groups)}
        facts = {name: queue.facts[name] for name in ("calibrated_on", "unlisted")}
        print_json({"run": str(run), **counts, **facts})
        return
    _print_issues(queue, run)


def _gazetteer_entries(run: Path, weak: list[Path]) -> list[Entry]:
    """The entries of the run's gazetteer, or of the one beside the weak labels."""
    from lacuner.models.gazetteer import parse_gazetteer
    from lacuner.models.sidecar import read_sidecars
    from lacuner.models.storage import GAZETTEER

    path = run / "model" / GAZETTEER
    gazetteer = parse_gazetteer(path.read_bytes(), path) if path.is_file() else read_sidecars(weak)
    return gazetteer.entries if gazetteer is not None else []


def _print_issues(queue: ReviewQueue, run: Path) -> None:
    from lacuner.audit.issues import count_kinds, group_issues
    from lacuner.techniques.label_issues import bracket

    numbers = [f"{count:,} {kind.replace('_', ' ')}" for kind, count in count_kinds(queue.issues).items()]
    echo(f"{len(queue.issues):,} label issues in {queue.facts['documents']:,} documents: {', '.join(numbers)}")
    if queue.facts["unlisted"]:
        echo(f"{queue.facts['unlisted']:,} further issues, which are worth less, are left out.")
    where = queue.facts["calibrated_on"]
    if queue.facts.get("signal") == "aum":
        echo("Scores are margins of a model while it was trained: they are good for ranking only.")
    elif where == "nothing":
        echo("There were too few labels to calibrate the scores on: they are good for ranking only.")
    else:
        echo(f"Scores are probabilities, calibrated on {where}.")
    rows = []
    for group in group_issues(queue.issues)[:ISSUES_SHOWN]:
        best = group.issues[0]
        now = ", ".join(sorted({span.label for span in best.current}))
        example = bracket(queue.documents[best.doc_id].text, best.start, best.end)
        rows.append((f"{best.score:.2f}", len(group.issues), group.kind.replace("_", " "), now, group.label, example))
    print_table("", ("score", "mentions", "issue", "label", "proposed", "example"), rows)
    echo(f"queue: {run / 'review'}")


def sample(
    run: Annotated[Path, Argument(metavar="RUN", help="Run folder of the model.")],
    texts: Annotated[Path, Argument(metavar="TEXTS", help="Corpus to draw from, preferably not trained on.")],
    *,
    sentences: Annotated[int, Option(min=1, help="Number of sentences to draw.")] = 200,
    out: Annotated[Path | None, Option("--out", help="Folder of the sample. Default: RUN/sample.")] = None,
    stream: Stream = None,
    seed: Seed = 1,
    json: Json = False,
    inputs: InputOptions,
) -> None:
    """Draw a random sample of sentences to label.

    For scores without a gold corpus: label the sentences in the browser with `lacuner review`; `lacuner evaluate RUN
    --reviewed` then estimates precision and recall. You may stop at any time. A sentence is a document of the corpus.
    """
    import shutil
    from dataclasses import replace

    from lacuner.atomic import TEMPORARY
    from lacuner.corpus.stored import store_like
    from lacuner.models.storage import load
    from lacuner.review.build import number_equal_ids
    from lacuner.review.queue import decision_log, make_review_folder, save_queue
    from lacuner.review.sample import draw_sample

    folder = run / "sample" if out is None else out
    if decision_log(folder).path.exists():
        raise ConfigError("there is a sample with decisions in this folder: choose another --out", file=folder)
    tagger, prepared = load(run), make_review_folder(folder) / TEMPORARY
    try:
        docs = number_equal_ids(read_or_store([texts], "", inputs, (stream, prepared), ordered=True))
        predictions = store_like(docs, tagger.predict(docs), prepared / "predicted", ordered=True)
        queue = draw_sample(docs, predictions, sentences, labels=tagger.labels, seed=seed)
    finally:
        shutil.rmtree(prepared, ignore_errors=True)
    save_queue(replace(queue, facts={**queue.facts, "run": str(run.resolve())}), folder)
    if json:
        print_json({"sample": str(folder), "sentences": len(queue.sentences), "documents": len(docs)})
        return
    echo(f"{len(queue.sentences):,} of {len(docs):,} documents drawn")
    echo(f"label them:  lacuner review {shlex.quote(str(folder))}")
    echo(f"then:        lacuner evaluate {shlex.quote(str(run))} --reviewed {shlex.quote(str(folder))}")


def export_queue(
    run: _Reviewed,
    out: Annotated[Path, Option("--out", help="Pre-annotated documents for another tool.")],
    *,
    format_out: Annotated[FormatName | None, Option(help="Output format. Default: from the file name.")] = None,
    limit: Annotated[int | None, Option(min=1, help="Maximum number of documents.")] = None,
    json: Json = False,
) -> None:
    """Write the queue as pre-annotations for another tool.

    Documents come in the order of review, with their labels changed by the probable issues. What is decided already is
    left out. `lacuner audit import` turns the annotated documents into decisions.
    """
    from lacuner.corpus import write
    from lacuner.review.exchange import documents_to_annotate
    from lacuner.review.queue import decision_log, open_queue

    docs = documents_to_annotate(open_queue(run), decision_log(run).state())[:limit]
    lost = write(docs, out, format=format_out)
    log_lost(lost, f"wrote {out}")
    if json:
        print_json({"out": str(out), "documents": len(docs), "lost": dict(lost)})
        return
    echo(f"{len(docs):,} documents: {out}")


def import_annotations(
    run: _Reviewed,
    annotated: Annotated[Path, Argument(metavar="FILE", help="Documents that were annotated in another tool.")],
    *,
    complete: Annotated[
        bool, Option("--complete", help="Documents that do not state it are annotated completely.")
    ] = False,
    json: Json = False,
    inputs: InputOptions,
) -> None:
    """Turn annotated documents into decisions.

    The decisions are appended to those in RUN/review. Documents are matched by their text.
    """
    from lacuner.data import Lost
    from lacuner.review.exchange import decisions_from
    from lacuner.review.queue import decision_log, open_queue

    queue, decided, lost = open_queue(run), decision_log(run), Lost()
    reader = CorpusReader(annotated, inputs, complete=True if complete else None)
    decisions = decisions_from(queue, list(reader), lost, reviewer=annotated.name)
    reader.log_lost()
    log_lost(lost, "import")
    for decision in decisions:
        decided.append(decision)
    if json:
        print_json({"decisions": len(decisions), "file": str(decided.path), "lost": dict(lost)})
        return
    echo(f"{len(decisions):,} decisions: {decided.path}")
    if not decisions:
        echo("If the documents are annotated completely, and the format does not say so, use --complete.")
