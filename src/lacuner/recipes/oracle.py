"""For measurement only: weak labels, and somebody who tells where the gaps are.

What it does: believes the weak labels like `trust`, but leaves out of the loss whatever touches an entity that gold has
    and the weak labels lack, unless it is labelled itself. It is what a perfect method could reach that finds the gaps
    but not their labels; a recipe's F1 over the oracle's is the share that it keeps.
Assumes: that training gold is at hand, which its users would not have: never a method, always a yardstick.
Needs: weak, gold (the same documents).
Costs: one training.
Departs from the authors: there are none.
Reference: none.
"""

from __future__ import annotations

from dataclasses import replace

from lacuner.data import Document, Splits
from lacuner.evaluate import align
from lacuner.models.tagger import Tagger
from lacuner.training.config import PlainConfig
from lacuner.training.run_folder import Run
from lacuner.training.stage import learn

NEEDS = ("weak", "gold")

Config = PlainConfig


def train(splits: Splits, config: PlainConfig, run: Run) -> Tagger:
    """Learn from `splits.weak`, with the gaps that `splits.gold` shows left out."""
    told = [_without_gaps(weak, gold) for gold, weak in align(splits.gold or (), splits.weak or ())]
    return learn(told, splits.dev, config, run)


def _without_gaps(weak: Document, gold: Document) -> Document:
    there = {span[:3] for span in weak.spans}
    gaps = tuple(span for span in gold.spans if span[:3] not in there)
    return replace(weak, unsure=(*weak.unsure, *gaps), complete=True)
