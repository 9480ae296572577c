"""AdamW with a learning rate for the encoder and one for the head, and the rise and fall of both."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from lacuner.models.model import AnyModel
from lacuner.models.types import TorchModule


def make_optimizer(model: AnyModel, encoder_rate: float, head_rate: float, decay: float) -> torch.optim.AdamW:
    """Four groups: encoder and head, with and without weight decay."""
    groups = []
    for part, rate in ((model.encoder, encoder_rate), (model.head, head_rate)):
        decayed, free = _split(part)
        groups += [{"params": decayed, "lr": rate, "rate": rate, "weight_decay": decay}]
        groups += [{"params": free, "lr": rate, "rate": rate, "weight_decay": 0.0}]
    return torch.optim.AdamW([group for group in groups if group["params"]], fused=True)


def _split(part: TorchModule) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Matrices that a linear layer multiplies with, and everything else: biases, norms, embeddings."""
    matrices = {
        id(parameter)
        for module in part.modules()
        if isinstance(module, nn.Linear | nn.LSTM)
        for name, parameter in module.named_parameters(recurse=False)
        if name.startswith("weight")
    }
    learned = [parameter for parameter in part.parameters() if parameter.requires_grad]
    return [p for p in learned if id(p) in matrices], [p for p in learned if id(p) not in matrices]


def set_rate(optimizer: torch.optim.Optimizer, progress: float, warmup: float) -> None:
    """The learning rate at a point of the training between 0 and 1: up in a straight line, then down to nothing."""
    factor = progress / warmup if progress < warmup else (1 - progress) / max(1 - warmup, 1e-9)
    for group in optimizer.param_groups:
        group["lr"] = group["rate"] * factor


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's memory as named tensors."""
    return {
        f"optimizer.{i}.{name}": value if isinstance(value, Tensor) else torch.tensor(value)
        for i, parameter in enumerate(_parameters(optimizer))
        for name, value in optimizer.state.get(parameter, {}).items()
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Put back what `optimizer_tensors` took."""
    for i, parameter in enumerate(_parameters(optimizer)):
        prefix = f"optimizer.{i}."
        mine = {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
        if mine:
            optimizer.state[parameter] = {name: tensor.to(parameter.device, copy=True) for name, tensor in mine.items()}


def _parameters(optimizer: torch.optim.Optimizer) -> Iterator[nn.Parameter]:
    for group in optimizer.param_groups:
        yield from group["params"]
