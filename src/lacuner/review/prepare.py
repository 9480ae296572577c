"""From a weak corpus to a review queue: cross-fitting, label issues, sentences to label."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lacuner.annotate.gazetteer.entries import Entry
from lacuner.audit.cross_fitting import DEFAULT_OPTIONS, CrossFitOptions, cross_fit
from lacuner.audit.issues import UNLISTED, label_issues
from lacuner.audit.training_dynamics import follow_training
from lacuner.corpus.jsonl import as_line
from lacuner.data import Document, Lost, Splits
from lacuner.review.build import build_queue, number_equal_ids, useful_sentences
from lacuner.review.queue import ReviewQueue, make_review_folder, save_queue
from lacuner.training.run_folder import quiet

MODELS = "models"
"""Folder of the cross-fitted models, inside the folder of the review."""


def prepare_review(
    splits: Splits,
    run_folder: Path,
    options: CrossFitOptions = DEFAULT_OPTIONS,
    gazetteer: Iterable[Entry] = (),
    log: Callable[[str], None] = quiet,
    inputs: Mapping[str, Any] | None = None,
) -> ReviewQueue:
    """Find the label issues of `splits.weak`, and write the queue into `run_folder`.

    `inputs` say where the documents came from, for the commands of the next round (`lacuner.review.next_round`). The
    models are kept in the folder as well: the same call, interrupted or not, trains none of them twice.
    """
    weak = number_equal_ids(splits.weak or ())
    models = make_review_folder(run_folder) / MODELS / _fingerprint(weak, splits.dev or (), options)
    find = follow_training if options.signal == "aum" else cross_fit
    fit = find(replace(splits, weak=weak), models, options, log)
    curve = fit.calibration
    base_rate = 0.5 if curve is None else curve.base_rate
    precision = options.label_precision
    lost = Lost()
    issues = label_issues(
        weak, fit.predictions, calibrate=curve, base_rate=base_rate, label_precision=precision, lost=lost
    )
    facts = {
        "documents": len(weak),
        "recipe": options.recipe,
        "folds": options.folds,
        "seed": options.seed,
        "label_precision": precision,
        "signal": options.signal,
        "calibrated_on": fit.calibrated_on,
        "calibration": None if curve is None else curve.as_json(),
        "inputs": dict(inputs or {}),
        "unlisted": lost.counts[UNLISTED],
    }
    sentences = useful_sentences(weak, fit.predictions, curve)
    queue = build_queue(weak, issues, sentences, gazetteer=gazetteer, facts=facts)
    save_queue(queue, run_folder, weak)
    return queue


def _fingerprint(weak: Iterable[Document], dev: Iterable[Document], options: CrossFitOptions) -> str:
    """A name for the models of these labels and options: other labels get other models, not an error."""
    config = None if options.config is None else options.config.model_dump(mode="json")
    what = [options.recipe, options.folds, options.seed, config]
    what += [] if options.signal == "cross-fitted" else [options.signal]
    settings = json.dumps(what, sort_keys=True, default=str)
    digest = hashlib.blake2b(settings.encode(), digest_size=6)
    for doc in (*weak, *dev):
        digest.update(as_line(doc).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
