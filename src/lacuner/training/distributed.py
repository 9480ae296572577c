"""Several processes that train one model together, started by `torchrun` or `accelerate launch`.

All processes run the same program on the same data and with the same seeds, so they agree on every decision. They
divide only the work on a batch (`training/data_parallel.py`). The first process reads and writes the run folder.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import count
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, distributed
from torch.distributed.rendezvous import rendezvous

from lacuner.errors import ConfigError, ProcessLostError

T = TypeVar("T")

JOIN_SECONDS = 300.0
"""Seconds that a process waits for the others at the start."""
REPLY_SECONDS = 1800.0
"""Seconds that a process waits for the others later: for one that hangs. One that dies is noticed at once."""
END_SECONDS = 5.0
"""Seconds that a failing process with the shared store waits for the others, which agree there on who reports."""
POLL_SECONDS = 0.2


class Launched(NamedTuple):
    """What the launcher tells a process by environment variables."""

    rank: int
    """Number of this process, from 0."""
    processes: int
    """Number of processes."""
    local_rank: int
    """Number of this process on its machine: which GPU it uses."""


def read_environment(environment: Mapping[str, str]) -> Launched | None:
    """Read what a launcher tells this process by environment variables; None if it trains alone.

    >>> address = {"MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
    >>> read_environment({"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", **address})
    Launched(rank=1, processes=2, local_rank=1)
    >>> read_environment({})
    """
    if environment.get("WORLD_SIZE", "1") == "1":
        return None
    missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in environment]
    if missing:
        raise ConfigError(f"WORLD_SIZE is set, but {missing[0]} is not: start several processes with `torchrun`")
    try:
        rank, count = int(environment["RANK"]), int(environment["WORLD_SIZE"])
        launched = Launched(rank, count, int(environment.get("LOCAL_RANK", rank)))
    except ValueError as error:
        raise ConfigError(f"RANK, WORLD_SIZE and LOCAL_RANK must be numbers: {error}") from error
    if not 0 <= launched.rank < launched.processes:
        raise ConfigError(f"RANK is {rank}, but WORLD_SIZE is {count}: start several processes with `torchrun`")
    return launched


class _Group(NamedTuple):
    launched: Launched
    store: Any  # torch does not export its type
    numbers: Iterator[int]
    holds_store: bool
    """Whether the store ends with this process; `torchrun` holds it itself."""


_group: _Group | None = None
"""The processes that this one has joined. Not torch's own group: a program may have one and train without us in it."""


def process_count() -> int:
    """Number of processes that train together.

    >>> process_count()
    1
    """
    return 1 if _group is None else _group.launched.processes


def process_rank() -> int:
    """Number of this process among them, from 0.

    >>> process_rank()
    0
    """
    return 0 if _group is None else _group.launched.rank


def is_first() -> bool:
    """Whether this is the process that reads and writes the run folder, and reports.

    >>> is_first()
    True
    """
    return process_rank() == 0


@contextmanager
def join_processes(environment: Mapping[str, str] = os.environ) -> Iterator[None]:
    """Train together with the processes that a launcher has started, if there are any.

    >>> with join_processes({}):
    ...     process_count()
    1
    """
    global _group  # noqa: PLW0603 (like torch's own group: steps deep inside a recipe ask for it)
    launched = read_environment(environment)
    if launched is None:
        yield
        return
    if torch.cuda.is_available():
        _choose_gpu(launched.local_rank, torch.cuda.device_count())
    store = _meet(launched)
    group_store = distributed.PrefixStore("group", store)  # type: ignore[attr-defined]
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    with _explain_loss():
        distributed.init_process_group(
            backend,
            store=group_store,
            rank=launched.rank,
            world_size=launched.processes,
            timeout=timedelta(seconds=REPLY_SECONDS),
        )
    holds_store = launched.rank == 0 and environment.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    _group = _Group(launched, store, count(), holds_store)
    try:
        yield
    finally:
        _group = None
        distributed.destroy_process_group()


def _choose_gpu(local_rank: int, gpus: int) -> None:
    if local_rank >= gpus:
        raise ConfigError(
            f"there is no GPU for process {local_rank + 1} of this machine: start at most {gpus} (--nproc-per-node), "
            "or hide the GPUs to train on CPUs (CUDA_VISIBLE_DEVICES=)"
        )
    torch.cuda.set_device(local_rank)


def _meet(launched: Launched) -> Any:
    """Wait until all processes are there; returns the store through which they find each other."""
    patience = timedelta(seconds=JOIN_SECONDS)
    try:
        store, _, _ = next(rendezvous("env://", timeout=patience))
        # a name of our own: variables inherited from another program must not lead us into its group
        store = distributed.PrefixStore("lacuner", store)  # type: ignore[attr-defined]
        store.set(f"here/{launched.rank}", "")
        store.wait([f"here/{rank}" for rank in range(launched.processes)], patience)
    except RuntimeError as error:
        raise ConfigError(
            f"according to RANK and WORLD_SIZE this is process {launched.rank} of {launched.processes}, but the others "
            f"did not come within {JOIN_SECONDS:.0f} seconds: start all of them with `torchrun`, or unset WORLD_SIZE"
        ) from error
    return store


@contextmanager
def _explain_loss() -> Iterator[None]:
    """Turn the failure of a collective operation into one sentence."""
    try:
        yield
    except RuntimeError as error:
        cause = (str(error).splitlines() or [""])[0][:150]
        raise ProcessLostError(
            "another process of this job has ended or does not answer, so all of them stop; the same command continues "
            f"from the last checkpoint ({cause})"
        ) from error


def claim_report() -> bool:
    """Whether this process is the first to report an error. The others end in silence: a job needs one explanation.

    >>> claim_report()
    True
    """
    if _group is None:
        return True
    store, rank = _group.store, str(_group.launched.rank)
    try:
        is_ours = bool(store.compare_set("report", "", rank) == rank.encode())
    except RuntimeError:
        return True  # the process that held the store is gone
    deadline = time.monotonic() + END_SECONDS
    with suppress(RuntimeError):
        store.add("ended", 1)
        while _group.holds_store and store.add("ended", 0) < process_count() and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)  # the others may still ask
    return is_ours


