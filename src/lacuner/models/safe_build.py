"""Build a model from a config that may be damaged or hostile, without running code or filling the memory."""

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
"""Bytes of tensors that a model may compute instead of storing them as weights."""


def build_model(config: Mapping[str, Any], files: Mapping[str, bytes], weights: Mapping[str, Tensor]) -> AnyModel:
    """Build the model of a config with these weights.

    First it is built on the meta device, under a size limit, and compared with the weights, so that settings which ask
    for any other model allocate nothing; then it is built for real.
    """
    with torch.device("meta"), _SkipNormalInit(), limit_size(weights):
        model = _build(config, files)
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    stored = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    for name in sorted({*expected, *stored}):
        if expected.get(name) != stored.get(name):
            sizes = [shape if shape is None else list(shape) for shape in (expected.get(name), stored.get(name))]
            raise ModelFileError(f"the settings ask for {name} of size {sizes[0]}, the weights have {sizes[1]}")
    computed = sum(tensor.nbytes for name, tensor in model.named_buffers() if name not in stored)
    if computed > MAX_BUFFER_BYTES:
        raise ModelFileError(f"the settings ask for {computed:,} bytes beside the weights")
    with _SkipNormalInit():  # the weights come next
        model = _build(config, files)
    model.load_state_dict(dict(weights))
    return model


def _build(config: Mapping[str, Any], files: Mapping[str, bytes]) -> AnyModel:
    encoder = build_encoder(config["encoder"], files)
    if config["head"].get("kind") in MASKED_HEADS:
        return MaskedLanguageModel(encoder, build_masked_head(config["head"], encoder.width))
    return Model(encoder, build_head(config["head"], encoder.width))


class _SkipNormalInit(TorchFunctionMode):
    """Skips `nn.init.normal_`: it takes two seconds to load for the meta device, and long for a large table."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        arguments = kwargs or {}
        return arguments["tensor"] if func is nn.init.normal_ and "tensor" in arguments else func(*args, **arguments)


@contextmanager
def limit_size(weights: Mapping[str, Tensor]) -> Iterator[None]:
    """Stop building as soon as it makes far more tensors, or larger ones, than there are weights.

    On the meta device a tensor of any size is free, but a billion layers would still take forever. Some more than the
    weights is allowed: parts of a Hugging Face model may be made first and then removed.
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
