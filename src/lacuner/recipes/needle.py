"""NEEDLE: a little gold and many weak labels, by label completion and a noise-aware loss.

What it does: stage I trains a CRF on gold. Stage II completes the weak labels with its predictions (weak labels stay;
    sentences without any are left out) and continues training on gold and completed sentences together. Stage III
    fine-tunes on gold alone. With a Hugging Face encoder, stage II weights each completed sentence by its confidence in
    a noise-aware loss; the confidence depends on the share of its tokens with a weak label, and on how often the model
    was right on held-out gold at the same score. With other encoders, predicted entities below a minimum probability
    stay unknown instead. Labels are completed only if that improves them on gold: models trained on parts of gold
    complete the rest, whose weak labels are simulated by the names that the weak documents label.
Assumes: that weak labels are right where there are any, and that there is a little gold.
Needs: weak, gold.
Costs: two training runs on gold and a few epochs on everything; one more run for each part of gold that is held out,
    unless `completion` is set and the loss is not noise-aware.
Departs from the authors: the confidence is calibrated on held-out parts of gold, never on test data. A sentence's score
    is the probability of its best tag sequence, comparable between models, where theirs is the sequence's score divided
    by its length. Filtering entities instead of weighting sentences is ours: with a small encoder, the noise-aware loss
    cost one to two points on BC5CDR's dev, and filtering gained one (as much as no completion at all). The paper always
    completes. Epochs and rates also suit encoders trained from scratch. With dev, every stage keeps its best epoch,
    where the paper trains stage II for one epoch and searches for the epochs, batch size and rate of stage III. The
    models that score held-out gold are trained like the model of stage I, with early stopping on the same dev, but on
    three quarters of gold; a second round keeps their calibration. Losses are divided by words, not by sentences. For
    several languages, the paper has all of them in stages I and II, and one in stage III: train with `finetune=false`,
    then run `finetune` on the gold of that language.
Reference: Jiang et al. (2021), "Named entity recognition with small strongly labeled and large weakly labeled data".
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field
from torch import Tensor

from lacuner.config import OnlyWith
from lacuner.corpus.stored import join_documents, treat_as_complete
from lacuner.data import Document, Lost, Splits, labels_of
from lacuner.errors import ConfigError
from lacuner.evaluate.calibration import (
    MAX_BINS,
    Calibration,
    calibrate,
    exact_match,
    label_confidence,
    select_complete,
)
from lacuner.losses.noise_aware import noise_aware_loss
from lacuner.models.config import CRFHeadConfig
from lacuner.models.model import Model
from lacuner.models.storage import AnyTagger, load
from lacuner.models.tagger import Tagger
from lacuner.models.types import CRFScores, Targets
from lacuner.techniques.completion_gain import estimate_completion_gain
from lacuner.techniques.label_completion import (
    complete_weak,
    predict_with_confidence,
    write_completed,
    write_confidence,
)
from lacuner.training.config import RecipeConfig
from lacuner.training.dataset import TrainingSet, assign_folds, need_entities, training_set
from lacuner.training.loop import Keep
from lacuner.training.run_folder import Run, stored_identity
from lacuner.training.stage import Selection, new_model, train_stage
from lacuner.training.steps import loss_step, supervised_loss

NEEDS = ("weak", "gold")
GROUP = "recommended"
PAPER = "Jiang et al., 2021"
STREAMS = True
MIN_PROBABILITY = 0.9
"""Default of `sure` where entities are filtered."""
ENOUGH_GOLD = 500
"""Gold documents from which one held-out fold is enough to calibrate on; with fewer, every fold is held out once."""

_COMPLETION = OnlyWith("completion", ("True", "None"))
_NOISE_AWARE = OnlyWith("noise_aware", ("True", "None"))
_FINETUNE = OnlyWith("finetune", ("True",))


class Config(RecipeConfig):
    """Settings of `needle`; `train` applies to stage I."""

    head: CRFHeadConfig = CRFHeadConfig()
    completion: bool | None = None
    """Whether weak labels are completed; otherwise unlabeled tokens are O. By default, if it improves labels
    on held-out gold."""
    complete_from: Annotated[Path | None, _COMPLETION] = None
    """Run whose model completes the labels in the first round; by default the model of stage I."""
    broken: Annotated[Literal["repair", "drop"], _COMPLETION] = "repair"
    """Treatment of a sentence in which a weak label interrupts a predicted entity of another type."""
    noise_aware: bool | None = None
    """Whether completed sentences are weighted by their confidence; by default only with a Hugging Face encoder."""
    sure: Annotated[float | None, _COMPLETION] = Field(None, ge=0, le=1)
    """Minimum probability of an added entity, else its tokens stay unknown; by default 0.9, or 0 if noise-aware."""
    parts: Annotated[int, _COMPLETION] = Field(4, ge=2)
    """Number of folds of gold for the calibration and for the decision about completion."""
    bins: Annotated[int, _NOISE_AWARE] = Field(MAX_BINS, ge=1)
    """Maximum number of calibration bins; fewer where there is little gold."""
    noisy_epochs: int | None = Field(None, ge=1)
    """Epochs of stage II; by default 1 for a Hugging Face encoder, as in the paper, 5 for any other."""
    noisy_rate: float = Field(1.0, gt=0)
    """Learning rates of stage II, relative to stage I."""
    finetune: bool = True
    """Whether there is a stage III."""
    finetune_epochs: Annotated[int | None, _FINETUNE] = Field(None, ge=1)
    """Epochs of stage III; by default those of `train`."""
    finetune_rate: Annotated[float, _FINETUNE] = Field(0.3, gt=0)
    """Learning rates of stage III, relative to stage I."""
    rounds: int = Field(1, ge=1, le=2)
    """Rounds of stages II and III; the second completes the labels with the model of the first."""


class _Task(NamedTuple):
    """What all stages share."""

    gold: Sequence[Document]
    weak: Sequence[Document]
    dev: Sequence[Document] | None
    config: Config
    run: Run
    model: Model
    gold_data: TrainingSet
    noise_aware: bool
    completes: bool | None
    """Whether weak labels are completed; None until that is decided."""


class _HeldOut(NamedTuple):
    """Gold documents with the predictions and scores of models that have not seen them."""

    gold: list[Document]
    predicted: list[Document]
    scores: np.ndarray


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Train on `splits.gold` and `splits.weak` in the three stages of the paper."""
    gold, weak = splits.gold or (), splits.weak or ()
    if any(doc.spans for doc in weak):
        need_entities(gold)
    model, lost = new_model(config, join_documents(gold, weak), run), Lost()
    gold_data = training_set(model, gold, lost)
    run.log(f"needle: training on {len(gold):,} gold documents: {lost}")
    if only_weak := sorted(set(labels_of(weak)) - set(labels_of(gold))):
        run.log(f"needle: gold has no example of {', '.join(only_weak)}: it is learned from weak labels alone")
    noise_aware = config.noise_aware
    if noise_aware is None:
        noise_aware = model.encoder.is_transformer and config.completion is not False
    if noise_aware and config.completion is False:
        raise ConfigError("noise_aware=true has no effect with completion=false: it weights completed sentences")
    task = _Task(gold, weak, splits.dev, config, run, model, gold_data, noise_aware, config.completion)

    epochs = _epochs_by_stage(task)
    run.plan(epochs)

    # stage I: train on gold
    _train(task, gold_data, "initial", config.train.epochs)
    held_out = _hold_out(task) if noise_aware or config.completion is None else None
    if held_out is not None and config.completion is None:
        task = _decide_on_completion(task, held_out)
    for number in range(1, config.rounds + 1):
        # stage II: train on gold and completed weak sentences
        if number > 1 and config.complete_from is not None and task.noise_aware:
            held_out = _predict_by_folds(task)
        _train_on_completed(task, number, held_out)
        # stage III: fine-tune on gold; the result of stage II stays a candidate
        if config.finetune:
            name = f"finetune/{number}"
            _train(task, gold_data, name, epochs[name], config.finetune_rate, "best or start")
    return Tagger(model)


