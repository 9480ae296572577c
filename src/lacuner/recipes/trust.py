"""Train on weak labels as if they were complete.

What it does: cross-entropy (or the likelihood of a CRF) with weak labels treated as gold: every unlabeled token is
    trained as O. Only spans marked `unsure` are left out of the loss.
Assumes: that no label is missing and none is wrong. Where entities are unlabeled, recall collapses.
Needs: weak.
Costs: one training run.
Departs from the authors: not applicable; it is the lower bound that every other recipe must beat.
Reference: none.
"""

from lacuner.corpus.stored import treat_as_complete
from lacuner.data import Splits
from lacuner.models.tagger import Tagger
from lacuner.training.config import RecipeConfig
from lacuner.training.run_folder import Run
from lacuner.training.stage import train_on

NEEDS = ("weak",)
GROUP = "baselines"
PAPER = ""
STREAMS = True

Config = RecipeConfig


def train(splits: Splits, config: RecipeConfig, run: Run) -> Tagger:
    """Train on `splits.weak` treated as complete."""
    return train_on(treat_as_complete(splits.weak or ()), splits.dev, config, run)
