"""Learn from gold, label the other texts with what was learned, and learn from both.

What it does: trains a model on gold. It says what is in the texts of the weak documents, whose own labels nobody looks
    at (what is unsure stays unknown); then it learns from gold and from these pseudo labels together.
Assumes: that what the first model gets right outweighs what it gets wrong.
Needs: weak, gold.
Costs: a training on gold and one on everything, for each round.
Departs from the authors: it is a baseline; the texts are those of the weak documents, with labels or without.
Reference: Lee (2013), "Pseudo-label: the simple and efficient semi-supervised learning method for deep neural
    networks"; as a baseline in Jiang et al. (2021), "Named entity recognition with small strongly labeled and large
    weakly labeled data".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pydantic import Field

from lacuner.config import Config as BaseConfig
from lacuner.data import Document, Lost, Splits
from lacuner.models.config import EncoderConfig, SequenceHeadConfig
from lacuner.models.tagger import Tagger
from lacuner.techniques.label_completion import complete
from lacuner.techniques.mixing import mix, need_entities
from lacuner.training.config import TrainConfig
from lacuner.training.run_folder import Run
from lacuner.training.stage import learn_in_stage, new_model
from lacuner.training.steps import believe

NEEDS = ("weak", "gold")


class Config(BaseConfig):
    """Settings of `sst`."""

    encoder: EncoderConfig = EncoderConfig()
    head: SequenceHeadConfig = SequenceHeadConfig()
    train: TrainConfig = TrainConfig()
    rounds: int = Field(1, ge=1)
    """How often the texts are labelled, each time by the model that came out before."""
    fresh: bool = False
    """Begin with fresh weights each time; false: the model goes on."""


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Learn from `splits.gold` and the texts of `splits.weak`."""
    gold = splits.gold or ()
    need_entities(gold)
    # whatever they said of themselves; but what is unsure is no negative, for anybody
    texts = [replace(doc, spans=(), rejected=(), complete=False) for doc in splits.weak or ()]

    def learn(tagger: Tagger | None, pseudo: Sequence[Document], name: str) -> Tagger:
        # the labels are gold's, but an encoder's vocabulary may come from all texts
        model = tagger.model if tagger else new_model(config.encoder, config.head, [*gold, *texts], run, name)
        lost = Lost()
        data = mix(model, gold, pseudo, lost).data
        run.say(f"sst: learning from {len(gold):,} gold documents and {len(pseudo):,} others: {lost}")
        step = believe(data)
        return learn_in_stage(data, lambda _: step, config, run, splits.dev, name).tagger

    tagger = learn(None, [], "initial")
    for number in range(1, config.rounds + 1):
        pseudo = [complete(doc, found)[0] for doc, found in zip(texts, tagger.predict(texts), strict=True)]
        run.say(f"sst: {sum(len(doc.spans) for doc in pseudo):,} pseudo labels in {len(pseudo):,} documents")
        tagger = learn(None if config.fresh else tagger, pseudo, f"train/{number}")
    return tagger
