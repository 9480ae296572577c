"""BOND: early stopping on weak labels, then teacher-student self-training.

What it does: trains on weak labels treated as complete and stops early. Then a copy of the model, the teacher, predicts
    soft pseudo-labels; the student trains on the confident ones and replaces the teacher after each period.
Assumes: that a model stopped early has learned the names but has not yet memorised the missing labels.
Needs: weak.
Costs: about one and a half training runs.
Departs from the authors: class frequencies are counted in the corpus, not in a batch; the first stage
    ends at the best dev epoch or, without dev, after a third of the epochs; periods are epochs.
Reference: Liang et al. (2020), "BOND: BERT-assisted open-domain named entity recognition with distant supervision".
"""

from dataclasses import replace
from math import ceil
from typing import Literal

from pydantic import Field
from torch import Tensor
from torch.nn import functional

from lacuner.data import Lost, Splits
from lacuner.losses.cross_entropy import cross_entropy
from lacuner.models.config import TokenHeadConfig
from lacuner.models.inference import probabilities, score_corpus
from lacuner.models.tagger import Tagger
from lacuner.techniques.label_masking import MaskableConfig, masking_steps
from lacuner.techniques.self_training import sharpen
from lacuner.training.dataset import TrainingSet, weak_training_set
from lacuner.training.run_folder import Run
from lacuner.training.stage import Selection, cached_tensors, new_model, train_stage
from lacuner.training.steps import MakeStep, Step, loss_step

NEEDS = ("weak",)
GROUP = "other methods"
PAPER = "Liang et al., 2020"


class Config(MaskableConfig):
    """Settings of `bond`; `train` and `masking` apply to the first stage."""

    head: TokenHeadConfig = TokenHeadConfig()
    early: int | None = Field(None, ge=1)
    """Epochs of the first stage; by default the best dev epoch or, without dev, a third of `train.epochs`."""
    student_epochs: int | None = Field(None, ge=1)
    """Epochs of self-training; by default half of `train.epochs`."""
    student_rate: float = Field(0.3, gt=0)
    """Learning rates of the student, relative to those of the first stage."""
    period: int = Field(1, ge=1)
    """Epochs after which the student becomes the teacher."""
    labels: Literal["soft", "hard"] = "soft"
    """Pseudo-labels: sharpened probabilities, or the most probable tag."""
    sure: float = Field(0.9, ge=0, le=1)
    """Minimum probability of the teacher's tag for a token to be used."""


def train(splits: Splits, config: Config, run: Run) -> Tagger:
    """Train on `splits.weak`, then on a teacher's pseudo-labels."""
    docs, lost, epochs = splits.weak or (), Lost(), config.train.epochs
    model = new_model(config, docs, run)
    data = weak_training_set(model, docs, lost).as_complete
    run.log(f"bond: training on {len(docs):,} documents: {lost}")
    settings = config.train.resolve(model, data.features)
    early = settings.with_epochs(config.early or (epochs if splits.dev else ceil(epochs / 3)))
    late = settings.scale_learning_rates(config.student_rate).with_epochs(config.student_epochs or ceil(epochs / 2))
    run.plan({"early": early.epochs, "student": late.epochs})

    # stage 1: weak labels, stopped early
    make_step = masking_steps(data, config.masking, early, run, "early")
    train_stage(data, make_step, early, run, Selection(splits.dev), "early")

    # stage 2: self-training
    make_step = pseudo_label_steps(data, config, run)
    train_stage(data, make_step, late, run, Selection(splits.dev, keep="best or start"), "student")
    return Tagger(model)


def pseudo_label_steps(data: TrainingSet, config: Config, run: Run) -> MakeStep:
    """Steps that train on the confident predictions of the teacher, which are renewed every period."""
    known = data.targets.known

    def make_step(epoch: int) -> Step:
        start = epoch // config.period * config.period
        labels = cached_tensors(
            run,
            f"student/{start}",
            lambda: confident_labels(score_corpus(data.model, data.features, probabilities), known, config),
        )
        targets = replace(data.targets, known=labels["sure"], probs=labels["probs"])
        return loss_step(replace(data, targets=targets), cross_entropy, per="known")

    return make_step


def confident_labels(probs: Tensor, known: Tensor, config: Config) -> dict[str, Tensor]:
    """Pseudo-labels `probs` `[words, tags]` and the mask `sure` `[words]` of those to train on (all if none is)."""
    sharpened = sharpen(probs, known) if config.labels == "soft" else probs
    sure = (sharpened.amax(dim=-1) > config.sure) & known
    if config.labels == "hard":
        sharpened = functional.one_hot(probs.argmax(dim=-1), probs.shape[-1]).float()
    return {"probs": sharpened, "sure": sure if sure.any() else known}
