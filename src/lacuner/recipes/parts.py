"""What recipes are put together from: which model, which data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, NamedTuple, Protocol

import torch
from pydantic import Field

from lacuner.config import Config, OnlyWith
from lacuner.corpus.jsonl import as_line
from lacuner.corpus.words import words_of
from lacuner.errors import ConfigError, TrainingError
from lacuner.losses.crf import crf_loss
from lacuner.losses.cross_entropy import cross_entropy
from lacuner.models.build import MOST_WIDTHS, build_head
from lacuner.models.crf import Unknown
from lacuner.models.files import fingerprint, load_model
from lacuner.models.model import Model
from lacuner.models.sentences import cut_sentences
from lacuner.models.span import SpanHead
from lacuner.models.tagger import Tagger
from lacuner.models.targets import span_width
from lacuner.models.tiny import TinyConfig, TinyEncoder
from lacuner.training.data import TrainingSet, dev_scorer, training_set
from lacuner.training.loop import MakeStep, Step, StepLoss, fit
from lacuner.training.run import Run
from lacuner.training.settings import TrainConfig
from lacuner.types import CRFScores, Document, Features, Lost


@dataclass(frozen=True)
class Splits:
    """The data of a training. None: not given. Weak documents are incomplete, gold and dev complete."""

    weak: Sequence[Document] | None = None
    gold: Sequence[Document] | None = None
    dev: Sequence[Document] | None = None
    unlabeled: Sequence[Document] | None = None


_HF = OnlyWith("name", ("hf",))
_TAGS = OnlyWith("kind", ("token", "crf"))
_SPANS = OnlyWith("kind", ("span",))


class EncoderConfig(Config):
    """What turns words into vectors."""

    name: str = "tiny"
    """`tiny`, `lstm`, `hf:NAME_OR_PATH`, or `run:PATH` for the encoder of another run."""
    vectors: Annotated[Path | None, OnlyWith("name", ("lstm",))] = None
    """`lstm`: a text file of pretrained word vectors."""
    pooling: Annotated[Literal["first", "mean"], _HF] = "first"
    """`hf`: a word's vector is that of its first sub-word, or the mean of all."""
    frozen: Annotated[int, _HF] = Field(0, ge=0)
    """`hf`: how many of the lowest layers stay as they are."""
    checkpointing: Annotated[bool, _HF] = False
    """`hf`: save memory by computing everything twice."""


class HeadConfig(Config):
    """What turns vectors into labels."""

    kind: Literal["token", "crf", "span", "entity_type"] = "span"
    scheme: Annotated[Literal["BIO", "BIOES", "IO"], _TAGS] = "BIO"
    """`token`, `crf`: the tags."""
    angle: Annotated[bool, _TAGS] = False
    """`token`, `crf`: the angle-based output of two-step learning."""
    variant: Annotated[Literal["width", "product"], _SPANS] = "width"
    """`span`: how a span is scored."""
    width: Annotated[int | None, _SPANS] = Field(None, ge=1, le=MOST_WIDTHS)
    """`span`: the widest span in words; None: what the labelled spans need."""
    threshold: Annotated[Annotated[float, Field(gt=0, lt=1)] | Literal["argmax", "dev"], _SPANS] = "argmax"
    """`span`: how probable a label must be for a span to be found, be it less probable than none; `argmax`: more
    probable than none; `dev`: what is best on dev, if there is any."""
    dropout: float = Field(0.3, ge=0, lt=1)


def new_model(
    encoder: EncoderConfig, head: HeadConfig, docs: Sequence[Document], run: Run, name: str = "model"
) -> Model:
    """A model with fresh weights for the labels of these documents; the weights depend on run, seed and name alone."""
    labels = sorted({span.label for doc in docs for span in doc.spans})
    if not labels:
        raise TrainingError("there is no labelled span in the training data: nothing can be learned from it")
    torch.manual_seed(run.seed_for("weights", name))
    made = open_encoder(encoder, docs)
    settings: dict[str, Any] = {"kind": head.kind, "labels": labels, "dropout": head.dropout}
    if head.kind == "span":
        width = head.width or min(span_width(cut_sentences(docs, made, Lost()).annotations), MOST_WIDTHS)
        settings |= {"widths": width, "variant": head.variant}
    elif head.kind != "entity_type":
        settings |= {"scheme": head.scheme, "angle": head.angle}
    return Model(made, build_head(settings, made.width))


def open_encoder(config: EncoderConfig, docs: Sequence[Document]) -> Any:
    """The encoder that a config names. `lstm` takes its vocabulary from the documents."""
    kind, _, place = config.name.partition(":")
    if config.name == "tiny":
        return TinyEncoder(TinyConfig())
    if config.name == "lstm":
        from lacuner.models.lstm import lstm_from_words

        return lstm_from_words((_words(doc) for doc in docs), vectors=config.vectors)
    if kind == "run" and place:
        model = load_model(place)
        if not isinstance(model, Model):
            raise ConfigError(f"the run {place} has no encoder: it learned names by heart")
        return model.encoder
    if kind == "hf" and place:
        library, own = _pretrained(), ("pooling", "frozen", "checkpointing")
        return library.open_pretrained(place, library.PretrainedConfig(**config.model_dump(include=set(own))))
    raise ConfigError(f"there is no encoder {config.name!r}: there are tiny, lstm, hf:NAME_OR_PATH and run:PATH")


