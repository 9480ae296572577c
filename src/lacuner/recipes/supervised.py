"""Train on gold only.

What it does: cross-entropy (or the likelihood of a CRF) on gold; in incomplete gold, unlabeled tokens stay unknown.
Assumes: that gold is right and, where it is marked complete, complete.
Needs: gold.
Costs: one training run.
Departs from the authors: not applicable; it is what the other recipes are measured against.
Reference: none.
"""

from lacuner.data import Splits
from lacuner.models.tagger import Tagger
from lacuner.training.config import RecipeConfig
from lacuner.training.run_folder import Run
from lacuner.training.stage import train_on

NEEDS = ("gold",)
GROUP = "baselines"
PAPER = ""

Config = RecipeConfig


def train(splits: Splits, config: RecipeConfig, run: Run) -> Tagger:
    """Train on `splits.gold`."""
    return train_on(splits.gold or (), splits.dev, config, run)
