"""Learn from gold, complete the weak labels, learn from both as far as they can be trusted, and from gold again.

What it does: trains a CRF on gold. Where a weak sentence has a label it stays, elsewhere the model says what is there;
    sentences without a weak label are left out. The model goes on with gold and weak sentences together. Last it is
    fine-tuned on gold alone. With a pretrained encoder, weak sentences that may be wrong are made likely only as far as
    they are probably right: that follows from the share of their words that have a weak label and from how often the
    model was right about held-out gold that it was as sure of. With another, entities that completion is not sure of
    are left unknown.
Assumes: that weak labels are right where there are any, and that a little gold is there.
Needs: weak, gold.
Costs: two trainings on gold and a few epochs on everything; with the noise-aware loss a training more for each part of
    gold that is held out.
Departs from the authors: the confidence is calibrated on held-out parts of gold, never on test data; a sentence's score
    is the probability of its best tag sequence, which can be compared between models, where they have the sequence's
    score over its length. To doubt entities, not sentences, is ours: with a small encoder the noise-aware loss cost one
    to two points on BC5CDR's dev, and this won one (as much as no completion at all). Epochs and rates are for encoders
    that start from nothing, too. The models that judge held-out gold have no dev to stop by. Losses are divided by
    words, not by sentences.
Reference: Jiang et al. (2021), "Named entity recognition with small strongly labeled and large weakly labeled data".
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field

from lacuner.config import Config as BaseConfig
from lacuner.config import OnlyWith
from lacuner.data import Document, Lost, Splits
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
from lacuner.models.config import CRFHeadConfig, EncoderConfig
from lacuner.models.storage import AnyTagger, load
from lacuner.models.tagger import Tagger
from lacuner.techniques.cross_fitting import held_out
from lacuner.techniques.label_completion import complete_by, scored, write_completed, write_confidence
from lacuner.techniques.mixing import mix, need_entities, only_in_weak
from lacuner.training.config import TrainConfig, resolved, slower
from lacuner.training.dataset import TrainingSet, dev_scorer, training_set
from lacuner.training.loop import Step, StepLoss, fit
from lacuner.training.run_folder import Run
from lacuner.training.stage import new_model
from lacuner.training.steps import believe

NEEDS = ("weak", "gold")
SURE = 0.9
"""The probability of an entity that completion adds, where it must be sure."""
ENOUGH = 500
"""Documents of gold of which one held-out part tells enough; of fewer each part is held out once."""

_COMPLETION = OnlyWith("completion", ("True",))
_NOISE_AWARE = OnlyWith("noise_aware", ("True", "None"))
_FINETUNE = OnlyWith("finetune", ("True",))


class Config(BaseConfig):
    """Settings of `needle`; `train` is that of the initial model."""

    encoder: EncoderConfig = EncoderConfig()
    head: CRFHeadConfig = CRFHeadConfig()
    train: TrainConfig = TrainConfig()
    completion: bool = True
    """Complete the weak labels; false: what has no label is O."""
    complete_from: Annotated[Path | None, _COMPLETION] = None
    """A run that says what is there in the first round; None: the initial model."""
    broken: Annotated[Literal["repair", "drop"], _COMPLETION] = "repair"
    """What becomes of a sentence in which a weak label interrupts a predicted one of another type."""
    noise_aware: bool | None = None
    """Trust completed sentences by their confidence; false: as if they were gold. None: if the encoder is a pretrained
    one."""
    sure: Annotated[float | None, _COMPLETION] = Field(None, ge=0, le=1)
    """Predicted entities that are less probable are not added: their words are unknown. None: 0.9 where sentences are
    not trusted by their confidence, 0 where they are."""
    parts: Annotated[int, _NOISE_AWARE] = Field(4, ge=2)
    """Into how many parts gold is cut, to be judged by a model that has not seen it."""
    bins: Annotated[int, _NOISE_AWARE] = Field(MAX_BINS, ge=1)
    """Bins of the calibration at most; fewer where there is little gold."""
    noisy_epochs: int = Field(5, ge=1)
    """Epochs with gold and weak sentences together."""
    noisy_rate: float = Field(1.0, gt=0)
    """Their learning rates, times those of the initial model."""
    finetune: bool = True
    """End with gold alone."""
    finetune_epochs: Annotated[int | None, _FINETUNE] = Field(None, ge=1)
    """Its epochs; None: those of `train`."""
    finetune_rate: Annotated[float, _FINETUNE] = Field(0.3, gt=0)
    """Its learning rates, times those of the initial model."""
    rounds: int = Field(1, ge=1, le=2)
    """2: complete the weak labels again with the model of the first round, and repeat; its confidence is still judged
    by models of gold alone."""


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Learn from `splits.gold` and `splits.weak`."""
    gold, weak = splits.gold or (), splits.weak or ()
    if any(doc.spans for doc in weak):
        need_entities(gold)
    needle = _Needle(gold, weak, splits.dev, config, run)
    needle.learn_gold("initial", config.train.epochs)
    for number in range(1, config.rounds + 1):
        needle.learn_both(number)
        if config.finetune:
            needle.learn_gold(f"finetune/{number}", config.finetune_epochs or config.train.epochs, config.finetune_rate)
    return needle.tagger


