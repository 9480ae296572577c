"""Semi-supervised self-training: train on gold, pseudo-label the other texts, train on both.

What it does: trains a model on gold, which then labels the unlabeled texts and those of the weak documents, whose own
    labels are ignored (unsure spans stay unknown). Then it is trained on gold and these pseudo-labels together.
Assumes: that what the first model gets right outweighs what it gets wrong.
Needs: weak, gold. Unlabeled text (`--unlabeled`) may take the place of weak documents, or come beside them.
Costs: one training run on gold, and one on everything per round.
Departs from the authors: it is a baseline; the texts are those of all weak documents, labeled or not.
Reference: Lee (2013), "Pseudo-label: the simple and efficient semi-supervised learning method for deep neural
    networks"; as a baseline in Jiang et al. (2021), "Named entity recognition with small strongly labeled and large
    weakly labeled data".
"""

from collections.abc import Sequence

from pydantic import Field

from lacuner.data import Document, Lost, Splits
from lacuner.models.config import SequenceHeadConfig
from lacuner.models.tagger import Tagger
from lacuner.techniques.label_completion import complete
from lacuner.training.config import RecipeConfig
from lacuner.training.dataset import need_entities, training_set
from lacuner.training.run_folder import Run
from lacuner.training.stage import Selection, new_model, train_stage
from lacuner.training.steps import loss_step

NEEDS = ("weak", "gold")
GROUP = "baselines"
PAPER = "Lee, 2013"
UNLABELED = True


class Config(RecipeConfig):
    """Settings of `sst`."""

    head: SequenceHeadConfig = SequenceHeadConfig()
    rounds: int = Field(1, ge=1)
    """Number of times the texts are pseudo-labeled, each time by the model of the round before."""
    fresh: bool = False
    """Whether each round starts from fresh weights instead of the previous model."""


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Train on `splits.gold` and on `splits.texts`."""
    gold = splits.gold or ()
    need_entities(gold)
    texts = splits.texts

    def train_round(tagger: Tagger | None, pseudo: Sequence[Document], name: str) -> Tagger:
        # the labels are those of gold, but the encoder's vocabulary may come from all texts
        model = tagger.model if tagger else new_model(config, [*gold, *texts], run, name)
        lost = Lost()
        data = training_set(model, [*gold, *pseudo], lost)
        run.log(f"sst: training on {len(gold):,} gold and {len(pseudo):,} pseudo-labeled documents: {lost}")
        result = train_stage(data, lambda _: loss_step(data), config.train, run, Selection(splits.dev), name)
        return Tagger(result.model)

    stages = ["initial", *(f"train/{number}" for number in range(1, config.rounds + 1))]
    run.plan(dict.fromkeys(stages, config.train.epochs))
    tagger = train_round(None, [], "initial")
    for number in range(1, config.rounds + 1):
        pseudo = [complete(doc, predicted)[0] for doc, predicted in zip(texts, tagger.predict(texts), strict=True)]
        run.log(f"sst: {sum(len(doc.spans) for doc in pseudo):,} pseudo-labels in {len(pseudo):,} documents")
        tagger = train_round(None if config.fresh else tagger, pseudo, f"train/{number}")
    return tagger
