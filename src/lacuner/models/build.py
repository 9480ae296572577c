"""Encoders and heads by their config: the one list of what there is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from torch import nn

from lacuner.errors import ConfigError, ModelFileError
from lacuner.models.crf import CRFHead
from lacuner.models.entity_type import EntityTypeHead
from lacuner.models.lstm import build_lstm
from lacuner.models.span import SpanHead
from lacuner.models.tiny import TinyConfig, TinyEncoder
from lacuner.models.token import TokenHead

ENCODERS = ("tiny", "lstm", "pretrained")
HEADS: dict[str, Callable[..., nn.Module]] = {
    "token": TokenHead,
    "crf": CRFHead,
    "entity_type": EntityTypeHead,
    "span": SpanHead,
}


def build_encoder(config: Mapping[str, Any], files: Mapping[str, bytes] | None = None) -> Any:
    """An encoder with fresh weights, as `Encoder.config` and `Encoder.files` described it."""
    kind, settings = _split(config, ENCODERS, "encoder")
    try:
        if kind == "tiny":
            return TinyEncoder(TinyConfig(**settings))
        if kind == "lstm":
            return build_lstm(settings)
    except (TypeError, ConfigError) as error:
        raise ModelFileError(f"the encoder's settings do not fit an encoder of kind {kind!r}: {error}") from error
    from lacuner.models.pretrained import build_pretrained  # transformers is slow to import, and an extra

    try:
        return build_pretrained(settings, files or {})
    except ConfigError as error:
        raise ModelFileError(error.problem) from error


def build_head(config: Mapping[str, Any], width: int) -> Any:
    """A head with fresh weights, as `Head.config` described it, on an encoder of this width."""
    kind, settings = _split(config, HEADS, "head")
    try:
        return HEADS[kind](width, **settings)
    except (TypeError, ConfigError) as error:  # a setting too many or a wrong value: the file is at fault
        raise ModelFileError(f"the head's settings do not fit a head of kind {kind!r}: {error}") from error


def _split(config: Mapping[str, Any], kinds: Collection[str], what: str) -> tuple[str, dict[str, Any]]:
    settings = dict(config)
    kind = settings.pop("kind", None)
    if kind not in kinds:
        raise ModelFileError(f"there is no {what} of kind {kind!r}, only {', '.join(kinds)}")
    return str(kind), settings
