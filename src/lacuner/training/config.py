"""The settings of the loop. What is None depends on the encoder: see `resolved`."""

from __future__ import annotations

from typing import Literal, Protocol

from pydantic import Field

from lacuner.config import Config
from lacuner.models.config import EncoderConfig, HeadConfig
from lacuner.models.model import AnyModel
from lacuner.models.types import Features


class TrainConfig(Config):
    """How to train."""

    epochs: int = Field(15, ge=1)
    """Passes over the data."""
    learning_rate: float | None = Field(None, gt=0)
    """Of the encoder; None: what suits it."""
    head_learning_rate: float | None = Field(None, gt=0)
    """Of the head; None: what suits the encoder."""
    weight_decay: float = Field(0.01, ge=0)
    """Of matrices; biases, norms and embeddings have none."""
    warmup: float = Field(0.1, ge=0, le=1)
    """The share of all steps in which the learning rate rises; then it falls to zero in a straight line."""
    clip: float = Field(1.0, gt=0)
    """The largest norm that a gradient may have."""
    budget: int | None = Field(None, ge=1)
    """Words in a batch, padding included (sub-words for pretrained encoders); None: what suits the encoder."""
    patience: int | None = Field(None, ge=1)
    """Stop after so many epochs without a better dev score; None: never."""
    precision: Literal["fp32", "bf16"] = "fp32"
    """bf16 is for machines that compute with it; on most CPUs it is far slower."""
    device: Literal["auto", "cpu"] = "auto"
    """`auto` takes a GPU if there is one."""
    checkpoint_seconds: float = Field(120.0, ge=0)
    """Save the state when the last save is older than this; a run that is killed goes on from there."""


def resolved(config: TrainConfig, model: AnyModel, features: Features) -> TrainConfig:
    """The settings with what suits encoder and data where nothing was said.

    Encoders that start from nothing want many steps: about 250 an epoch, with 250 to 500 words each (found on the dev
    data of four corpora). Of the pretrained ones those of MiniLM's size want more and faster steps than the usual ones
    (found on the dev data of one).
    """
    scratch = not model.encoder.is_transformer
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


def slower(settings: TrainConfig, factor: float, epochs: int) -> TrainConfig:
    """Resolved settings with lower learning rates, for another number of epochs."""
    assert settings.learning_rate is not None and settings.head_learning_rate is not None
    rates = {
        "learning_rate": settings.learning_rate * factor,
        "head_learning_rate": settings.head_learning_rate * factor,
    }
    return settings.model_copy(update={**rates, "epochs": epochs})
