"""Train on gold.

What it does: cross entropy (or the likelihood of a CRF) on gold; what incomplete gold does not say is unknown.
Assumes: that gold is right, and where it is complete, that nothing is missing.
Needs: gold.
Costs: one training.
Departs from the authors: there are none; it is the upper bound that the other recipes are measured against.
Reference: none.
"""

from __future__ import annotations

from lacuner.data import Splits
from lacuner.models.tagger import Tagger
from lacuner.training.config import PlainConfig
from lacuner.training.run_folder import Run
from lacuner.training.stage import learn

NEEDS = ("gold",)

Config = PlainConfig


def train(splits: Splits, config: PlainConfig, run: Run) -> Tagger:
    """Learn from `splits.gold`."""
    return learn(splits.gold or (), splits.dev, config, run)
