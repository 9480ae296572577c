"""Shards, and the training of independent models, on a Ray cluster: plain tasks, a bounded number at a time.

Only paths, counts and lines of the log travel through Ray, no texts. Ray gives tasks of one run to the same few worker
processes, and a process keeps what it has opened: so models and gazetteers are loaded once per worker. If a worker or a
machine dies, its task runs again somewhere else.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from lacuner.errors import ConfigError, LacunerError, need_library
from lacuner.processes import AHEAD, Request, run_child, use_one_thread
from lacuner.scale.engines import ATTEMPTS, RunShards, lost_worker
from lacuner.scale.job import Record, ShardTask, open_once
from lacuner.scale.shards import Shard

ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_agent_register_timeout_ms": "120000",  # a busy machine needs more than the default of 15 seconds
    "RAY_task_oom_retries": str(ATTEMPTS - 1),  # not for ever: Ray kills tasks itself before memory runs out
    "RAY_worker_niceness": "0",  # workers have the priority of the command; by default, every other process goes first
}
"""Variables for Ray, unless they are set: nothing is reported to its makers."""
LOG_SECONDS = 1.0
"""How often the lines that child processes print are fetched."""


@dataclass(frozen=True)
class RayEngine:
    """A Ray cluster: `local` starts one on this machine, `HOST:PORT` and `ray://HOST:PORT` use an existing one."""

    address: str = "local"
    workers: int | None = None

    @contextmanager
    def __call__(self, task: ShardTask) -> Iterator[RunShards]:
        with connect(self.address, self.workers) as ray:
            cores = max(int(ray.cluster_resources().get("CPU", 1)), 1)
            stored = ray.put(task)
            limit, openings = self.workers or AHEAD * cores, []
            if self.address == "local":  # all cores of the cluster are ours: a second task waits for each of them
                limit = AHEAD * cores
                openings = [ray.remote(_open).options(max_retries=0).remote(stored) for _ in range(cores)]
            yield partial(_run_shards, ray, stored, limit)
            del openings  # they run on; Ray prints no errors of tasks without a reference


@dataclass(frozen=True)
class RayRequests:
    """`run_requests` on a Ray cluster: a request is a task that starts the same child process, on any machine."""

    address: str = "local"

    def __call__(
        self,
        program: str,
        requests: Sequence[Request],
        workers: int,
        on_exit: Callable[[Request, str | None], None],
        log: Callable[[str], None],
        threads: int = 1,
    ) -> None:
        with connect(self.address) as ray:
            from ray.util.queue import Queue

            # Ray starts an actor that asks for memory on its owner's machine. One that asks for nothing may start
            # on any machine, even on one that has just died, and then nothing is logged
            lines = Queue(actor_options={"num_cpus": 0, "memory": 2**20})
            cores = max(int(node["Resources"].get("CPU", 1)) for node in ray.nodes() if node["Alive"])
            run = ray.remote(_run_request).options(num_cpus=min(threads, cores), max_retries=0)
            waiting, attempts = list(range(len(requests)))[::-1], Counter[int]()
            running: dict[Any, int] = {}
            while waiting or running:
                while waiting and len(running) < workers:
                    number = waiting.pop()
                    attempts[number] += 1
                    running[run.remote(program, requests[number], threads, lines, os.getcwd())] = number
                finished, _ = ray.wait(list(running), num_returns=1, timeout=LOG_SECONDS)
                _pass_on(lines, log)
                for reference in finished:
                    number = running.pop(reference)
                    try:
                        failure = ray.get(reference)
                    except ray.exceptions.RayError as error:
                        if attempts[number] < ATTEMPTS:
                            waiting.append(number)  # what it has trained is in its checkpoint
                            continue
                        failure = f"its worker was lost {ATTEMPTS} times: {type(error).__name__}"
                    on_exit(requests[number], failure)


@contextmanager
def connect(address: str, workers: int | None = None) -> Iterator[Any]:
    """Ray, connected; disconnected at the end, and stopped if it was started here, with `workers` cores."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    with need_library("--on ray needs Ray", "lacuner[scale]"):
        import ray
    # no `runtime_env`: the workers that Ray has started in advance would not be used
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    with tempfile.TemporaryDirectory(prefix="lacuner-", ignore_cleanup_errors=True) as folder:  # 0700
        if address == "local":
            options |= {"include_dashboard": False, "_node_ip_address": "127.0.0.1", "_temp_dir": folder}
            options |= {"num_cpus": workers} if workers else {}
        try:
            _connect(ray, address, options)
        except Exception as error:  # Ray raises errors of many types, some of them plain Exception
            first, *more = str(error).strip().split("\n")
            reason = f"{first} {more[-1]}" if more and first.endswith(":") else first  # the last line of a traceback
            raise ConfigError(f"cannot connect to Ray at {address}: {reason}; check --on") from error
        try:
            with redirect_stdout(sys.stderr):  # Ray prints there which workers died; standard output is for results
                yield ray
        finally:
            with suppress(Exception):
                ray.shutdown()


def _connect(ray: Any, address: str, options: dict[str, Any]) -> None:
    """Connect, several times if need be: Ray starts a server for each `ray://` client, which may crash while it starts.

    It is forked from a process with threads (ray-project/ray#63202, with Ray 2.60 as well).
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            ray.init(address, **options)
            return
        except ConnectionAbortedError:
            if attempt == ATTEMPTS:
                raise


def _run_shards(ray: Any, task: Any, limit: int, shards: Sequence[Shard]) -> Iterator[tuple[Shard, Record]]:
    """Run a task that is stored in Ray on every shard, at most `limit` at a time."""
    run = ray.remote(_run).options(num_cpus=1, max_retries=ATTEMPTS - 1)
    waiting = list(reversed(shards))
    running: dict[Any, Shard] = {}
    while waiting or running:
        while waiting and len(running) < limit:
            shard = waiting.pop()
            running[run.remote(task, shard)] = shard
        [finished], _ = ray.wait(list(running), num_returns=1)
        shard = running.pop(finished)
        yield shard, _result(ray, finished, shard)


def _open(task: ShardTask) -> None:
    """Open the job in a worker, while the corpus is cut into shards."""
    use_one_thread()
    with suppress(Exception):  # the first shard will fail in the same way, and say so
        open_once(task.job, task.job_hash)


def _run(task: ShardTask, shard: Shard) -> Record:
    use_one_thread()
    return task(shard)


def _result(ray: Any, reference: Any, shard: Shard) -> Record:
    """The result of a task; an error of ours as it was raised."""
    try:
        record: Record = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, LacunerError):
            raise error.cause from None
        raise
    except ray.exceptions.RayError as error:  # a worker, a machine, or memory is lost
        raise lost_worker(shard) from error
    return record


def _run_request(program: str, request: Request, threads: int, lines: Any, working_folder: str) -> str | None:
    with suppress(OSError):  # on another machine it may not exist, and need not if all paths are absolute
        os.chdir(working_folder)

    def log(line: str) -> None:
        with suppress(Exception):  # the machine with the queue may be lost: then only the log is
            lines.put(line)

    return run_child(program, request, log, threads)


def _pass_on(lines: Any, log: Callable[[str], None]) -> None:
    """Log the lines that have arrived."""
    arrived: list[str] = []
    with suppress(Exception):  # see above
        arrived = lines.get_nowait_batch(lines.size())
    for line in arrived:
        log(line)
