"""No model at all: find again the names that the weak labels name.

What it does: learns the labelled names by heart, each with its most frequent label, and finds them word for word.
Assumes: that names do not change and mean one thing; it can never find one that nobody labelled.
Needs: weak.
Costs: nothing.
Departs from the authors: there are none; it says what the dictionary is worth before anything is learned.
Reference: none.
"""

from __future__ import annotations

from lacuner.config import Config as BaseConfig
from lacuner.data import Splits
from lacuner.errors import TrainingError
from lacuner.models.lookup import LookupTagger, build_lookup_tagger
from lacuner.training.run_folder import Run

NEEDS = ("weak",)


class Config(BaseConfig):
    """`dictionary` has no settings."""


def train(splits: Splits, config: Config, run: Run) -> LookupTagger:
    """Learn the names of `splits.weak`."""
    tagger = build_lookup_tagger(splits.weak or ())
    if not tagger.names:
        raise TrainingError("there is no labelled span in the training data: nothing can be learned from it")
    run.say(f"dictionary: {len(tagger.names):,} names learned by heart")
    return tagger
