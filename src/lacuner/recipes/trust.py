"""Train on weak labels as if they were complete.

What it does: cross-entropy (or the likelihood of a CRF) with weak labels treated as gold: every unlabeled token is
    trained as O. Only spans marked `unsure` are left out of the loss. With `masking.labels=missing` or `entity`, labels
    that the model contradicts leave it too (`lacuner.techniques.label_masking`).
Assumes: that no label is missing and none is wrong. Where entities are unlabeled, recall collapses.
Needs: weak.
Costs: one training run.
Departs from the authors: not applicable; it is the lower bound that every other recipe must beat.
Reference: none; for masking Merdjanovska, Golde and Akbik (2026), losses `L_missing` and `L_entity`.
"""

from typing import Any

from pydantic import SerializerFunctionWrapHandler, model_serializer

from lacuner.corpus.stored import treat_as_complete
from lacuner.data import Lost, Splits
from lacuner.models.tagger import Tagger
from lacuner.techniques.label_masking import MaskingConfig, masking_steps, omit_default_masking
from lacuner.training.config import RecipeConfig
from lacuner.training.dataset import training_set
from lacuner.training.run_folder import Run
from lacuner.training.stage import Selection, new_model, train_stage

NEEDS = ("weak",)
GROUP = "baselines"
PAPER = ""
STREAMS = True


class Config(RecipeConfig):
    """Settings of `trust`."""

    masking: MaskingConfig = MaskingConfig()
    """Labels that leave the loss because the model contradicts them."""

    @model_serializer(mode="wrap")
    def _omit_default_masking(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return omit_default_masking(serialise(self))


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Train on `splits.weak` treated as complete."""
    docs, lost = treat_as_complete(splits.weak or ()), Lost()
    data = training_set(new_model(config, docs, run), docs, lost)
    run.plan({"train": config.train.epochs})
    run.log(f"training on {len(docs):,} documents: {lost}")
    make_step = masking_steps(data, config.masking, config.train, run, "train")
    return Tagger(train_stage(data, make_step, config.train, run, Selection(splits.dev, config.head.threshold)).model)
