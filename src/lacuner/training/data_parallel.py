"""Data-parallel steps: each process computes the scores of its share of a batch, and gradients are summed.

The scores of all sentences are then gathered, and every process computes the loss of the whole batch from them. So
samplers and losses see the same batch with one process and with several: what they divide by is counted over the whole
batch, and random numbers are drawn for all of it. Only the pass through the model, forward and backward, is divided.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from lacuner.models.model import Model
from lacuner.models.types import Features
from lacuner.training.distributed import (
    gather_from_processes,
    is_first,
    process_count,
    process_rank,
    sum_over_processes,
)

BUCKET = 1 << 24
"""Numbers that are summed over the processes at a time, about: gradients of large models need no second copy."""
_WITHOUT_BATCH = frozenset({"transitions", "start", "end"})
"""Fields of scores that are the same for all sentences: parameters of a CRF."""


class Share(NamedTuple):
    """The sentences of a batch that this process computes."""

    indices: np.ndarray
    """Never empty: if there are fewer sentences than processes, some compute one that does not count."""
    counts: int
    """How many of them count."""


def share_of(indices: np.ndarray) -> Share:
    """This process's share of a batch: every n-th sentence, because neighbours have similar lengths.

    >>> share_of(np.array([4, 2, 7])).indices.tolist()
    [4, 2, 7]
    """
    own = indices[process_rank() :: process_count()]
    return Share(own if len(own) else indices[:1], len(own))


def score_batch(model: Model, features: Features, indices: np.ndarray) -> Any:
    """The head's scores of some sentences, to train on. Each process computes its share of them."""
    device = next(model.parameters()).device
    if process_count() == 1:
        return model(model.encoder.collate(features, indices).to(device))
    share = share_of(indices)
    with own_random_numbers():
        scores = model(model.encoder.collate(features, share.indices).to(device))
    names = [field.name for field in fields(scores)]
    shared = {name: _count_once(getattr(scores, name)) for name in names if name in _WITHOUT_BATCH}
    own = {name: getattr(scores, name) for name in names if name not in _WITHOUT_BATCH}
    shape = len(indices), int(features.lengths[indices].max())
    gathered = _GatherRows.apply(shape, share.counts, *own.values())  # type: ignore[no-untyped-call]
    return type(scores)(**shared, **dict(zip(own, gathered, strict=True)))


_dropout_seeds = torch.Generator()


def seed_dropout(seed: int) -> None:
    """Seed the dropout of the next step in this process. The seed follows from the step, so nothing must be saved."""
    _dropout_seeds.manual_seed(seed)


@contextmanager
def own_random_numbers() -> Iterator[None]:
    """Let dropout draw different numbers in each process, from a generator that is reseeded in every step.

    torch's own generator, from which all else is drawn, keeps the same state in all processes. A single process uses
    it for dropout, too.
    """
    if process_count() == 1:
        yield
        return
    seed = int(torch.randint(1 << 62, (), generator=_dropout_seeds))
    with torch.random.fork_rng([torch.cuda.current_device()] if torch.cuda.is_available() else []):
        torch.manual_seed(seed)
        yield


