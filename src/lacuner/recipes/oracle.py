"""Weak labels with every missing label masked out, as if an oracle knew where they are: an upper bound.

What it does: like `trust`, but whatever overlaps an entity that gold has and the weak labels lack is left out of the
    loss, unless it is labeled itself. A method that found all missing labels, but not their types, could
    reach this F1: it is what to compare a recipe with.
Assumes: gold for the training documents, which users of the other recipes do not have: for measurement only.
Needs: weak, gold (the same documents).
Costs: one training run.
Departs from the authors: not applicable.
Reference: none.
"""

from dataclasses import replace

from lacuner.data import Document, Splits
from lacuner.evaluate import align
from lacuner.models.tagger import Tagger
from lacuner.training.config import RecipeConfig
from lacuner.training.run_folder import Run
from lacuner.training.stage import train_on

NEEDS = ("weak", "gold")
GROUP = "for experiments"
PAPER = ""

Config = RecipeConfig


def train(splits: Splits, config: RecipeConfig, run: Run) -> Tagger:
    """Train on `splits.weak`, with the missing labels that `splits.gold` reveals masked out."""
    docs = [_mask_missing(weak, gold) for gold, weak in align(splits.gold or (), splits.weak or ())]
    return train_on(docs, splits.dev, config, run)


def _mask_missing(weak: Document, gold: Document) -> Document:
    """The weak document treated as complete, with its missing entities marked unsure."""
    labeled = {span.key for span in weak.spans}
    missing = tuple(span for span in gold.spans if span.key not in labeled)
    return replace(weak, unsure=(*weak.unsure, *missing), complete=True)
