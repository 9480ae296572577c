"""Domain-adaptive pre-training: train an encoder on unlabeled text with masked language modelling.

What it does: masks some of the words (sub-words, for Hugging Face encoders) and trains the encoder to predict them.
    Labels are ignored. The encoder and its head are saved: `--encoder run:PATH` uses them.
Assumes: that the text is like the text in which entities are to be found.
Departs from the authors: they do not state how they mask; this follows BERT. Encoders trained from scratch take many
    epochs, a pre-trained one takes one. The epoch with the lowest perplexity on held-out text is kept.
Reference: Jiang et al. (2021), "Named entity recognition with small strongly labeled and large weakly labeled data".
"""

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
from lacuner.pretraining.masking import mask_units, masked_lm_step, measure_masked_lm, prepare_units
from lacuner.training.config import TrainConfig
from lacuner.training.dataset import assign_folds
from lacuner.training.identity import run_identity, set_complete, sort_documents
from lacuner.training.loop import fit
from lacuner.training.run_folder import Row, Run, quiet
from lacuner.training.steps import Step

FROM_SCRATCH_EPOCHS, PRETRAINED_EPOCHS = 30, 1


class PretrainTraining(TrainConfig):
    """Optimisation settings of pre-training."""

    epochs: int = Field(0, ge=0)
    """Number of passes over the text; by default (0) 30 from scratch, 1 for a Hugging Face encoder."""


class PretrainConfig(Config):
    """Settings of `lacuner pretrain`."""

    encoder: EncoderConfig = EncoderConfig()
    train: PretrainTraining = PretrainTraining()
    rate: float = Field(0.15, gt=0, lt=1)
    """Share of the words (or sub-words) to predict."""
    whole_words: bool = False
    """Whole-word masking: all sub-words of a word or none; no effect for word encoders."""
    held_out: float = Field(0.05, gt=0, lt=1)
    """Share of the documents held out for evaluation."""
    least: int = Field(2, ge=1)
    """Minimum frequency of a word in the vocabulary (`tiny`, `lstm`)."""
    most: int = Field(50_000, ge=2)
    """Maximum size of the vocabulary (`tiny`, `lstm`)."""


@dataclass(frozen=True)
class PretrainingResult:
    """A finished pre-training run."""

    model: MaskedLanguageModel
    run: Run
    held_out: Row
    """Top-1 and top-5 accuracy and perplexity of the best epoch on held-out text; only top-5 if the run was loaded."""


def pretrain(
    docs: Sequence[Document],
    out: str | PathLike[str],
    config: PretrainConfig | None = None,
    seed: int = 1,
    log: Callable[[str], None] = quiet,
) -> PretrainingResult:
    """Pre-train an encoder on text; an interrupted run resumes, a finished one is loaded.

    Args:
        docs: documents; their labels are ignored.
        out: run folder.
        config: settings.
        seed: random seed.
        log: receives one line per epoch.
    """
    config = config if config is not None else PretrainConfig()
    bare = (replace(doc, spans=(), rejected=(), unsure=(), complete=False) for doc in set_complete(docs, False))
    texts = sort_documents(bare)
    run = Run(out, run_identity("pretrain", seed, config, {"text": texts}), log)
    with run.locked():
        if run.finished:
            log("this run is already finished")
            model: Any = load_model(run.model_folder)
            return PretrainingResult(model, run, {"top5": model.head.top5})
        model, best = _train(texts, config, run)
        save(model, run.model_folder)
        run.finish(best)
    return PretrainingResult(model, run, best)


def _train(docs: Sequence[Document], config: PretrainConfig, run: Run) -> tuple[MaskedLanguageModel, Row]:
    training, held_out = _hold_out(docs, config.held_out)
    torch.manual_seed(run.seed_for("weights", "pretrain"))
    model, head = new_masked_model(config.encoder, training, config.least, config.most)
    units, test = (prepare_units(model, cut_sentences(part, model.encoder).words) for part in (training, held_out))
    if not len(units.ids) or not len(test.ids):
        raise TrainingError("there are no words to train on: pre-training needs text")
    run.log(
        f"pre-training on {len(training):,} documents, {int(units.features.lengths.sum()):,} words, with {head}; "
        f"{len(held_out):,} documents are held out"
    )
    masking = config.rate, config.whole_words

    def make_step(epoch: int) -> Step:
        return masked_lm_step(units, model, mask_units(units, model, *masking))

    settings = config.train.resolve(model, units.features)
    if not settings.epochs:
        settings = settings.with_epochs(PRETRAINED_EPOCHS if model.encoder.is_transformer else FROM_SCRATCH_EPOCHS)
    dev_score = partial(measure_masked_lm, test, model, *masking)
    rows = fit(model, units.features, make_step, settings, run.stage("pretrain"), dev_score)
    best: Row = min((row["dev"] for row in rows), key=lambda row: float(row["perplexity"]))
    model.head.top5 = float(best["top5"])
    return model, best


def _hold_out(docs: Sequence[Document], share: float) -> tuple[list[Document], list[Document]]:
    """Documents to train on, and every n-th one (by text) held out; at least one of each."""
    with_text = [doc for doc in docs if doc.text.strip()]
    distinct = len({doc.text for doc in with_text})
    if distinct < 2:
        raise TrainingError("pre-training needs at least two documents with text: one to train on, one to hold out")
    fold_of = assign_folds(with_text, min(max(round(1 / share), 2), distinct))
    held_out = [doc for doc, fold in zip(with_text, fold_of, strict=True) if fold == 0]
    chosen = {id(doc) for doc in held_out}
    return [doc for doc in docs if id(doc) not in chosen], held_out