def encoder_fingerprint(name: str) -> str | None:
    """A hash of what an encoder is made of; None where the name says everything."""
    kind, _, place = name.partition(":")
    if kind == "run" and place:
        return fingerprint(place)
    return _pretrained().fingerprint(place) if kind == "hf" and place else None


def _pretrained() -> ModuleType:
    try:
        from lacuner.models import pretrained
    except ImportError as error:
        raise ConfigError("Hugging Face encoders need an extra: pip install 'lacuner[transformers]'") from error
    return pretrained


def _words(doc: Document) -> list[str]:
    return [doc.text[start:end] for start, end in words_of(doc)]


def resolved(config: TrainConfig, model: Model, features: Features) -> TrainConfig:
    """The settings with what suits encoder and data where nothing was said.

    Encoders that start from nothing want many steps: about 250 an epoch, with 250 to 500 words each (found on the dev
    data of four corpora). Of the pretrained ones those of MiniLM's size want more and faster steps than the usual ones
    (found on the dev data of one).
    """
    scratch = model.encoder.config()["kind"] != "pretrained"
    small = model.encoder.width < 512
    words = int(features.lengths.sum())
    rate = 2e-3 if scratch else 2e-4 if small else 3e-5
    budget = min(max(words // 250, 250), 500) if scratch else 256 if small else 1024
    return config.model_copy(
        update={
            "learning_rate": config.learning_rate or rate,
            "head_learning_rate": config.head_learning_rate or (2e-3 if scratch or small else 1e-3),
            "budget": config.budget or budget,
        }
    )


def believe(data: TrainingSet, unknown: Unknown = "marginal") -> Step:
    """The plain step: whatever is known is right. Cross entropy, or the likelihood of a CRF."""

    def step(indices: Any) -> StepLoss:
        batch, targets = data.batch(indices)
        scores = data.model(batch)
        known, positions = float((targets.known & scores.mask).sum()), float(scores.mask.sum())
        losses = crf_loss(scores, targets, unknown) if isinstance(scores, CRFScores) else cross_entropy(scores, targets)
        # a mean over words, for spans too: over all spans the gradients would be so small that Adam's epsilon shows
        return StepLoss(losses.sum(), float(batch.mask.sum()), known, positions)

    return step


def canonical(docs: Iterable[Document]) -> list[Document]:
    """Documents in an order of their own, so that the order of files and lines decides nothing."""
    return sorted(docs, key=lambda doc: (doc.text, doc.id, as_line(doc)))


class PlainConfig(Config):
    """The settings of a recipe that has none of its own."""

    encoder: EncoderConfig = EncoderConfig()
    head: HeadConfig = HeadConfig()
    train: TrainConfig = TrainConfig()


class HasPlainSettings(Protocol):
    """The settings that every recipe has, perhaps among others."""

    @property
    def encoder(self) -> EncoderConfig: ...
    @property
    def head(self) -> HeadConfig: ...
    @property
    def train(self) -> TrainConfig: ...


class Learned(NamedTuple):
    """A tagger, and what was measured in each epoch."""

    tagger: Tagger
    rows: list[dict[str, Any]]

    @property
    def f1(self) -> float:
        """That of the best epoch on dev; 0 without dev."""
        return max((row["dev"]["f1"] for row in self.rows if "dev" in row), default=0.0)


def learn_in_stage(
    data: TrainingSet,
    make_step: MakeStep,
    config: HasPlainSettings,
    run: Run,
    dev: Sequence[Document] | None,
    name: str = "train",
    start_counts: bool = False,
) -> Learned:
    """One training in one stage; a span head has its threshold afterwards."""
    model, threshold = data.model, config.head.threshold if isinstance(data.model.head, SpanHead) else None
    scored = dev_scorer(model, dev, choose_threshold=threshold == "dev")
    if isinstance(threshold, float):
        model.head.threshold = threshold
    with run.stage(name) as stage:
        settings = resolved(config.train, model, data.features)
        rows = fit(model, data.features, make_step, settings, stage, scored, start_counts)
    if threshold == "dev" and scored is not None:
        scored()  # that of the weights that were kept
        run.say(f"{name}: on dev a threshold of {model.head.threshold:.3f} is best")
    return Learned(Tagger(model), rows)


def learn(docs: Sequence[Document], dev: Sequence[Document] | None, config: HasPlainSettings, run: Run) -> Tagger:
    """One training, believing whatever the documents say is known."""
    lost = Lost()
    data = training_set(new_model(config.encoder, config.head, docs, run), docs, lost)
    run.say(f"learning from {len(docs):,} documents: {lost}")
    step = believe(data)
    return learn_in_stage(data, lambda _: step, config, run, dev).tagger