class _Needle:
    """A model on its way through the stages."""

    def __init__(
        self,
        gold: Sequence[Document],
        weak: Sequence[Document],
        dev: Sequence[Document] | None,
        config: Config,
        run: Run,
    ) -> None:
        self.gold, self.weak, self.config, self.run = gold, weak, config, run
        self.model = new_model(config.encoder, config.head, [*gold, *weak], run)
        self.tagger = Tagger(self.model)
        self.dev = dev_scorer(self.model, dev)
        lost = Lost()
        self.data = training_set(self.model, gold, lost)
        run.say(f"needle: learning from {len(gold):,} gold documents: {lost}")
        if unknown := only_in_weak(gold, weak):
            run.say(f"needle: gold has no example of {', '.join(unknown)}: the weak labels alone teach it")
        pretrained = self.model.encoder.is_transformer
        self.noise_aware = pretrained and config.completion if config.noise_aware is None else config.noise_aware
        if self.noise_aware and not config.completion:
            raise ConfigError("noise_aware=true has no effect with completion=false: it is completion that is doubted")
        self.sure = config.sure if config.sure is not None else 0.0 if self.noise_aware else SURE
        self._own: Calibration | None = None

    def learn_gold(self, name: str, epochs: int, rate: float = 1.0) -> None:
        """A stage on gold alone."""
        step = believe(self.data)
        self._fit(name, self.data, step, epochs, rate)

    def _fit(self, name: str, data: TrainingSet, step: Step, epochs: int, rate: float) -> None:
        settings = slower(resolved(self.config.train, self.model, data.features), rate, epochs)
        with self.run.stage(name) as stage:
            # fine-tuning may find nothing better than what it began with; the weak labels must be gone through
            fit(self.model, data.features, lambda _: step, settings, stage, self.dev, name.startswith("finetune"))

    def learn_both(self, number: int) -> None:
        """A stage on gold and the completed weak documents."""
        config, run = self.config, self.run
        elsewhere = number == 1 and config.complete_from is not None
        asked: AnyTagger = load(config.complete_from or "") if elsewhere else self.tagger
        completed = complete_by(asked, self.weak, config.broken, self.sure)
        if not completed.docs:
            run.say(f"needle: {completed}: there is nothing to learn but gold")
            return
        if not config.completion:
            plain, left = [replace(doc, complete=True) for doc in completed.weak], completed.counts["empty"]
            completed = replace(completed, docs=plain, counts=Counter(empty=left))
        run.say(f"needle: {completed}")
        sure = None
        if self.noise_aware:
            calibration = self._judged(asked) if elsewhere else self._calibration()
            sure = label_confidence(completed.trusted, calibration(completed.scores))
            write_confidence(run.folder, calibration, sure, number)
        write_completed(run.folder, self.gold, completed, sure, number)
        lost = Lost()
        both = mix(self.model, self.gold, completed.docs, lost)
        run.say(f"needle: gold and weak documents together: {lost}")
        step = believe(both.data) if sure is None else _doubt(both.data, both.of_sentences(1.0, sure))
        self._fit(f"noisy/{number}", both.data, step, config.noisy_epochs, config.noisy_rate)

    def _judged(self, tagger: AnyTagger) -> Calibration:
        """How often another run's tagger is right about gold, which it should not have seen."""
        if _has_learned(self.config.complete_from or Path(), self.run.identity["data"]["gold"]):
            self.run.say("needle: the run that completes has learned from this very gold: it seems surer than it is")
        asked = select_complete(self.gold)
        found, scores = scored(tagger, asked)
        return self._said(calibrate(scores, exact_match(asked, found), self.config.bins))

    def _calibration(self) -> Calibration:
        """How often a model like the initial one is right about gold that it has not seen."""
        if self._own is None:
            all_parts = len(self.gold) < ENOUGH
            found = held_out(self.gold, self.config.parts, self._learn_part, all_parts)
            self._own = self._said(calibrate(*found, self.config.bins))
        return self._own

    def _said(self, calibration: Calibration) -> Calibration:
        bins, sentences = len(calibration.accuracy), int(calibration.sizes.sum())
        few = f", not {self.config.bins}: there is too little gold for more, or it was equally sure of too many"
        few = "" if bins == self.config.bins else few
        self.run.say(
            f"needle: confidence from {sentences:,} held-out gold sentences in {bins} bins{few}"
            if bins
            else "needle: too little gold to calibrate on: the model's own probability is taken for its confidence"
        )
        return calibration

    def _learn_part(self, chosen: np.ndarray, name: str) -> Tagger | None:
        """A model of some of the gold documents; what costs nothing is not learned."""
        if not any(doc.spans for doc, mine in zip(self.gold, chosen.tolist(), strict=True) if mine):
            return None
        config, data = self.config, self.data
        model = new_model(config.encoder, config.head, [*self.gold, *self.weak], self.run, name)
        costs = np.where(chosen[data.sentences.document], data.features.costs, 0)
        part = replace(data, model=model, features=replace(data.features, costs=costs))
        step, settings = believe(part), config.train.model_copy(update={"patience": None})
        with self.run.stage(name) as stage:
            fit(model, part.features, lambda _: step, resolved(settings, model, data.features), stage)
        return Tagger(model)


def _has_learned(folder: Path, gold: Any) -> bool:
    """Whether the model in a folder, a run or its `model`, comes from this gold; what says nothing has not."""
    for about in (folder / "run.json", folder.parent / "run.json"):
        if about.is_file():
            try:
                return gold in json.loads(about.read_text(encoding="utf-8"))["identity"]["data"].values()
            except (ValueError, KeyError, TypeError, AttributeError):
                return False
    return False


def _doubt(data: TrainingSet, confidences: np.ndarray) -> Step:
    """The step of the noise-aware loss; a mean over words, as everywhere."""
    sure = torch.from_numpy(confidences).float()

    def step(indices: Any) -> StepLoss:
        batch, targets = data.batch(indices)
        scores = data.model(batch)
        known, words = float((targets.known & scores.mask).sum()), float(batch.mask.sum())
        losses = noise_aware_loss(scores, targets, sure[torch.from_numpy(indices)].to(scores.logits.device))
        return StepLoss(losses.sum(), words, known, words)

    return step
