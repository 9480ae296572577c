"""Pre-training: train an encoder on unlabeled text with masked language modelling.

What it does: masks some of the words (sub-words, for Hugging Face encoders) and trains the encoder to predict them.
    Labels are ignored. The encoder and its head are saved: `--encoder run:PATH` uses them. The text is prepared on disk
    and read in shards, so it may be larger than memory.
Assumes: that the text is like the text in which entities are to be found.
Departs from the authors: they do not state how they mask; this follows BERT. Encoders trained from scratch take many
    passes over a small text, a pre-trained one takes one. The weights with the lowest held-out perplexity are kept.
Reference: Jiang et al. (2021), "Named entity recognition with small strongly labeled and large weakly labeled data".
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field

from lacuner.config import Config
from lacuner.corpus.jsonl import as_line
from lacuner.data import Document, remove_labels
from lacuner.errors import ConfigError
from lacuner.models.config import EncoderConfig
from lacuner.models.encoders.auto import choose_encoder
from lacuner.models.encoders.tiny import TinyEncoder
from lacuner.models.model import MaskedLanguageModel
from lacuner.models.storage import load_model, save
from lacuner.models.types import Encoder, Features
from lacuner.pretraining.masked_lm import new_masked_model
from lacuner.pretraining.masking import Masking, Units, mask_units, masked_lm_step, measure_masked_lm, prepare_units
from lacuner.pretraining.text import PreparedText, TextSource, plan_shards, prepare_text
from lacuner.training.config import TrainConfig
from lacuner.training.distributed import first_then_others
from lacuner.training.identity import run_identity, set_complete, sort_documents
from lacuner.training.loop import DevMetrics, fit
from lacuner.training.run_folder import Row, Run, quiet
from lacuner.training.steps import Step

FROM_SCRATCH_EPOCHS, PRETRAINED_EPOCHS = 30, 1
LARGE_TEXT = 5_000_000
"""Number of words from which on a text is large: its defaults are one pass, large batches and little dropout."""
LARGE_BUDGET, LARGE_RATE, LARGE_DROPOUT = 4096, 3e-3, 0.2
MEASUREMENTS = 20
"""How often held-out text is scored, at most."""


class PretrainTraining(TrainConfig):
    """Optimisation settings of pre-training."""

    epochs: int = Field(0, ge=0)
    """Number of passes over the text; by default (0) 30 from scratch, 1 for a pre-trained encoder or a large text."""


class PretrainConfig(Config):
    """Settings of `lacuner pretrain`."""

    encoder: EncoderConfig = EncoderConfig()
    train: PretrainTraining = PretrainTraining()
    words: int = Field(0, ge=0)
    """Number of words to train on, instead of a number of passes; 0: `train.epochs` decides."""
    mix: tuple[float, ...] = ()
    """Shares of the corpora among the words trained on, in their order; by default all text is read equally often."""
    rate: float = Field(0.15, gt=0, lt=1)
    """Share of the words (or sub-words) to predict."""
    whole_words: bool = False
    """Whole-word masking: all sub-words of a word or none; no effect for word encoders."""
    names: float | None = Field(None, gt=0, lt=1)
    """Share of the runs of capitalised words to predict, each as a whole. None: like all other words."""
    span: float = Field(1.0, ge=1, le=10)
    """Mean number of neighbouring words that are masked together."""
    compounds: float = Field(0.0, ge=0, le=1)
    """Share of the untokenised documents in which words joined by a hyphen or another mark stay one word."""
    dropout: float | None = Field(None, ge=0, le=1)
    """Factor on the dropout rates of `tiny`; by default 1, or 0.2 on a text of more than five million words."""
    held_out: float = Field(0.05, gt=0, lt=1)
    """Share of the documents held out for evaluation, at most 20,000 words of a corpus."""
    least: int = Field(2, ge=1)
    """Minimum frequency of a word in the vocabulary (`tiny`, `lstm`)."""
    most: int = Field(50_000, ge=2)
    """Maximum size of the vocabulary (`tiny`, `lstm`)."""
    shard: int = Field(1_000_000, ge=1000)
    """Number of words in memory at a time."""


@dataclass(frozen=True)
class PretrainingResult:
    """A finished pre-training run."""

    model: MaskedLanguageModel
    run: Run
    held_out: Row
    """Top-1 and top-5 accuracy and perplexity of the kept weights on held-out text, for all corpora and for each; only
    top-5 if the run was loaded."""


def pretrain(
    docs: Sequence[Document] | Sequence[TextSource],
    out: str | PathLike[str],
    config: PretrainConfig | None = None,
    seed: int = 1,
    log: Callable[[str], None] = quiet,
) -> PretrainingResult:
    """Pre-train an encoder on text; an interrupted run resumes, a finished one is loaded.

    Args:
        docs: documents, whose labels are ignored; or corpora that are read as a stream.
        out: run folder.
        config: settings.
        seed: random seed.
        log: receives one line per shard.
    """
    config = config if config is not None else PretrainConfig()
    sources = [item for item in docs if isinstance(item, TextSource)] or [_source_of(docs)]
    if config.mix and (len(config.mix) != len(sources) or min(config.mix) <= 0):
        raise ConfigError(f"mix has {len(config.mix)} shares for {len(sources)} corpora: give one above 0 for each")
    identity = run_identity("pretrain", seed, config, {})
    identity["data"] = {"text": [source.sha256 for source in sources]}
    run = Run(out, identity, log)
    with run.locked():
        if run.is_loadable:
            log("this run is already finished")
            model: Any = load_model(Path(out) / "model")
            return PretrainingResult(model, run, {"top5": model.head.top5})
        # one copy of the text for all processes: it may be large
        prepare = partial(prepare_text, sources, Path(out) / "text", config.held_out, config.compounds)
        model, best = _train(first_then_others(prepare), [source.name for source in sources], config, run)
        save(model, run.model_folder)
        run.finish(best)
    return PretrainingResult(model, run, best)


def _source_of(docs: Sequence[Any]) -> TextSource:
    """Documents in memory as a source; their order decides nothing."""
    texts = sort_documents(remove_labels(set_complete(docs, False)))
    digest = hashlib.sha256("\n".join(map(as_line, texts)).encode()).hexdigest()
    return TextSource("documents", lambda: texts, digest)


def _train(
    text: PreparedText, names: Sequence[str], config: PretrainConfig, run: Run
) -> tuple[MaskedLanguageModel, Row]:
    torch.manual_seed(run.seed_for("weights", "pretrain"))
    model, head = new_masked_model(_choose_encoder(config.encoder, text, run), text, config.least, config.most)
    size = int(np.diff(text.offsets)[~text.held_out].sum())
    large = size > LARGE_TEXT
    epochs = config.train.epochs or (PRETRAINED_EPOCHS if model.encoder.is_pretrained or large else FROM_SCRATCH_EPOCHS)
    words = config.words or size * epochs
    shards = plan_shards(text, words, config.mix, config.shard, run.seed_for)
    run.log(
        f"pre-training on {words:,} words in {shards.count} shards, from {size:,} words of text, with {head}; "
        f"{int(text.held_out.sum()):,} passages are held out"
    )
    masking = Masking(config.rate, config.whole_words, config.names, config.span)

    @lru_cache(maxsize=1)
    def units_of(shard: int) -> Units:
        return prepare_units(model, fit_to_limit(text.passages(shards[shard]), model.encoder))

    def make_step(shard: int) -> Step:
        units = units_of(shard)
        return masked_lm_step(units, model, mask_units(units, model, masking))

    def features_of(shard: int) -> Features:
        return units_of(shard).features

    train = config.train.resolve(model, features_of(0)).with_epochs(shards.count)
    train = train.model_copy(update={"dev_every": max(shards.count // MEASUREMENTS, config.train.dev_every)})
    if large:
        defaults = {"budget": LARGE_BUDGET, "learning_rate": LARGE_RATE, "head_learning_rate": LARGE_RATE}
        train = train.model_copy(update={k: getattr(config.train, k) or value for k, value in defaults.items()})
    measure = _HeldOut(text, names, model, config.rate, config.whole_words)
    dropout = config.dropout if config.dropout is not None else LARGE_DROPOUT if large else 1.0
    if isinstance(model.encoder, TinyEncoder):
        model.encoder.scale_dropout(dropout)
    rows = fit(model, features_of, make_step, train, run.stage("pretrain"), measure)
    model.encoder.is_pretrained = True
    best: Row = min((row["dev"] for row in rows if "dev" in row), key=lambda row: float(row["perplexity"]))
    model.head.top5 = float(best["top5"])
    return model, best


def _choose_encoder(config: EncoderConfig, text: PreparedText, run: Run) -> EncoderConfig:
    """The encoder to start from: for `auto`, the shipped one for the language of the text."""
    if config.name != "auto":
        return config
    sample = text.passages(np.arange(min(len(text.source), 1000)))
    choice = choose_encoder([Document("sample", " ".join(word for words in sample for word in words))])
    run.log(choice.reason)
    return config.model_copy(update={"name": choice.name})


def fit_to_limit(sentences: list[list[str]], encoder: Encoder) -> list[list[str]]:
    """Halve sentences until each fits the encoder's limit, if it has one."""
    if encoder.limit is None:
        return sentences
    fitting: list[list[str]] = []
    pending = sentences[::-1]
    while pending:
        sentence = pending.pop()
        if len(sentence) > 1 and int(encoder.count(sentence).sum()) > encoder.limit:
            half = len(sentence) // 2
            pending += [sentence[half:], sentence[:half]]
        else:
            fitting.append(sentence)
    return fitting


