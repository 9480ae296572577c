"""AdamW with separate learning rates for encoder and head, linear warm-up and linear decay."""

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
    """Parameters with weight decay (matrices of linear layers), and without (biases, norms, embeddings)."""
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
    """Set the learning rate at `progress` between 0 and 1: linear warm-up, then linear decay to zero."""
    factor = progress / warmup if progress < warmup else (1 - progress) / max(1 - warmup, 1e-9)
    for group in optimizer.param_groups:
        group["lr"] = group["rate"] * factor


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's state as named tensors."""
    return {
        f"optimizer.{i}.{name}": value if isinstance(value, Tensor) else torch.tensor(value)
        for i, parameter in enumerate(_parameters(optimizer))
        for name, value in optimizer.state.get(parameter, {}).items()
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Restore the state that `optimizer_tensors` returned."""
    for i, parameter in enumerate(_parameters(optimizer)):
        prefix = f"optimizer.{i}."
        state = {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
        if state:
            optimizer.state[parameter] = {
                name: tensor.to(parameter.device, copy=True) for name, tensor in state.items()
            }


def _parameters(optimizer: torch.optim.Optimizer) -> Iterator[nn.Parameter]:
    for group in optimizer.param_groups:
        yield from group["params"]