class _GatherRows(torch.autograd.Function):
    """Tensors `[own sentences, own words, ...]` of all processes as `[sentences, words, ...]`, zero at padding."""

    @staticmethod
    def forward(ctx: Any, shape: tuple[int, int], counts: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        rows = slice(process_rank(), None, process_count())
        ctx.rows, ctx.counts, ctx.shapes = rows, counts, [tensor.shape for tensor in tensors]
        full = [tensor.new_zeros((*shape, *tensor.shape[2:]), dtype=torch.float32) for tensor in tensors]
        for target, tensor in zip(full, tensors, strict=True):
            target[rows, : tensor.shape[1]] = tensor[:counts].float()
        flat = sum_over_processes(torch.cat([tensor.flatten() for tensor in full]))  # a sum with zeros is exact
        parts = torch.split(flat, [tensor.numel() for tensor in full])
        gathered = tuple(
            part.view(target.shape).to(tensor.dtype) for part, target, tensor in zip(parts, full, tensors, strict=True)
        )
        ctx.mark_non_differentiable(*(tensor for tensor in gathered if not tensor.is_floating_point()))
        return gathered

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        own: list[Tensor | None] = []
        for shape, gradient in zip(ctx.shapes, gradients, strict=True):
            part = gradient.new_zeros(shape)
            part[: ctx.counts] = gradient[ctx.rows, : shape[1]]
            own.append(part)
        return None, None, *own


class _CountOnce(torch.autograd.Function):
    """A tensor that all processes have: its gradient comes from the first one only."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient if is_first() else torch.zeros_like(gradient)


def _count_once(tensor: Tensor) -> Tensor:
    once: Tensor = _CountOnce.apply(tensor)  # type: ignore[no-untyped-call]
    return once


class _SumLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, loss: Tensor) -> Tensor:
        return sum_over_processes(loss.clone())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient


def sum_loss(own: Tensor) -> Tensor:
    """The loss of a batch from the losses of its shares, for losses that are sums over sentences.

    >>> sum_loss(torch.tensor(2.0))
    tensor(2.)
    """
    if process_count() == 1:
        return own
    total: Tensor = _SumLoss.apply(own)  # type: ignore[no-untyped-call]
    return total


def sum_gradients(parameters: Sequence[nn.Parameter], sparse: Sequence[nn.Parameter]) -> None:
    """Replace every gradient by its sum over all processes; `sparse` are the tables with sparse gradients.

    A parameter without a gradient in any process keeps none: the optimiser leaves it alone.
    """
    if process_count() == 1:
        return
    tables = {id(table) for table in sparse}
    for bucket in _buckets([parameter for parameter in parameters if id(parameter) not in tables]):
        _sum_dense(bucket)
    for table in sparse:
        _sum_rows(table)


def _buckets(parameters: Sequence[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    bucket: list[nn.Parameter] = []
    for parameter in parameters:
        bucket.append(parameter)
        if sum(member.numel() for member in bucket) >= BUCKET:
            yield bucket
            bucket = []
    if bucket:
        yield bucket


def _sum_dense(parameters: Sequence[nn.Parameter]) -> None:
    """Sum dense gradients; the first numbers of the buffer count the processes that have each of them."""
    device = parameters[0].device
    present = torch.tensor([float(parameter.grad is not None) for parameter in parameters], device=device)
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    buffer = sum_over_processes(torch.cat([present, *(gradient.flatten() for gradient in gradients)]))
    present, *parts = torch.split(buffer, [len(parameters), *(parameter.numel() for parameter in parameters)])
    for parameter, has_gradient, part in zip(parameters, present.tolist(), parts, strict=True):
        parameter.grad = part.view_as(parameter) if has_gradient else None


def _sum_rows(table: nn.Parameter) -> None:
    """Sum the sparse gradient of a table: all processes get the rows of all, in the order of the processes."""
    rows, values = torch.zeros(0, dtype=torch.long, device=table.device), table.new_zeros(0, table.shape[1])
    if table.grad is not None:
        gradient = table.grad.coalesce()
        rows, values = gradient.indices()[0], gradient.values()
    sizes = torch.cat(gather_from_processes(torch.tensor([len(rows)], device=table.device))).tolist()
    most = max(sizes)
    all_rows = gather_from_processes(nn.functional.pad(rows, (0, most - len(rows))))
    all_values = gather_from_processes(nn.functional.pad(values, (0, 0, 0, most - len(values))))
    indices = torch.cat([part[:size] for part, size in zip(all_rows, sizes, strict=True)]).unsqueeze(0)
    numbers = torch.cat([part[:size] for part, size in zip(all_values, sizes, strict=True)])
    total = torch.sparse_coo_tensor(indices, numbers, table.shape, check_invariants=False).coalesce()
    table.grad = total if most else None
