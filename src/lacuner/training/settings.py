"""The settings of the loop. What is None depends on the encoder: see `resolved`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from lacuner.config import Config


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
