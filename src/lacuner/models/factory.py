"""Encoders and heads by their config: the one list of what there is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode

from lacuner.errors import ConfigError, ModelFileError
from lacuner.models.config import MOST_WIDTHS
from lacuner.models.encoders.lstm import build_lstm
from lacuner.models.encoders.tiny import TinyConfig, TinyEncoder
from lacuner.models.heads.crf import CRFHead
from lacuner.models.heads.entity_type import EntityTypeHead
from lacuner.models.heads.masked import MaskedPieceHead, MaskedWordHead
from lacuner.models.heads.span import SpanHead
from lacuner.models.heads.token import TokenHead
from lacuner.models.model import Model

ENCODERS = ("tiny", "lstm", "pretrained")
HEADS: dict[str, Callable[..., nn.Module]] = {
    "token": TokenHead,
    "crf": CRFHead,
    "entity_type": EntityTypeHead,
    "span": SpanHead,
    "masked_words": MaskedWordHead,
    "masked_pieces": MaskedPieceHead,
}
_MOST_COMPUTED = 2**28
"""Bytes that a model may have beside its weights (tables that are computed, not learned)."""


def build_model(config: Mapping[str, Any], files: Mapping[str, bytes], weights: Mapping[str, Tensor]) -> Model:
    """The model of a config with these weights.

    First it is built without numbers: settings that ask for anything but these weights allocate nothing.
    """
    with torch.device("meta"), _NoNumbers(), _no_more_than(weights):
        model = _build(config, files)
    asked = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    there = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    for name in sorted({*asked, *there}):
        if asked.get(name) != there.get(name):
            sizes = [shape if shape is None else list(shape) for shape in (asked.get(name), there.get(name))]
            raise ModelFileError(f"the settings ask for {name} of size {sizes[0]}, the weights have {sizes[1]}")
    computed = sum(tensor.nbytes for name, tensor in model.named_buffers() if name not in there)
    if computed > _MOST_COMPUTED:
        raise ModelFileError(f"the settings ask for {computed:,} bytes beside the weights")
    model = _build(config, files)
    model.load_state_dict(dict(weights))
    return model


def _build(config: Mapping[str, Any], files: Mapping[str, bytes]) -> Model:
    encoder = build_encoder(config["encoder"], files)
    return Model(encoder, build_head(config["head"], encoder.width))


class _NoNumbers(TorchFunctionMode):
    """Normal numbers are not drawn where there is nothing to fill: torch would spend two seconds on getting ready."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        return given["tensor"] if func is nn.init.normal_ and "tensor" in given else func(*args, **given)


@contextmanager
def _no_more_than(weights: Mapping[str, Tensor]) -> Iterator[None]:
    """Stop building at once when it makes far more tensors, or larger ones, than there are weights.

    Without numbers a tensor costs nothing however large it is, but a billion layers would still take for ever. Some
    more than there are is fine: a part of a pretrained model may be made first and thrown away then.
    """
    thread = threading.get_ident()
    tensors = 2 * len(weights) + 64
    numbers = 2 * sum(tensor.numel() for tensor in weights.values()) + 2**20

    def count(module: nn.Module, name: str, parameter: Tensor | None) -> None:
        nonlocal tensors, numbers
        if parameter is None or threading.get_ident() != thread:
            return
        tensors, numbers = tensors - 1, numbers - parameter.numel()
        if tensors < 0 or numbers < 0:
            raise ModelFileError("the settings ask for a far larger model than the weights are for")

    hook = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()


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
    from lacuner.models.encoders.huggingface import build_pretrained

    try:
        return build_pretrained(settings, files or {})
    except ConfigError as error:
        raise ModelFileError(error.problem) from error


def build_head(config: Mapping[str, Any], width: int) -> Any:
    """A head with fresh weights, as `Head.config` described it, on an encoder of this width."""
    kind, settings = _split(config, HEADS, "head")
    labels, widths = settings.get("labels"), settings.get("widths", 1)
    if not isinstance(labels, list | tuple) or not all(isinstance(label, str) for label in labels):
        raise ModelFileError("the labels of a head must be a list of strings")
    if type(widths) is not int or widths > MOST_WIDTHS:
        raise ModelFileError(f"the widest span of a head must be a number of words, at most {MOST_WIDTHS:,}")
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
