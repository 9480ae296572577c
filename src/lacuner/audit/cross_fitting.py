"""Cross-fitting for label issues: predictions for each document by a model that did not train on it.

The documents are cut into folds, and one model is trained per fold, on the others. A fifth of the names is hidden from
each model as well (`lacuner.techniques.hidden_entries`). On the mentions of these names in the documents that it was
trained on, a model shows how many entities have no label; on those in its own fold, how probable an entity is at a
given score. With dev, the scores are calibrated on dev instead.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import Any, Literal

import numpy as np

from lacuner.audit.issues import LABEL_PRECISION, normalise_space
from lacuner.config import Config, load_config, string_setting
from lacuner.corpus.stored import store_like, take_documents
from lacuner.data import Document, Splits
from lacuner.errors import ConfigError
from lacuner.evaluate.calibration import SpanCalibration, calibrate_spans
from lacuner.models.storage import AnyTagger
from lacuner.models.tagger import LOWEST_THRESHOLD, Tagger
from lacuner.models.types import HasThreshold
from lacuner.recipes import find_recipe
from lacuner.techniques.hidden_entries import (
    FOLDS,
    calibrate_on_hidden,
    choose_operating_point,
    count_hidden,
    hide_entries,
)
from lacuner.trainer.train import train
from lacuner.training.dataset import assign_folds
from lacuner.training.identity import set_complete
from lacuner.training.run_folder import quiet

RECIPE = "negative_sampling"
"""Default recipe of the models: the best of those that cost a single training run."""
FEW_NEGATIVES = ("rate=0.15", "train.epochs=6")
"""Settings of the default recipe. Models that sample more negatives learn that unlabeled names are none: see the recipe
`ensemble`."""
PREPARED, PREDICTED = "prepared", "predicted"
"""Folders of stored documents: what a model is trained on, and predictions."""

Signal = Literal["cross-fitted", "aum"]


@dataclass(frozen=True)
class CrossFitOptions:
    """How the models are trained, and what is known about the labels."""

    recipe: str = RECIPE
    config: Config | None = None
    """Settings of the recipe, by default those of `cross_fit_settings`."""
    folds: int = 3
    """Number of models."""
    seed: int = 1
    label_precision: float = LABEL_PRECISION
    """Share of the labels that are right, by the user's estimate."""
    signal: Signal = "cross-fitted"
    """Evidence for the issues: predictions of models that were not trained on the document, or the mean margins of a
    single model while it is trained (`lacuner.audit.training_dynamics`)."""


DEFAULT_OPTIONS = CrossFitOptions()


@dataclass(frozen=True)
class CrossFit:
    """Predictions by models that did not train on the document."""

    predictions: Sequence[Document]
    """In the order of the documents, down to very low scores if the recipe has a decision threshold."""
    calibration: SpanCalibration | None
    """From scores to probabilities; None if there was too little to calibrate on."""
    calibrated_on: str
    """`dev`, `hidden names` or `nothing`."""


def cross_fit(
    splits: Splits, folder: Path, options: CrossFitOptions = DEFAULT_OPTIONS, log: Callable[[str], None] = quiet
) -> CrossFit:
    """Train one model per fold of `splits.weak`, in subfolders of `folder`, and predict each fold with its own model.

    An interrupted training run resumes. `splits.dev` is used for thresholds, and for calibration. If the weak documents
    are stored on disk, so is all that is derived from them: the documents of each model while it needs them, and all
    predictions.
    """
    docs, folds = splits.weak or (), options.folds
    fold_of = assign_folds(docs, folds) if folds > 1 else np.zeros(0, dtype=np.int64)
    if not len(fold_of) or fold_of.max() + 1 < folds:
        raise ConfigError(f"cross-fitting needs at least 2 folds and as many texts as folds (--folds {folds})")
    config = options_config(options)
    keep = partial(store_like, docs)
    predictions: list[Sequence[Document]] = []
    trained_on, held_out, on_dev = [], [], []
    for fold in range(folds):
        log(f"cross-fitting: model {fold + 1} of {folds}")
        out, hidden = folder / str(fold), fold % FOLDS
        others, own = (take_documents(docs, np.flatnonzero(mask)) for mask in (fold_of != fold, fold_of == fold))
        visible = keep(set_complete(hide_entries(others, hidden), False), out / PREPARED)
        tagger = train(options.recipe, Splits(visible, None, splits.dev), out, config, options.seed, log).tagger
        predictions.append(keep(predict_candidates(tagger, own), out / PREDICTED, ordered=True))
        if splits.dev:
            on_dev += _compare_with_dev(predict_candidates(tagger, splits.dev), splits.dev, visible)
        else:
            held_out.append(count_hidden(own, predictions[fold], hidden))
            trained_on.append(count_hidden(others, predict_candidates(tagger, others), hidden))
        shutil.rmtree(out / PREPARED, ignore_errors=True)
    if splits.dev:
        scores, correct = np.array(on_dev, dtype=float).reshape(-1, 2).T
        calibration, calibrated_on = calibrate_spans(scores, correct > 0), "dev"
    else:
        # each document was trained on by all models but one
        point = choose_operating_point(reduce(add, trained_on), folds - 1)
        calibration = calibrate_on_hidden(reduce(add, held_out), point.missing) if point and point.missing else None
        calibrated_on = "hidden names"
    streams = [iter(predicted) for predicted in predictions]
    in_order = keep((next(streams[fold]) for fold in fold_of.tolist()), folder / PREDICTED, ordered=True)
    for fold in range(folds):
        shutil.rmtree(folder / str(fold) / PREDICTED, ignore_errors=True)
    return CrossFit(in_order, calibration, calibrated_on if calibration else "nothing")


def options_config(options: CrossFitOptions) -> Config:
    """The settings of the models' recipe.

    >>> options_config(CrossFitOptions("trust")).model_dump()["train"]["epochs"]
    15
    """
    if options.config is not None:
        return options.config
    kind: type[Config] = find_recipe(options.recipe).Config
    return load_config(kind, None, cross_fit_settings(options.recipe))


def predict_candidates(tagger: AnyTagger, docs: Iterable[Document]) -> Iterator[Document]:
    """Predictions of the model alone, down to the lowest threshold if it has one."""
    if not isinstance(tagger, Tagger):
        return tagger.predict(docs)
    threshold = LOWEST_THRESHOLD if isinstance(tagger.model.head, HasThreshold) else None
    return Tagger(tagger.model).predict(docs, threshold=threshold)


def _compare_with_dev(
    predicted: Iterable[Document], dev: Sequence[Document], weak: Iterable[Document]
) -> list[tuple[float, bool]]:
    """Scores of the predictions on dev, and whether each is right; without names that training labels."""
    names = {normalise_space(doc.text[span.start : span.end]) for doc in weak for span in doc.spans}
    return [
        (1.0 if span.score is None else span.score, span.key in {other.key for other in gold.spans})
        for guess, gold in zip(predicted, dev, strict=True)
        for span in guess.spans
        if normalise_space(guess.text[span.start : span.end]) not in names
    ]


def cross_fit_settings(recipe: str = RECIPE, identity: dict[str, Any] | None = None) -> list[str]:
    """Settings of the models, as for `--set`, with the encoder of a run if there is one.

    >>> cross_fit_settings("trust", {"config": {"encoder": {"name": "tiny-en"}}})
    ['encoder.name="tiny-en"']
    """
    encoder = ((identity or {}).get("config") or {}).get("encoder") or {}
    name = string_setting("encoder.name", encoder["name"]) if isinstance(encoder.get("name"), str) else []
    return [*(FEW_NEGATIVES if recipe == RECIPE else ()), *name]
