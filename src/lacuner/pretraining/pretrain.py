"""Domain pre-training, from documents to a finished run folder: an encoder that has read the texts, without labels.

What it does: hides some of the words (sub-words, for Hugging Face encoders) and teaches the encoder to guess them from
    the others. Labels are never looked at. The encoder and its head are kept: `--encoder run:PATH` uses them.
Assumes: that the texts are like those in which names are to be found.
Departs from the authors: they do not say which share is hidden, and how; ours is BERT's. Encoders from nothing take
    many passes, where a pretrained one takes one. The epoch that guesses best in held-out text is kept.
Reference: Jiang et al. (2021), "Named entity recognition with small strongly labeled and large weakly labeled data".
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import Any

import torch
from pydantic import Field

from lacuner.config import Config
from lacuner.data import Document
from lacuner.errors import TrainingError
from lacuner.models.config import EncoderConfig
from lacuner.models.model import MaskedLanguageModel
from lacuner.models.storage import load_model, save
from lacuner.models.windows import cut_sentences
from lacuner.pretraining.masked_lm import new_masked_model
from lacuner.pretraining.masking import guess_step, hide, measure
from lacuner.pretraining.units import prepare_units
from lacuner.training.config import TrainConfig, resolved
from lacuner.training.identity import canonical, identity_of, in_role
from lacuner.training.loop import Step, fit
from lacuner.training.run_folder import Row, Run, quiet

SCRATCH_EPOCHS, PRETRAINED_EPOCHS = 30, 1


class PretrainTraining(TrainConfig):
    """How to train."""

    epochs: int = Field(0, ge=0)
    """Passes over the text; 0: 30 for an encoder that starts from nothing, one for any other."""


class PretrainConfig(Config):
    """Settings of `lacuner pretrain`."""

    encoder: EncoderConfig = EncoderConfig()
    train: PretrainTraining = PretrainTraining()
    rate: float = Field(0.15, gt=0, lt=1)
    """The share of the words (or sub-words) that is to be guessed."""
    whole_words: bool = False
    """Hide all sub-words of a word or none; where units are words already it changes nothing."""
    held_out: float = Field(0.05, gt=0, lt=1)
    """The share of the documents that is not learned from, but guessed in."""
    least: int = Field(2, ge=1)
    """`tiny`, `lstm`: a word that is seen less often is not guessed."""
    most: int = Field(50_000, ge=2)
    """`tiny`, `lstm`: so many words are guessed at most, the most frequent ones."""


@dataclass(frozen=True)
class Pretrained:
    """A finished pre-training."""

    model: MaskedLanguageModel
    run: Run
    held_out: Row
    """Top 1 and top 5 accuracy and perplexity in held-out text, of the epoch that was kept; of a finished run top 5."""


def pretrain(
    docs: Sequence[Document],
    out: str | PathLike[str],
    config: PretrainConfig | None = None,
    seed: int = 1,
    say: Callable[[str], None] = quiet,
) -> Pretrained:
    """Pre-train an encoder on texts, or go on with that; a finished run is loaded."""
    config = config if config is not None else PretrainConfig()
    bare = canonical(replace(doc, spans=(), rejected=(), unsure=(), complete=False) for doc in in_role(docs, False))
    run = Run(out, identity_of("pretrain", seed, config, {"text": bare}), say)
    with run.locked():
        if run.finished:
            say("this run is finished already")
            model: Any = load_model(run.model_folder)
            return Pretrained(model, run, {"top5": model.head.top5})
        model, best = _train(bare, config, run)
        save(model, run.model_folder)
        run.finish(best)
    return Pretrained(model, run, best)


def _train(docs: Sequence[Document], config: PretrainConfig, run: Run) -> tuple[MaskedLanguageModel, Row]:
    kept, held_out = _split(docs, config.held_out)
    torch.manual_seed(run.seed_for("weights", "pretrain"))
    model, about = new_masked_model(config.encoder, kept, config.least, config.most)
    units, test = (prepare_units(model, cut_sentences(part, model.encoder).words) for part in (kept, held_out))
    if not len(units.numbers) or not len(test.numbers):
        raise TrainingError("there are no words to learn from: pre-training needs text")
    run.say(
        f"pre-training on {len(kept):,} documents, {int(units.features.lengths.sum()):,} words, with {about}; "
        f"{len(held_out):,} documents are held out"
    )

    hidden = config.rate, config.whole_words

    def make_step(epoch: int) -> Step:
        return guess_step(units, model, hide(units, model, *hidden))

    settings = resolved(config.train, model, units.features)
    if not settings.epochs:
        scratch = not model.encoder.is_transformer
        settings = settings.model_copy(update={"epochs": SCRATCH_EPOCHS if scratch else PRETRAINED_EPOCHS})
    with run.stage("pretrain") as stage:
        rows = fit(model, units.features, make_step, settings, stage, partial(measure, test, model, *hidden))
    best: Row = min((row["dev"] for row in rows), key=lambda row: float(row["perplexity"]))
    model.head.top5 = float(best["top5"])
    return model, best


def _split(docs: Sequence[Document], share: float) -> tuple[list[Document], list[Document]]:
    """Documents to learn from, and those held out: the ones with the smallest hashes, at least one."""
    order = sorted(docs, key=lambda doc: hashlib.sha256(doc.text.encode("utf-8", "surrogatepass")).digest())
    order = [doc for doc in order if doc.text.strip()]
    if len(order) < 2:
        raise TrainingError("pre-training needs two documents at least: one to learn from, and one to guess in")
    count = max(round(share * len(order)), 1)
    chosen = {id(doc) for doc in order[:count]}
    return [doc for doc in docs if id(doc) not in chosen], order[:count]
