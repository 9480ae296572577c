"""Train on gold only.

What it does: cross-entropy (or the likelihood of a CRF) on gold; in incomplete gold, unlabeled tokens stay unknown.
    For gold with mistakes there is `masking.labels` (`lacuner.techniques.label_masking`), as in `trust`.
Assumes: that gold is right and, where it is marked complete, complete.
Needs: gold.
Costs: one training run.
Departs from the authors: not applicable; it is what the other recipes are measured against.
Reference: none.
"""

from lacuner.data import Splits
from lacuner.models.tagger import Tagger
from lacuner.techniques.label_masking import MaskableConfig, train_with_masking
from lacuner.training.run_folder import Run

NEEDS = ("gold",)
GROUP = "baselines"
PAPER = ""

Config = MaskableConfig


def train(splits: Splits, config: MaskableConfig, run: Run) -> Tagger:
    """Train on `splits.gold`."""
    return train_with_masking(splits.gold or (), splits.dev, config, run)
