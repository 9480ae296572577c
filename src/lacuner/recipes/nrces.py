"""NRCES: on unlabeled spans, anneal cross-entropy into a bounded loss.

What it does: a span classifier. Labeled spans have cross-entropy. Half of the unlabeled spans have the loss `beta * CE
    + (1 - beta) * S` with `beta = exp(-epoch / w)` and `S = sigma(z_O)`, the paper's printed formula. As cross-entropy
    fades, S lowers the score of O at unlabeled spans, most where the model is uncertain. So missing entities that
    cross-entropy has begun to push towards O are recovered. If `w` is too small, too many spans are predicted.
Assumes: that labels are right and missing at random, and that the model learns what entities look like before it
    memorises the missing labels. Best without dev where most labels are missing; on clean labels cross-entropy is
    better.
Needs: weak; with dev it also tunes the decision threshold, and `w`, if `try_w` is set.
Costs: one training run of a span classifier, about as long as `trust`; one more for each w to choose from.
Departs from the authors: `w` is a fifth of the epochs by default, where they choose 2, 5 or 10 epochs by data set. With
    dev the threshold is tuned, where they use argmax. The maximum span width comes from the data. Complete documents
    contribute all their negatives, and spans that overlap an unsure one never take part. Early stopping does not count
    the first `3 w` epochs, in which cross-entropy fades. Batches, learning rates and the size of the head are those of
    all our recipes (`benchmarks/papers/negative_sampling.toml` has theirs). The paper calls S a loss that tolerates
    noise, but the printed sign lowers the score of O where O is the label; `ablation.sigmoid=margin` is bounded and has
    the other sign. The paper's ablations are `share=1.0` (no random sampling), `ablation.negatives=ce` (no sigmoid),
    `ablation.positives=faded` (no separate training), `ablation.positives=both` (sigmoid on labeled spans too) and
    `ablation.negatives=both` (cross-entropy on unlabeled spans too).
Reference: Kang et al. (2022), "A noise-robust loss for unlabeled entity problem in named entity recognition" (NRCES).
"""

from collections.abc import Mapping
from dataclasses import replace
from math import ceil, exp
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from lacuner.config import Config as BaseConfig
from lacuner.data import Lost, Splits
from lacuner.losses.nrces import Part, Sigmoid, nrces_loss
from lacuner.models.config import SpanHeadConfig
from lacuner.models.tagger import Tagger
from lacuner.training.config import RecipeConfig
from lacuner.training.dataset import TrainingSet, WeakTrainingSet, derive_tensor, weak_training_set
from lacuner.training.run_folder import Run
from lacuner.training.stage import Selection, StageResult, best_on_dev, name_stages, new_model, train_stage
from lacuner.training.steps import Step, loss_step

NEEDS = ("weak",)
GROUP = "other methods"
PAPER = "Kang et al., 2022"
STREAMS = True

W_PER_EPOCH = 0.2
"""Default of `w` per epoch of training: a compromise between dev of EC and earlier test scores (see the notebook)."""
ANNEALED = 3.0
"""Multiples of `w` after which cross-entropy is nearly gone (beta is 0.05), so that early stopping makes sense."""


class Ablation(BaseConfig):
    """Switches that only experiments need."""

    sigmoid: Sigmoid = "printed"
    """Form of the bounded loss (see `lacuner.losses.nrces`)."""
    positives: Part = "ce"
    """Loss of labeled spans: `ce`, `faded` or the sum of `both`."""
    negatives: Part = "faded"
    """Loss of unlabeled spans: `ce`, `faded` or the sum of `both`."""


class Config(RecipeConfig):
    """Settings of `nrces`."""

    RENAMED: ClassVar[Mapping[str, str]] = {name: f"ablation.{name}" for name in ("sigmoid", "positives", "negatives")}

    head: SpanHeadConfig = SpanHeadConfig()
    w: float | None = Field(None, gt=0)
    """Time constant of the annealing, in epochs. None: a fifth of `train.epochs`, so 3 of 15."""
    try_w: tuple[Annotated[float, Field(gt=0)], ...] = ()
    """Values of `w` to try, one training run each; the best on dev is kept, and `w` is ignored."""
    share: float = Field(0.5, gt=0, le=1)
    """Share of the unlabeled spans, sampled once, that are trained on."""
    ablation: Ablation = Ablation()
    """Switches that only experiments need."""


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Train on `splits.weak`."""
    docs, ablation = splits.weak or (), config.ablation
    switches = ablation.sigmoid, ablation.positives, ablation.negatives
    tries = name_stages(config.try_w, "w") if splits.dev is not None else []
    run.plan(dict.fromkeys(tries or ["train"], config.train.epochs))

    def train_with(w: float, name: str) -> StageResult:
        lost = Lost()
        weak = weak_training_set(new_model(config, docs, run), docs, lost)
        run.log(f"training on {len(docs):,} documents: {lost}")
        data = _add_negatives(weak, config.share, run.seed_for("negatives"))
        annealed = ceil(ANNEALED * w)
        settings = config.train.model_copy(update={"patience_after": max(config.train.patience_after, annealed)})

        def make_step(epoch: int) -> Step:
            beta = exp(-epoch / w)
            return loss_step(data, lambda scores, targets: nrces_loss(scores, targets, beta, *switches))

        selection = Selection(splits.dev, config.head.threshold)
        return train_stage(data, make_step, settings, run, selection, name)

    default = config.w or W_PER_EPOCH * config.train.epochs
    return best_on_dev(config.try_w, default, train_with, "w", splits.dev, run)


def _add_negatives(weak: WeakTrainingSet, share: float, seed: int) -> TrainingSet:
    """The training set in which a random share of the unlabeled spans is known, as negatives."""
    data, generator = weak.as_annotated, torch.Generator().manual_seed(seed)

    def known_spans(words: slice) -> Tensor:
        unlabeled = weak.unlabeled[words]
        sampled = torch.rand(unlabeled.shape, generator=generator) < share
        return data.targets.known[words] | (unlabeled & sampled)

    known = derive_tensor(data, ["nrces", share, seed], known_spans)
    return replace(data, targets=replace(data.targets, known=known))
