"""Weighted partial CRF: cross-fitted tag distributions for unlabeled tokens.

What it does: splits the documents into folds. A CRF that has not seen a fold predicts tag distributions for the fold's
    unlabeled tokens, given its labels; then all fold models are trained again with the likelihood weighted by these
    distributions, a few times over. Finally one model is trained on all documents. The first fold models take
    unlabeled tokens for O.
Assumes: that labels are right, and that unlabeled entities look like labeled ones elsewhere.
Needs: weak.
Costs: one training run with a CRF, plus half a run per iteration with two folds.
Departs from the authors: two iterations where they have ten; half the epochs for the fold models.
Reference: Jie et al. (2019), "Better modeling of incomplete annotations for named entity recognition".
"""

from dataclasses import replace
from math import ceil
from typing import Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from lacuner.data import Lost, Splits
from lacuner.errors import TrainingError
from lacuner.losses.weighted_crf import weighted_crf_loss
from lacuner.models.config import CRFHeadConfig
from lacuner.models.heads.crf import IMPOSSIBLE, allowed_tags, tag_marginals, viterbi
from lacuner.models.inference import infer_batches, join_batches
from lacuner.models.tag_sets import tag_set_of
from lacuner.models.tagger import Tagger
from lacuner.models.types import Targets
from lacuner.training.config import RecipeConfig, TrainConfig
from lacuner.training.dataset import TrainingSet, assign_folds, weak_training_set
from lacuner.training.run_folder import Run
from lacuner.training.stage import Selection, new_model, train_stage
from lacuner.training.steps import loss_step

NEEDS = ("weak",)
GROUP = "other methods"
PAPER = "Jie et al., 2019"


class Config(RecipeConfig):
    """Settings of `weighted_partial`."""

    head: CRFHeadConfig = CRFHeadConfig()
    folds: int = Field(2, ge=2)
    """Number of folds."""
    iterations: int = Field(2, ge=1)
    """Number of times the distributions are renewed."""
    weights: Literal["soft", "hard"] = "soft"
    """Distribution over tags, or all weight on the best tag sequence."""


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Train on `splits.weak` with cross-fitted distributions at its unlabeled tokens."""
    docs, lost = splits.weak or (), Lost()
    model = new_model(config, docs, run)
    weak = weak_training_set(model, docs, lost)
    data, unlabeled = weak.as_complete, weak.unlabeled
    run.log(f"training on {len(docs):,} documents in {config.folds} folds: {lost}")

    # at first, the distribution of an unlabeled token is O alone
    only_o = functional.one_hot(torch.zeros(len(unlabeled), dtype=torch.long), len(tag_set_of(model.head))).float()
    data.targets.probs = only_o * unlabeled.unsqueeze(-1)  # tokens that touch an unsure span keep no distribution
    data.targets.known &= ~unlabeled
    fold_of = assign_folds(docs, config.folds)[data.sentences.document]
    if len(set(fold_of.tolist())) < 2:
        raise TrainingError("cross-fitting needs at least two documents with different texts")
    half = config.train.model_copy(update={"epochs": ceil(config.train.epochs / 2), "patience": None})
    folds = [f"fold/{number}/{fold + 1}" for number in range(1, config.iterations + 1) for fold in range(config.folds)]
    run.plan(dict.fromkeys(folds, half.epochs) | {"train": config.train.epochs})

    # cross-fitting: each fold gets the distributions of a model that has not seen it
    for iteration in range(1, config.iterations + 1):
        out_of_fold = []
        for fold in range(config.folds):
            name = f"fold/{iteration}/{fold + 1}"
            fold_data = replace(data, model=new_model(config, docs, run, name))
            _train(fold_data.only(fold_of != fold), half, run, Selection(), name)
            out_of_fold.append(tag_distributions(fold_data, np.flatnonzero(fold_of == fold), config.weights))
        data.targets.probs = torch.stack(out_of_fold).sum(dim=0) * unlabeled.unsqueeze(-1)

    # one model on all documents
    _train(data, config.train, run, Selection(splits.dev), "train")
    return Tagger(model)


def _train(data: TrainingSet, train: TrainConfig, run: Run, selection: Selection, name: str) -> None:
    train_stage(data, lambda _: loss_step(data, weighted_crf_loss, known=_has_target), train, run, selection, name)


def _has_target(targets: Targets) -> Tensor:
    """Tokens with a label or a distribution: `[batch, words]`."""
    assert targets.probs is not None
    return targets.known | (targets.probs > 0).any(dim=-1)


def tag_distributions(data: TrainingSet, sentences: np.ndarray, weights: Literal["soft", "hard"]) -> Tensor:
    """Tag distributions `[words, tags]` given the labels of these sentences; zeros for all other sentences."""

    def compute(indices: np.ndarray) -> Tensor:
        batch, targets = data.batch(indices)
        scores = data.model(batch)
        marginals = tag_marginals(scores, targets)
        if weights == "soft":
            return marginals
        allowed = scores.logits.masked_fill(~allowed_tags(scores, targets), IMPOSSIBLE)
        return functional.one_hot(viterbi(replace(scores, logits=allowed)), marginals.shape[-1]).float()

    return join_batches(infer_batches(data.model, data.features, compute, sentences), data.features.lengths)
