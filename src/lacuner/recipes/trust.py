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

from lacuner.corpus.stored import treat_as_complete
from lacuner.data import Splits
from lacuner.models.tagger import Tagger
from lacuner.techniques.label_masking import MaskableConfig, train_with_masking
from lacuner.training.run_folder import Run

NEEDS = ("weak",)
GROUP = "baselines"
PAPER = ""
STREAMS = True

Config = MaskableConfig


def train(splits: Splits, config: MaskableConfig, run: Run) -> Tagger:
    """Train on `splits.weak` treated as complete."""
    return train_with_masking(treat_as_complete(splits.weak or ()), splits.dev, config, run)
