"""Believe every weak label, and every gap.

What it does: cross entropy (or the likelihood of a CRF) as if weak labels were gold: what nobody labelled is taught as
    "no entity". Only spans that are marked unsure are left out.
Assumes: that nothing is missing and nothing wrong. Where that does not hold, recall collapses.
Needs: weak.
Costs: one training.
Departs from the authors: there are none; it is the lower bound that every other recipe must beat.
Reference: none.
"""

from __future__ import annotations

from dataclasses import replace

from lacuner.data import Splits
from lacuner.models.tagger import Tagger
from lacuner.training.config import PlainConfig
from lacuner.training.run_folder import Run
from lacuner.training.stage import learn

NEEDS = ("weak",)

Config = PlainConfig


def train(splits: Splits, config: PlainConfig, run: Run) -> Tagger:
    """Learn from `splits.weak` as if it were complete."""
    believed = [replace(doc, complete=True) for doc in splits.weak or ()]
    return learn(believed, splits.dev, config, run)
