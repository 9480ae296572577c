"""Virtual adversarial training: predictions should not change when word vectors are perturbed.

What it does: trains on gold. On all texts, the predictions should stay the same under the worst small change of the
    word vectors. A power iteration finds this change: the direction in which the predictions for a sentence change
    most. The loss is the KL divergence between the predictions without and with the change.
Assumes: that texts whose vectors are close have the same labels, and that gold is right and complete.
Needs: weak, gold. Unlabeled text (`--unlabeled`) may take the place of weak documents, or come beside them; weak labels
    are ignored.
Costs: about four training runs on all texts.
Departs from the authors: the perturbation is relative to the length of the word vectors, which are not normalised; the
    weight of the loss rises over the first epochs; token and span classifiers only, as a CRF has no predictions for
    single words; gold is repeated until it has a quarter of the words.
Reference: Miyato et al. (2018), "Virtual adversarial training: a regularization method for supervised and
    semi-supervised learning"; Miyato et al. (2017), "Adversarial training methods for semi-supervised text
    classification"; as a baseline in Jiang et al. (2021), "Named entity recognition with small strongly labeled and
    large weakly labeled data".
"""

from typing import Any

import numpy as np
from pydantic import Field
from torch import Tensor

from lacuner.data import Lost, Splits
from lacuner.models.tagger import Tagger
from lacuner.models.types import Targets
from lacuner.techniques.semi_supervised import ConsistencyConfig, consistency_steps, semi_supervised_set
from lacuner.techniques.virtual_adversarial import input_layer, virtual_adversarial_loss
from lacuner.training.data_parallel import share_of, sum_loss
from lacuner.training.dataset import need_entities
from lacuner.training.run_folder import Run
from lacuner.training.stage import Selection, new_model, train_stage

NEEDS = ("weak", "gold")
GROUP = "baselines"
PAPER = "Miyato et al., 2018"
UNLABELED = True


class Config(ConsistencyConfig):
    """Settings of `vat`."""

    epsilon: float = Field(0.1, gt=0)
    """Size of the perturbation, relative to the word vectors."""
    xi: float = Field(0.01, gt=0)
    """Step size of the power iteration, relative to the word vectors."""
    iterations: int = Field(1, ge=1)
    """Steps of the power iteration."""


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Train on `splits.gold` and `splits.texts`."""
    gold, texts, lost = splits.gold or (), splits.texts, Lost()
    need_entities(gold)
    model = new_model(config, [*gold, *texts], run)
    input_layer(model.encoder)  # an error now, not after the corpus is prepared
    semi = semi_supervised_set(model, gold, texts, config.gold_share, lost)
    run.log(f"vat: training on {len(gold):,} gold documents and {len(texts):,} texts: {lost}")
    run.plan({"train": config.train.epochs})
    selection = Selection(splits.dev, config.head.threshold)

    def loss(scores: Any, targets: Targets, indices: np.ndarray) -> Tensor:
        share = share_of(indices)  # of this process, if several train together
        batch, share_targets = semi.data.batch(share.indices)
        known = share_targets.known
        known[share.counts :] = False
        return sum_loss(virtual_adversarial_loss(model, batch, known, config.epsilon, config.xi, config.iterations))

    make_step = consistency_steps(semi, loss, config)
    return Tagger(train_stage(semi.data, make_step, config.train, run, selection).model)
