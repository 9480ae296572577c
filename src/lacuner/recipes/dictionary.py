"""No model: match the gazetteer or, without one, the labeled names ("Distant Match").

What it does: if the weak labels come with their gazetteer (`lacuner annotate` wrote it beside them, or `--dictionary`
    names it), the tagger matches that. Otherwise it collects the labeled surface forms, each with its most frequent
    label, and matches them exactly; `predict --no-gazetteer` does so in any case.
Assumes: that names are spelled the same everywhere and have one meaning; it never finds a name that is not labeled.
Needs: weak.
Costs: nothing.
Departs from the authors: not applicable; it shows what the gazetteer is worth before anything is trained.
Reference: none.
"""

from lacuner.config import Config as BaseConfig
from lacuner.data import Splits
from lacuner.errors import TrainingError
from lacuner.models.lookup import LookupTagger, build_lookup_tagger
from lacuner.training.run_folder import Run

NEEDS = ("weak",)
GROUP = "baselines"
PAPER = ""


class Config(BaseConfig):
    """`dictionary` has no settings."""


def train(splits: Splits, config: Config, run: Run) -> LookupTagger:
    """Collect the labeled names of `splits.weak`."""
    tagger = build_lookup_tagger(splits.weak or ())
    if not tagger.names:
        raise TrainingError("there is no labeled span in the training data: nothing can be learned from it")
    run.log(f"dictionary: {len(tagger.names):,} distinct names")
    return tagger
