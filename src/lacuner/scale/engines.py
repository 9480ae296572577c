"""What `--on` names: this machine or Ray, for tasks on many shards and for the training of independent models."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

from lacuner.errors import ConfigError, ProcessLostError
from lacuner.processes import RunRequests, map_in_order, run_requests, usable_cores
from lacuner.scale.job import Record, ShardTask, open_once
from lacuner.scale.shards import Shard

RunShards = Callable[[Sequence[Shard]], Iterator[tuple[Shard, Record]]]
"""Runs a task on every shard and yields each with its record when it is finished."""
Engine = Callable[[ShardTask], AbstractContextManager[RunShards]]
"""Prepares to run a task on shards, before they are known: workers may start while the corpus is cut."""

ATTEMPTS = 3
"""How often a shard is tried if its worker dies."""


def lost_worker(shard: Shard) -> ProcessLostError:
    """The error if a worker dies again and again."""
    return ProcessLostError(
        f"shard {shard.name}: its worker was killed {ATTEMPTS} times, perhaps for lack of memory; the same command "
        "continues: give fewer --workers"
    )


@dataclass(frozen=True)
class ProcessEngine:
    """A process pool on this machine. If a worker is killed, a new pool takes over what is missing."""

    workers: int

    def __call__(self, task: ShardTask) -> AbstractContextManager[RunShards]:
        return nullcontext(partial(self._run, task))

    def _run(self, task: ShardTask, shards: Sequence[Shard]) -> Iterator[tuple[Shard, Record]]:
        missing, attempts = list(shards), 0
        if missing and self.workers > 1 and task.job.forkable:
            open_once(task.job, task.job_hash)  # here, so that workers share its memory
        start = None if task.job.forkable else "spawn"
        while missing:
            try:
                for shard, record in map_in_order(list(missing), task, self.workers, start):
                    missing.remove(shard)
                    attempts = 0
                    yield shard, record
            except BrokenProcessPool as error:
                attempts += 1
                if attempts == ATTEMPTS:
                    raise lost_worker(missing[0]) from error


def open_engine(name: str, workers: int | None) -> Engine:
    """The engine that `--on` names.

    >>> open_engine("processes", 2)
    ProcessEngine(workers=2)
    """
    address = _ray_address(name)
    if address is None:
        return ProcessEngine(workers or usable_cores())
    from lacuner.scale.ray_engine import RayEngine

    return RayEngine(address, workers)


def open_launcher(name: str) -> RunRequests:
    """What starts the processes that train independent models, on the engine that `--on` names.

    >>> open_launcher("processes").__name__
    'run_requests'
    """
    address = _ray_address(name)
    if address is None:
        return run_requests
    from lacuner.scale.ray_engine import RayRequests

    return RayRequests(address)


def _ray_address(name: str) -> str | None:
    """The Ray cluster that `--on` names; None if it names this machine."""
    if name == "processes":
        return None
    if name == "ray" or name.startswith("ray://"):
        return name if name != "ray" else os.environ.get("RAY_ADDRESS", "local")
    raise ConfigError(f"--on is processes, ray or ray://HOST:PORT, not {name!r}")