def sum_over_processes(tensor: Tensor) -> Tensor:
    """The sum of a tensor over all processes, in place; the same bits in each of them.

    >>> sum_over_processes(torch.ones(2))
    tensor([1., 1.])
    """
    if process_count() > 1:
        with _explain_loss():
            distributed.all_reduce(tensor)
    return tensor


def gather_from_processes(tensor: Tensor) -> list[Tensor]:
    """The tensors of all processes, which have the same shape.

    >>> gather_from_processes(torch.ones(2))
    [tensor([1., 1.])]
    """
    if process_count() == 1:
        return [tensor]
    tensors = [torch.empty_like(tensor) for _ in range(process_count())]
    with _explain_loss():
        distributed.all_gather(tensors, tensor.contiguous())
    return tensors


def bytes_of_first(data: bytes) -> bytes:
    """Send the bytes of the first process to all others; returns them in every process.

    >>> bytes_of_first(b"first")
    b'first'
    """
    if process_count() == 1:
        return data
    size = torch.tensor([len(data)])
    with _explain_loss():
        distributed.broadcast(size, 0)
        buffer = torch.frombuffer(bytearray(data), dtype=torch.uint8) if is_first() and data else None
        if buffer is None:
            buffer = torch.zeros(int(size), dtype=torch.uint8)
        if len(buffer):
            distributed.broadcast(buffer, 0)
    return buffer.numpy().tobytes()


def value_of_first(compute: Callable[[], T]) -> T:
    """Compute a JSON value in the first process, and return it in all of them.

    >>> value_of_first(lambda: {"f1": 0.5})
    {'f1': 0.5}
    """
    if process_count() == 1:
        return compute()
    value: Any = json.loads(bytes_of_first(json.dumps(compute()).encode() if is_first() else b""))
    return value  # type: ignore[no-any-return]


def first_then_others(work: Callable[[], T]) -> T:
    """Do some work in the first process, then in the others, which find what it has prepared; they wait without limit.

    >>> first_then_others(lambda: "prepared")
    'prepared'
    """
    if _group is None:
        return work()
    done = f"done/{next(_group.numbers)}"  # all processes call this in the same order
    if not is_first():
        with _explain_loss():
            while not _group.store.check([done]):
                time.sleep(POLL_SECONDS)
        return work()
    result = work()
    _group.store.set(done, "")
    return result
