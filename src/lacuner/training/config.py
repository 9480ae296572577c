"""Settings of the training loop, and those that every recipe has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from lacuner.config import Config, merge_tables
from lacuner.models.config import EncoderConfig, HeadConfig
from lacuner.models.model import AnyModel
from lacuner.models.types import Features


class TrainConfig(Config):
    """Optimisation: epochs, learning rates, batch size, early stopping."""

    LATER: ClassVar[frozenset[str]] = frozenset({"patience_after"})

    epochs: int = Field(15, ge=1)
    """Number of passes over the training data."""
    learning_rate: float | None = Field(None, gt=0)
    """Learning rate of the encoder; by default 2e-3 from scratch, 2e-4 or 3e-5 for a small or large transformer."""
    head_learning_rate: float | None = Field(None, gt=0)
    """Learning rate of the head; by default 2e-3, or 1e-3 on a large transformer."""
    weight_decay: float = Field(0.01, ge=0)
    """Weight decay of matrices; biases, norms and embeddings have none."""
    warmup: float = Field(0.1, ge=0, le=1)
    """Fraction of the steps in which the learning rate rises linearly; afterwards it falls linearly to zero."""
    clip: float = Field(1.0, gt=0)
    """Maximum gradient norm."""
    budget: int | None = Field(None, ge=1)
    """Words per batch (sub-words for transformers), padding included; by default chosen by encoder and corpus size."""
    batch_size: int | None = Field(None, ge=1)
    """Sentences per batch, instead of a number of words."""
    dev_every: int = Field(1, ge=1)
    """Number of epochs between two evaluations on dev."""
    patience: int | None = Field(None, ge=1)
    """Early stopping: epochs without a better dev score before training stops; by default it never stops early."""
    patience_after: int = Field(0, ge=0)
    """Early stopping: number of epochs at the beginning that `patience` does not count."""
    precision: Literal["fp32", "bf16"] = "fp32"
    """Floating-point precision; bf16 needs hardware support and is far slower on most CPUs."""
    device: Literal["auto", "cpu"] = "auto"
    """Device; `auto` uses a GPU if there is one."""
    checkpoint_seconds: float = Field(120.0, ge=0)
    """Seconds between two checkpoints; a killed run resumes from the last one."""

    def resolve(self, model: AnyModel, features: Features) -> TrainConfig:
        """Fill in the defaults that depend on encoder and corpus.

        From scratch, about 250 steps per epoch with 250 to 500 words each worked best on the dev data of four corpora.
        Small transformers (MiniLM) do better with more and larger steps than usual (dev data of one corpus).
        """
        transformer = model.encoder.is_transformer
        small = model.encoder.width < 512
        words = int(features.lengths.sum())
        rate = 2e-3 if not transformer else 2e-4 if small else 3e-5
        budget = min(max(words // 250, 250), 500) if not transformer else 256 if small else 1024
        return self.model_copy(
            update={
                "learning_rate": self.learning_rate or rate,
                "head_learning_rate": self.head_learning_rate or (1e-3 if transformer and not small else 2e-3),
                "budget": self.budget or budget,
            }
        )

    def scale_learning_rates(self, factor: float) -> TrainConfig:
        """Resolved settings with both learning rates multiplied by a factor."""
        assert self.learning_rate is not None and self.head_learning_rate is not None
        rates = {"learning_rate": self.learning_rate * factor, "head_learning_rate": self.head_learning_rate * factor}
        return self.model_copy(update=rates)

    def with_epochs(self, epochs: int) -> TrainConfig:
        """The same settings for another number of epochs."""
        return self.model_copy(update={"epochs": epochs})


class RecipeConfig(Config):
    """The settings that all recipes share."""

    encoder: EncoderConfig = EncoderConfig()
    head: HeadConfig = HeadConfig()
    train: TrainConfig = TrainConfig()


class PresetConfig(RecipeConfig):
    """Settings of recipes with `preset=paper`, which changes the settings in `PAPER_SETTINGS`."""

    LATER: ClassVar[frozenset[str]] = frozenset({"preset"})
    PAPER_SETTINGS: ClassVar[Mapping[str, Any]] = {}

    preset: Literal["small", "paper"] = "small"
    """Settings for small encoders, or those of the paper, for large transformers."""

    @model_validator(mode="before")
    @classmethod
    def _fill_in_preset(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("preset") != "paper":
            return values
        return fill_in_preset(cls.PAPER_SETTINGS, values)

    def matching_defaults(self) -> RecipeConfig:
        return type(self)(preset=self.preset)


def fill_in_preset(preset: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a recipe, with those of a preset where none is set."""
    tables = {name: as_table(values[name]) for name in values if isinstance(preset.get(name), dict)}
    return merge_tables(preset, {**values, **tables})


def as_table(value: Any) -> Any:
    """A nested config as a dict of the settings that were set; any other value unchanged."""
    if not isinstance(value, Config):
        return value
    kind = {"kind": value.kind} if isinstance(value, HeadConfig) else {}
    return value.model_dump(exclude_unset=True) | kind