class _HeldOut:
    """Scores a model on the held-out passages of all sources, and of each if there are several."""

    def __init__(
        self, text: PreparedText, names: Sequence[str], model: MaskedLanguageModel, rate: float, whole_words: bool
    ) -> None:
        self.model, self.masking = model, (rate, whole_words)
        passages = {name: np.flatnonzero(text.held_out & (text.source == i)) for i, name in enumerate(names)}
        self.units = {
            name: prepare_units(model, fit_to_limit(text.passages(numbers), model.encoder))
            for name, numbers in passages.items()
        }

    def __call__(self) -> DevMetrics:
        rows = {name: measure_masked_lm(units, self.model, *self.masking) for name, units in self.units.items()}
        weights = np.array([len(units.ids) for units in self.units.values()], dtype=float)
        weights /= weights.sum()
        row = {
            metric: round(float(weights @ [source[metric] for source in rows.values()]), 6)
            for metric in ("top1", "top5")
        }
        logs = np.log([source["perplexity"] for source in rows.values()])
        row["perplexity"] = round(float(np.exp(weights @ logs)), 4)
        criterion = 1 / row["perplexity"]
        if len(rows) > 1:
            row |= {f"{metric} {name}": value for name, source in rows.items() for metric, value in source.items()}
        return DevMetrics(criterion, row)
