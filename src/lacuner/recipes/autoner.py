"""AutoNER: classify gaps between words as tie or break, then the type of the chunks between breaks.

What it does: learns from weak labels whether two neighbouring words belong to one entity (tie) or not (break), and the
    type of each chunk between two breaks, which for unlabeled words is "no entity". Gaps and chunks that touch an
    unsure span are unknown: they have no loss. Matches of gazetteer entries with two labels are unsure, and so are
    capitalised phrases if `lacuner annotate` used them as a source.
Assumes: that the labels are right, and that phrases which may be entities are marked unsure. Other unlabeled words are
    taken for O, so recall falls where names are missing without such a mark.
Needs: weak.
Costs: one training run.
Departs from the authors: phrases of unknown type are our unsure spans instead of those of a phrase miner (AutoPhrase);
    an entry with several types is unsure instead of a set of possible labels; the encoder is any of ours, with its
    optimiser, instead of a BiLSTM beside a language model.
Reference: Shang et al. (2018), "Learning named entity tagger using domain-specific dictionary" (AutoNER).
"""

from lacuner.corpus.stored import treat_as_complete
from lacuner.data import Splits
from lacuner.models.config import TieOrBreakHeadConfig
from lacuner.models.tagger import Tagger
from lacuner.training.config import RecipeConfig
from lacuner.training.run_folder import Run
from lacuner.training.stage import train_on

NEEDS = ("weak",)
GROUP = "baselines"
PAPER = "Shang et al., 2018"
STREAMS = True


class Config(RecipeConfig):
    """Settings of `autoner`."""

    head: TieOrBreakHeadConfig = TieOrBreakHeadConfig()


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Train on `splits.weak`: everything that is neither labeled nor unsure is a negative."""
    return train_on(treat_as_complete(splits.weak or ()), splits.dev, config, run)
