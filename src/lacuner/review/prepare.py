"""From a weak corpus to a review queue: cross-fitting, label issues, sentences to label."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lacuner.annotate.gazetteer.entries import Entry
from lacuner.audit.cross_fitting import DEFAULT_OPTIONS, CrossFitOptions, cross_fit
from lacuner.audit.issues import MIN_SCORE, label_issues
from lacuner.data import Splits
from lacuner.review.build import build_queue, number_equal_ids, useful_sentences
from lacuner.review.queue import FOLDER, ReviewQueue, save_queue
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
    fit = cross_fit(replace(splits, weak=weak), run_folder / FOLDER / MODELS, options, log)
    curve = fit.calibration
    issues = label_issues(
        weak, fit.predictions, calibrate=curve, base_rate=0.5 if curve is None else curve.base_rate, min_score=MIN_SCORE
    )
    facts = {
        "recipe": options.recipe,
        "folds": options.folds,
        "seed": options.seed,
        "calibrated_on": fit.calibrated_on,
        "calibration": None if curve is None else curve.as_json(),
        "inputs": dict(inputs or {}),
    }
    sentences = useful_sentences(weak, fit.predictions, curve)
    queue = build_queue(weak, issues, sentences, gazetteer=gazetteer, facts=facts)
    save_queue(queue, run_folder)
    return queue
