"""Shards on a Ray cluster: plain tasks, a bounded number at a time. Only paths and counts travel through Ray, no texts.

Ray gives tasks of one run to the same few worker processes, and a process keeps what it has opened: so models and
gazetteers are loaded once per worker. If a worker or a machine dies, Ray runs its task again somewhere else.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from lacuner.errors import ConfigError, LacunerError
from lacuner.processes import AHEAD
from lacuner.scale.engines import ATTEMPTS, lost_worker
from lacuner.scale.job import Record, ShardTask
from lacuner.scale.shards import Shard

ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_agent_register_timeout_ms": "120000",  # a busy machine needs more than the default of 15 seconds
}
"""Variables for Ray, unless they are set: nothing is reported to its makers."""
WORKER_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}


@dataclass(frozen=True)
class RayEngine:
    """A Ray cluster: `local` starts one on this machine, `HOST:PORT` and `ray://HOST:PORT` use an existing one."""

    address: str = "local"
    workers: int | None = None

    def __call__(self, task: ShardTask, shards: Sequence[Shard]) -> Iterator[tuple[Shard, Record]]:
        with self._connect() as ray:
            limit = self.workers or AHEAD * max(int(ray.cluster_resources().get("CPU", 1)), 1)
            run = ray.remote(_run).options(num_cpus=1, max_retries=ATTEMPTS - 1)
            stored = ray.put(task)
            waiting = list(reversed(shards))
            running: dict[Any, Shard] = {}
            while waiting or running:
                while waiting and len(running) < limit:
                    shard = waiting.pop()
                    running[run.remote(stored, shard)] = shard
                [finished], _ = ray.wait(list(running), num_returns=1)
                shard = running.pop(finished)
                yield shard, _result(ray, finished, shard)

    @contextmanager
    def _connect(self) -> Iterator[Any]:
        """Ray, connected; disconnected at the end, and stopped if it was started here."""
        for name, value in ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        try:
            import ray
        except ImportError as error:
            raise ConfigError("--on ray needs Ray: pip install 'lacuner[scale]'") from error
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        options["runtime_env"] = {"env_vars": WORKER_ENVIRONMENT}
        with tempfile.TemporaryDirectory(prefix="lacuner-", ignore_cleanup_errors=True) as folder:  # 0700
            if self.address == "local":
                options |= {"include_dashboard": False, "_node_ip_address": "127.0.0.1", "_temp_dir": folder}
                options |= {"num_cpus": self.workers} if self.workers else {}
            try:
                ray.init(self.address, **options)
            except LacunerError:
                raise
            except Exception as error:  # Ray raises errors of many types, some of them plain Exception
                reason = str(error).strip().partition("\n")[0]
                raise ConfigError(f"cannot connect to Ray at {self.address}: {reason}; check --on") from error
            try:
                yield ray
            finally:
                with suppress(Exception):
                    ray.shutdown()


def _run(task: ShardTask, shard: Shard) -> Record:
    return task(shard)


def _result(ray: Any, reference: Any, shard: Shard) -> Record:
    """The result of a task; an error of ours as it was raised."""
    try:
        record: Record = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, LacunerError):
            raise error.cause from None
        raise
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError, ray.exceptions.OutOfMemoryError) as error:
        raise lost_worker(shard) from error
    return record
