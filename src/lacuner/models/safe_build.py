"""Build a model from a config that may be damaged or hostile, without running code or filling the memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode

from lacuner.errors import ModelFileError
from lacuner.models.encoders import build_encoder
from lacuner.models.heads import MASKED_HEADS, build_head, build_masked_head
from lacuner.models.model import AnyModel, MaskedLanguageModel, Model

MAX_BUFFER_BYTES = 2**28
"""Bytes that a model may have beside its weights (tables that are computed, not learned)."""


def build_model(config: Mapping[str, Any], files: Mapping[str, bytes], weights: Mapping[str, Tensor]) -> AnyModel:
    """The model of a config with these weights.

    First it is built without numbers: settings that ask for anything but these weights allocate nothing.
    """
    with torch.device("meta"), _NoNumbers(), limit_size(weights):
        model = _build(config, files)
    asked = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    there = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    for name in sorted({*asked, *there}):
        if asked.get(name) != there.get(name):
            sizes = [shape if shape is None else list(shape) for shape in (asked.get(name), there.get(name))]
            raise ModelFileError(f"the settings ask for {name} of size {sizes[0]}, the weights have {sizes[1]}")
    computed = sum(tensor.nbytes for name, tensor in model.named_buffers() if name not in there)
    if computed > MAX_BUFFER_BYTES:
        raise ModelFileError(f"the settings ask for {computed:,} bytes beside the weights")
    model = _build(config, files)
    model.load_state_dict(dict(weights))
    return model


def _build(config: Mapping[str, Any], files: Mapping[str, bytes]) -> AnyModel:
    encoder = build_encoder(config["encoder"], files)
    if config["head"].get("kind") in MASKED_HEADS:
        return MaskedLanguageModel(encoder, build_masked_head(config["head"], encoder.width))
    return Model(encoder, build_head(config["head"], encoder.width))


class _NoNumbers(TorchFunctionMode):
    """Normal numbers are not drawn where there is nothing to fill: torch would spend two seconds on getting ready."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        return given["tensor"] if func is nn.init.normal_ and "tensor" in given else func(*args, **given)


@contextmanager
def limit_size(weights: Mapping[str, Tensor]) -> Iterator[None]:
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