def _epochs_by_stage(task: _Task) -> dict[str, int]:
    """Number of epochs of every stage, in order; the folds of the calibration are trained once."""
    config = task.config
    stages = {"initial": config.train.epochs}
    for number in range(1, config.rounds + 1):
        needs_scores = task.noise_aware or (number == 1 and task.completes is None)
        if needs_scores and (number > 1 or config.complete_from is None):
            stages |= dict.fromkeys((f"calibrate/{fold + 1}" for fold in _calibration_folds(task)), config.train.epochs)
        stages[f"noisy/{number}"] = choose_noisy_epochs(config.noisy_epochs, task.model)
        if config.finetune:
            stages[f"finetune/{number}"] = config.finetune_epochs or config.train.epochs
    return stages


def choose_noisy_epochs(epochs: int | None, model: Model) -> int:
    """Epochs on gold and weak labels together: those of the setting, or the default for the encoder."""
    return epochs or (1 if model.encoder.is_transformer else 5)


def _calibration_folds(task: _Task) -> range:
    """The folds of gold that are held out in turn: with enough gold, one is enough."""
    return range(task.config.parts if len(task.gold) < ENOUGH_GOLD else 1)


def _train(task: _Task, data: TrainingSet, name: str, epochs: int, rate: float = 1.0, keep: Keep = "best") -> None:
    """Train the model on `data` in one stage; sentences with a weight below 1 use the noise-aware loss."""
    settings = task.config.train.resolve(task.model, data.features).scale_learning_rates(rate).with_epochs(epochs)
    step = loss_step(data, supervised_loss if data.targets.weight is None else _noise_aware_loss)
    train_stage(data, lambda _: step, settings, task.run, Selection(task.dev, keep=keep), name)


