"""AdamW with separate learning rates for encoder and head, linear warm-up and linear decay.

Large embedding tables have sparse gradients: of them, only the rows of the batch are updated. A dense update of a
table of 131,072 rows costs more than the rest of a training step.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from lacuner.models.model import AnyModel
from lacuner.models.types import HasFreshModules, TorchModule


class LazyAdam(torch.optim.Optimizer):
    """Adam without weight decay for parameters with sparse gradients: other rows, and their moments, stay untouched.

    The same rule as `torch.optim.SparseAdam`, in a third less time: it takes and returns plain rows instead of sparse
    tensors.
    """

    def __init__(self, groups: Iterable[dict[str, Any]]) -> None:
        super().__init__(groups, {"betas": (0.9, 0.999), "eps": 1e-8})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group)

    def _update(self, parameter: nn.Parameter, group: dict[str, Any]) -> None:
        assert parameter.grad is not None
        gradient, (beta1, beta2) = parameter.grad.coalesce(), group["betas"]
        state = self.state[parameter]
        if not state:
            state["step"] = torch.zeros(())
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        state["step"] += 1
        rows, values, step = gradient.indices()[0], gradient.values(), float(state["step"])
        mean = state["exp_avg"].index_select(0, rows).lerp_(values, 1 - beta1)
        square = state["exp_avg_sq"].index_select(0, rows).mul_(beta2).addcmul_(values, values, value=1 - beta2)
        state["exp_avg"].index_copy_(0, rows, mean)
        state["exp_avg_sq"].index_copy_(0, rows, square)
        scale = square.div_(1 - beta2**step).sqrt_().add_(group["eps"])
        parameter.index_add_(0, rows, mean.div_(scale), alpha=-group["lr"] / (1 - beta1**step))


class Optimizers:
    """The optimisers of one model: AdamW, and LazyAdam if it has a table with sparse gradients."""

    def __init__(self, parts: list[torch.optim.Optimizer]) -> None:
        self.parts = parts

    @property
    def groups(self) -> list[dict[str, Any]]:
        """The parameter groups of all optimisers."""
        return [group for part in self.parts for group in part.param_groups]

    def zero_grad(self) -> None:
        for part in self.parts:
            part.zero_grad(set_to_none=True)

    def step(self) -> None:
        for part in self.parts:
            part.step()


def make_optimizers(model: AnyModel, encoder_rate: float, head_rate: float, decay: float) -> Optimizers:
    """AdamW for encoder and head, with and without weight decay, and LazyAdam for sparse tables.

    Modules of the encoder that start from scratch have the rate of the head.
    """
    groups, lazy_groups = [], []
    sparse = {id(table) for table in sparse_tables(model)}
    fresh = model.encoder.fresh_modules() if isinstance(model.encoder, HasFreshModules) else ()
    apart = {id(parameter) for module in fresh for parameter in module.parameters()}
    parts = [(model.encoder, encoder_rate), (model.head, head_rate), *((module, head_rate) for module in fresh)]
    for part, rate in parts:
        decayed, free = _split(part)
        if part is model.encoder:
            decayed, free = ([p for p in group if id(p) not in apart] for group in (decayed, free))
        lazy = [parameter for parameter in free if id(parameter) in sparse]
        free = [parameter for parameter in free if id(parameter) not in sparse]
        groups += [{"params": decayed, "lr": rate, "rate": rate, "weight_decay": decay}]
        groups += [{"params": free, "lr": rate, "rate": rate, "weight_decay": 0.0}]
        lazy_groups += [{"params": lazy, "lr": rate, "rate": rate}] if lazy else []
    adamw = torch.optim.AdamW([group for group in groups if group["params"]], fused=True)
    return Optimizers([adamw, *([LazyAdam(lazy_groups)] if lazy_groups else [])])


def sparse_tables(model: AnyModel) -> list[nn.Parameter]:
    """The embedding tables whose gradients are sparse."""
    tables = (getattr(module, "sparse_table", None) for module in model.modules())
    return [table for table in tables if table is not None and table.requires_grad]


def gradients_of(parameters: Iterable[nn.Parameter]) -> list[Tensor]:
    """The gradients as dense tensors that can be changed in place; of a sparse gradient, its rows."""
    gradients = []
    for parameter in parameters:
        if parameter.grad is not None and parameter.grad.is_sparse:
            parameter.grad = parameter.grad.coalesce()
            gradients.append(parameter.grad.values())
        elif parameter.grad is not None:
            gradients.append(parameter.grad)
    return gradients


def clip_gradients(gradients: list[Tensor], largest: float) -> None:
    """Scale the gradients so that their norm is at most `largest` (as `torch.nn.utils.clip_grad_norm_`)."""
    norm = torch.nn.utils.get_total_norm(gradients)
    torch._foreach_mul_(gradients, torch.clamp(largest / (norm + 1e-6), max=1.0))


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


def set_rate(optimizers: Optimizers, progress: float, warmup: float) -> None:
    """Set the learning rate at `progress` between 0 and 1: linear warm-up, then linear decay to zero."""
    factor = progress / warmup if progress < warmup else (1 - progress) / max(1 - warmup, 1e-9)
    for group in optimizers.groups:
        group["lr"] = group["rate"] * factor


def optimizer_tensors(optimizers: Optimizers) -> dict[str, Tensor]:
    """The state of the optimisers as named tensors."""
    return {
        f"optimizer.{i}.{name}": value if isinstance(value, Tensor) else torch.tensor(value)
        for i, (optimizer, parameter) in enumerate(_parameters(optimizers))
        for name, value in optimizer.state.get(parameter, {}).items()
    }


def restore_optimizer(optimizers: Optimizers, tensors: dict[str, Tensor]) -> None:
    """Restore the state that `optimizer_tensors` returned."""
    for i, (optimizer, parameter) in enumerate(_parameters(optimizers)):
        prefix = f"optimizer.{i}."
        state = {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
        if state:
            optimizer.state[parameter] = {
                name: tensor.to(parameter.device, copy=True) for name, tensor in state.items()
            }


def _parameters(optimizers: Optimizers) -> Iterator[tuple[torch.optim.Optimizer, nn.Parameter]]:
    for optimizer in optimizers.parts:
        for group in optimizer.param_groups:
            yield from ((optimizer, parameter) for parameter in group["params"])
