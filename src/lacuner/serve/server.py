"""Running the service: connections with time limits, a graceful end, and several worker processes.

Workers have our own supervisor instead of uvicorn's: it can say why a worker does not start, its workers drain, and
their metrics are summed up.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from lacuner.errors import LacunerError
from lacuner.processes import usable_cores, watch_parent
from lacuner.serve.metrics import FOLDER_VARIABLE
from lacuner.serve.security import MAX_HEADERS
from lacuner.serve.settings import ServiceSettings

if TYPE_CHECKING:
    from lacuner.serve.app import Service

HEADER_SECONDS = 10.0
"""Time for the headers of a request to arrive."""
KEEP_ALIVE_SECONDS = 60
MAX_CONNECTIONS = 1_000
"""Open connections of a worker, at most; further ones get 503."""
DRAIN_SECONDS = 1.0
"""Time between SIGTERM and the end of listening, in which `/health` says 503 and every answer closes its connection."""
LAST_REQUEST_SECONDS = 0.5
"""Time between the end of listening and the closing of idle connections: requests that are on their way arrive."""
END_SIGNALS = (signal.SIGTERM, signal.SIGINT)
RESTART_SECONDS = 5.0
"""Least time between two starts of a worker: one that dies at once is not started all the time."""

Log = Callable[[str], None]


class TimedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1 with a time limit on headers, which it lacks."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._restart_timer()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:  # a request has begun
            self._stop_timer()
        elif self._timer is None and self.timeout_keep_alive_task is None:  # the first bytes of the next one
            self._restart_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _restart_timer(self) -> None:
        self._timer = self.loop.call_later(HEADER_SECONDS, self._end_slow_connection)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_slow_connection(self) -> None:
        """Answer 408 to half a request, and close the connection."""
        self._timer = None
        if self.transport.is_closing() or self.conn.their_state is not h11.IDLE:
            return
        if self.conn.trailing_data[0]:
            headers = [("connection", "close"), ("content-length", "0")]
            self.transport.write(self.conn.send(h11.Response(status_code=408, headers=headers)) or b"")
            self.transport.write(self.conn.send(h11.EndOfMessage()) or b"")
        self.transport.close()


class GracefulServer(uvicorn.Server):
    """A uvicorn server that drains: for a short time after SIGTERM it goes on as before and closes used connections."""

    def __init__(self, config: uvicorn.Config, service: Service, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._service = service
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.draining = True
        await asyncio.sleep(DRAIN_SECONDS)
        await self._stop_listening(sockets or [])
        await asyncio.sleep(LAST_REQUEST_SECONDS)
        await super().shutdown(sockets)

    async def _stop_listening(self, sockets: list[socket.socket]) -> None:
        """Close the listening sockets, after the connections that wait in them have been accepted."""
        copies = [listener.dup() for listener in sockets]
        for server in self.servers:
            server.close()
        loop = asyncio.get_running_loop()
        for listener in copies:
            listener.setblocking(False)
            with listener, suppress(BlockingIOError):
                while True:
                    accepted, _ = listener.accept()
                    accepted.setblocking(False)
                    await loop.connect_accepted_socket(self._new_protocol, accepted)

    def _new_protocol(self) -> TimedProtocol:
        return TimedProtocol(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)


def run_worker(settings: ServiceSettings, listener: socket.socket, log: Log, on_ready: Callable[[], None]) -> None:
    """Load the tagger and answer requests until SIGTERM or SIGINT; all accepted requests are answered."""
    from lacuner.models.storage import load_with_entries  # here: the parent of workers needs no torch
    from lacuner.serve.app import Service

    tagger = load_with_entries(settings.run, gazetteer=settings.gazetteer, dictionary=settings.dictionary)
    service = Service(tagger, settings)
    config = uvicorn.Config(
        service.app,
        interface="asgi3",
        http=TimedProtocol,
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=MAX_HEADERS,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(2 * settings.max_seconds) + 5,
    )
    with _handle_signals(lambda _: None):  # uvicorn raises them again after its own, graceful end
        GracefulServer(config, service, on_ready).run(sockets=[listener])
    log(f"worker {os.getpid()} stopped: {service.accepted:,} requests accepted, {service.answered:,} answered")


@contextmanager
def _handle_signals(handle: Callable[[int], None]) -> Iterator[None]:
    """Call a function at SIGTERM and SIGINT, which then do not end the process."""
    before = {number: signal.signal(number, lambda number, _: handle(number)) for number in END_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_workers(settings: ServiceSettings, listener: socket.socket, workers: int, log: Log) -> None:
    """Run several workers until SIGTERM or SIGINT, and replace those that die."""
    stopping: list[int] = []
    with tempfile.TemporaryDirectory(prefix="lacuner-metrics-") as folder, _handle_signals(stopping.append):
        os.environ[FOLDER_VARIABLE] = folder
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, usable_cores() // workers)))
        pool = [_Worker(settings, listener, log) for _ in range(workers)]
        try:
            for worker in pool:
                worker.wait_until_ready(stopping)
            if not stopping:
                log(f"{workers} workers are ready: {', '.join(str(worker.pid) for worker in pool)}")
            while not stopping:
                time.sleep(0.2)
                for place, worker in enumerate(pool):
                    if not worker.is_alive and time.monotonic() > worker.started + RESTART_SECONDS:
                        log(f"worker {worker.pid} {worker.describe_end()}; a new one is started")
                        worker.forget_metrics()
                        pool[place] = _Worker(settings, listener, log)
        finally:
            listener.close()  # with the copies of the workers; otherwise connections would wait for nobody
            for worker in pool:
                worker.stop()
            deadline = time.monotonic() + 2 * settings.max_seconds + 15
            for worker in pool:
                worker.join(deadline)
            del os.environ[FOLDER_VARIABLE]


class _Worker:
    """A worker process, as its parent sees it."""

    def __init__(self, settings: ServiceSettings, listener: socket.socket, log: Log) -> None:
        context = get_context("spawn")  # not fork: torch's threads do not survive it
        self._messages, messages = context.Pipe(duplex=False)
        self._process: BaseProcess = context.Process(
            target=_worker_main, args=(settings, listener, log, messages, os.getpid()), name="lacuner-worker"
        )
        self.started = time.monotonic()
        self._process.start()
        messages.close()

    @property
    def pid(self) -> int:
        return self._process.pid or 0

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def wait_until_ready(self, stopping: list[int]) -> None:
        """Wait until the worker answers requests; if it cannot, raise the error that it met."""
        while not stopping and not self._messages.poll(0.2):
            pass
        if stopping:
            return
        try:
            problem = self._messages.recv()
        except EOFError:
            self._process.join()
            raise LacunerError(f"a worker {self.describe_end()} while it loaded the model") from None
        if problem is not None:
            raise LacunerError(problem)

    def describe_end(self) -> str:
        """How the worker ended, and why, if it said so."""
        status = self._process.exitcode or 0
        end = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        with suppress(EOFError):
            while self._messages.poll():
                if problem := self._messages.recv():
                    return f"{end} ({problem})"
        return end

    def forget_metrics(self) -> None:
        """Drop the gauges of a worker that has died; its counters stay in the sums."""
        from prometheus_client import multiprocess

        multiprocess.mark_process_dead(self.pid)  # type: ignore[no-untyped-call]

    def stop(self) -> None:
        self._process.terminate()

    def join(self, deadline: float) -> None:
        self._process.join(max(0.0, deadline - time.monotonic()))
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _worker_main(settings: ServiceSettings, listener: socket.socket, log: Log, messages: Any, parent: int) -> None:
    watch_parent(parent, lambda: os.kill(os.getpid(), signal.SIGTERM))
    try:
        run_worker(settings, listener, log, lambda: messages.send(None))
    except LacunerError as error:
        messages.send(str(error))
        sys.exit(2)


def serve(settings: ServiceSettings, listener: socket.socket, workers: int, log: Log) -> None:
    """Answer requests on a listening socket until SIGTERM or SIGINT."""
    if workers == 1:
        run_worker(settings, listener, log, lambda: log("1 worker is ready"))
    else:
        run_workers(settings, listener, workers, log)


def address_of(listener: socket.socket) -> str:
    """The address of a listening socket as a URL.

    >>> from lacuner.serve.security import listen
    >>> with listen("127.0.0.1", 0) as listener:
    ...     address_of(listener).startswith("http://127.0.0.1:")
    True
    """
    host, port, *_ = listener.getsockname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