def _noise_aware_loss(scores: CRFScores, targets: Targets) -> Tensor:
    """The noise-aware loss; all known tokens of a sentence carry its confidence as their weight."""
    confidence = (targets.weight * (targets.known & scores.mask)).amax(dim=1)
    return noise_aware_loss(scores, targets, confidence)


def _minimum_probability(task: _Task) -> float:
    """The minimum probability of an added entity."""
    default = 0.0 if task.noise_aware else MIN_PROBABILITY
    return default if task.config.sure is None else task.config.sure


def _train_on_completed(task: _Task, number: int, held_out: _HeldOut | None) -> None:
    """Stage II: complete the weak documents and continue training on them and gold."""
    config, run = task.config, task.run
    folder = config.complete_from if number == 1 else None
    tagger: AnyTagger = Tagger(task.model) if folder is None else load(folder)
    sure = _minimum_probability(task)
    completed = complete_weak(tagger, task.weak, config.broken, sure, [run.identity, number])
    if not completed.docs:
        run.log(f"needle: {completed}: only gold is left to train on")
        return
    if not task.completes:
        docs, empty = treat_as_complete(completed.weak), completed.counts["empty"]
        completed = replace(completed, docs=docs, counts=Counter(empty=empty))
    run.log(f"needle: {completed}")
    confidence = None
    if task.noise_aware and held_out is not None:
        calibration = _calibrate(task, held_out)
        confidence = label_confidence(completed.labeled_share, calibration(completed.scores))
        write_confidence(run.folder, calibration, confidence, number)
    write_completed(run.folder, task.gold, completed, confidence, number)
    lost = Lost()
    data = training_set(task.model, join_documents(task.gold, completed.docs), lost)
    run.log(f"needle: gold and weak documents together: {lost}")
    if confidence is not None:
        data.weight_documents(np.concatenate([np.ones(len(task.gold)), confidence]))
    epochs = choose_noisy_epochs(config.noisy_epochs, task.model)
    _train(task, data, f"noisy/{number}", epochs, config.noisy_rate)


def _hold_out(task: _Task) -> _HeldOut:
    """Predictions on gold for the first round, by the tagger that completes then or by models like it."""
    folder = task.config.complete_from
    if folder is None:
        return _predict_by_folds(task)
    if _was_trained_on(folder, task.run.identity["data"]["gold"]):
        task.run.log("needle: the run complete_from was trained on this gold, so its confidence is overestimated")
    gold = select_complete(task.gold)
    return _HeldOut(gold, *predict_with_confidence(load(folder), gold))


def _predict_by_folds(task: _Task) -> _HeldOut:
    """Predictions of models like that of stage I on gold that they have not seen (out-of-fold)."""
    fold_of = assign_folds(task.gold, task.config.parts)
    held_out = _HeldOut([], [], np.zeros(0))
    for fold in _calibration_folds(task):
        gold = select_complete([doc for doc, other in zip(task.gold, fold_of, strict=True) if other == fold])
        tagger = _train_fold(task, fold_of != fold, f"calibrate/{fold + 1}") if gold else None
        if tagger is not None:
            predicted, scores = predict_with_confidence(tagger, gold)
            scores = np.concatenate([held_out.scores, scores])
            held_out = _HeldOut([*held_out.gold, *gold], [*held_out.predicted, *predicted], scores)
    return held_out


def _train_fold(task: _Task, chosen: np.ndarray, name: str) -> Tagger | None:
    """A model trained on some of the gold documents; None if they have no entity."""
    if not any(doc.spans for doc, use in zip(task.gold, chosen.tolist(), strict=True) if use):
        return None
    model = new_model(task.config, join_documents(task.gold, task.weak), task.run, name)
    data = replace(task.gold_data, model=model).only(chosen[task.gold_data.sentences.document])
    train_stage(data, lambda _: loss_step(data), task.config.train, task.run, Selection(task.dev), name)
    return Tagger(model)


def _decide_on_completion(task: _Task, held_out: _HeldOut) -> _Task:
    """Complete labels if that raises their F1 on held-out gold."""
    sure, log = _minimum_probability(task), task.run.log
    if not held_out.gold:
        log("needle: completion is off: there is too little gold to estimate whether it helps; see completion=true")
        return task._replace(completes=False, noise_aware=False)
    gain = estimate_completion_gain(held_out.gold, held_out.predicted, task.weak, task.config.broken, sure)
    if gain.is_positive:
        log(f"needle: completion is on: {gain}")
        return task._replace(completes=True)
    log(f"needle: completion is off: {gain}; completion=true completes anyway")
    return task._replace(completes=False, noise_aware=False)


def _calibrate(task: _Task, held_out: _HeldOut) -> Calibration:
    """Calibrate the scores of models on gold that they have not seen."""
    calibration = calibrate(held_out.scores, exact_match(held_out.gold, held_out.predicted), task.config.bins)
    bins, sentences = len(calibration.accuracy), int(calibration.sizes.sum())
    if not bins:
        task.run.log("needle: too little gold to calibrate on: the model's own probability is used as confidence")
    else:
        fewer = "" if bins == task.config.bins else f" (fewer than {task.config.bins}: little gold, or equal scores)"
        task.run.log(f"needle: calibrated on {sentences:,} held-out gold sentences in {bins} bins{fewer}")
    return calibration


def _was_trained_on(folder: Path, gold: Any) -> bool:
    """Whether a run folder, or the run around a model folder, records this gold as its training data."""
    data = (stored_identity(folder) or stored_identity(folder.parent) or {}).get("data")
    return isinstance(data, dict) and gold in data.values()
