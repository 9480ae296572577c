"""`python -m benchmarks.serve_load RUN CORPUS [--clients 200] [--seconds 60] [--workers 1]`: the service under load.

Starts `lacuner serve RUN` on a free port of loopback. Clients send texts of CORPUS as fast as they are answered, each
over one connection, and compare every answer with the tagger's own prediction. Other clients misbehave meanwhile:
malformed, huge, slow and cut-off requests. Prints one JSON object: latencies in milliseconds, wrong and lost answers,
the status that each kind of bad request got, and the memory of the service over time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lacuner.corpus import read
from lacuner.data import Document
from lacuner.models.storage import load

SCORE_TOLERANCE = 1e-4
"""Scores may differ in the last digits, because a text may share its batch with other ones."""


@dataclass
class Outcome:
    """What the clients saw."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    wrong: int = 0
    lost: int = 0
    """Requests that were sent over an open connection, and got no answer."""
    unconnected: int = 0
    """Connections that were refused or reset before anything was sent."""


class Server:
    """A running service."""

    def __init__(self, process: subprocess.Popen[str], port: int, log: list[str]) -> None:
        self.process = process
        self.port = port
        self.log = log
        """The lines that it printed."""

    def memory(self) -> float:
        """Resident memory of the service and its workers, in MB."""
        kilobytes = 0
        for pid in [self.process.pid, *self.workers()]:
            with suppress(OSError):
                status = Path(f"/proc/{pid}/status").read_text()
                kilobytes += int(re.findall(r"VmRSS:\s+(\d+)", status)[0])
        return kilobytes / 1024

    def cpu_seconds(self) -> float:
        """Processor time of the service and its workers so far."""
        ticks = 0
        for pid in [self.process.pid, *self.workers()]:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def workers(self) -> list[int]:
        """The worker processes; empty if there is only one worker, which is the service itself."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        names = {int(pid): Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children}
        return [pid for pid, name in names.items() if b"spawn_main" in name]

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, wait, and return the exit status."""
        self.process.send_signal(number)
        status = self.process.wait(timeout=90)
        self.log += self.process.stderr or ()
        return status


@contextmanager
def start_server(run: Path, *options: str) -> Iterator[Server]:
    """Start `lacuner serve` on a free port, and wait until it answers."""
    command = [sys.executable, "-m", "lacuner", "serve", str(run), "--port", "0", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        log: list[str] = []
        for line in process.stderr:
            log.append(line)
            if "ready" in line:
                break
        else:
            raise RuntimeError("".join(log))
        yield Server(process, int(re.findall(r"http://127\.0\.0\.1:(\d+)", log[0])[0]), log)
    finally:
        process.kill()  # without effect on a process that has ended
        process.wait()


def request_bytes(body: bytes, path: str = "/predict", length: int | None = None) -> bytes:
    """A POST request; `length` is announced instead of the real length, if given."""
    size = len(body) if length is None else length
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
    )
    return head.encode() + body


async def read_response(reader: asyncio.StreamReader) -> tuple[int, bytes, bool]:
    """Status, body, and whether the connection stays open."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    body = await reader.readexactly(int(re.findall(r"content-length: (\d+)", head)[0]))
    return int(head.split()[1]), body, "connection: close" not in head


def is_right(body: bytes, expected: Sequence[Document]) -> bool:
    """Whether an answer has the expected spans."""
    documents = json.loads(body)["documents"]
    if len(documents) != len(expected):
        return False
    for document, doc in zip(documents, expected, strict=True):
        keys = [(span["start"], span["end"], span["label"], span["source"]) for span in document["spans"]]
        if keys != [(*span.key, span.source) for span in doc.spans]:
            return False
        for span, own in zip(document["spans"], doc.spans, strict=True):
            if (span["score"] is None) != (own.score is None):
                return False
            if own.score is not None and abs(span["score"] - own.score) > SCORE_TOLERANCE:
                return False
    return True


async def run_client(port: int, docs: Sequence[Document], seed: int, outcome: Outcome, stop: asyncio.Event) -> None:
    """Send requests of one to four texts until `stop`, over one connection as long as it lasts."""
    rng = random.Random(seed)
    streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
    while not stop.is_set():
        if streams is None:
            try:
                streams = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                outcome.unconnected += 1
                await asyncio.sleep(0.05)
                continue
        reader, writer = streams
        expected = rng.choices(docs, k=rng.randint(1, 4))
        start = time.perf_counter()
        try:
            writer.write(request_bytes(json.dumps({"texts": [doc.text for doc in expected]}).encode()))
            await writer.drain()
            status, body, stays = await read_response(reader)
        except (OSError, asyncio.IncompleteReadError):
            outcome.lost += 1
            writer.close()
            streams = None
            continue
        outcome.seconds.append(time.perf_counter() - start)
        outcome.statuses[status] += 1
        if status == 200:
            outcome.wrong += not is_right(body, expected)
        else:
            await asyncio.sleep(0.2)
        if not stays:
            writer.close()
            streams = None
    if streams is not None:
        streams[1].close()


async def run_clients(
    port: int, docs: Sequence[Document], clients: int, during: Callable[[Outcome], Awaitable[None]]
) -> Outcome:
    """Run clients until `during` has ended; what they saw."""
    outcome, stop = Outcome(), asyncio.Event()
    tasks = [asyncio.create_task(run_client(port, docs, seed, outcome, stop)) for seed in range(clients)]
    try:
        await during(outcome)
    finally:
        stop.set()
        await asyncio.gather(*tasks)
    return outcome


GOOD = json.dumps({"texts": "Mara left."}).encode()
HUGE = 10_000_000
BAD_REQUESTS: dict[str, Sequence[bytes | float]] = {
    "not HTTP": [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"],
    "not JSON": [request_bytes(b"{'texts': 1")],
    "wrong type": [request_bytes(b'{"texts": {"a": 1}}')],
    "deep JSON": [request_bytes(b"[" * 200_000)],
    "huge body": [request_bytes(b"x" * HUGE)],
    "huge body announced": [request_bytes(b"x", length=10**12)],
    "huge headers": [b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000 + b"\r\n\r\n"],
    "slow headers": [b"POST /predict HTTP/1.1\r\nHost: local", 60.0],
    "slow body": [request_bytes(GOOD)[:-5], 60.0],
    "other host": [request_bytes(GOOD).replace(b"localhost", b"evil.example")],
}
"""Bytes to send, and seconds to wait for an answer before sending more."""


async def send_bad_request(port: int, pieces: Sequence[bytes | float]) -> int | None:
    """The status of the answer to a bad request; None if the connection was closed without an answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = asyncio.create_task(read_response_status(reader))
    try:
        for piece in pieces:
            if isinstance(piece, bytes):
                writer.write(piece)
                await writer.drain()
            else:
                await asyncio.wait([answer], timeout=piece)
        return await asyncio.wait_for(answer, 30)
    except (OSError, TimeoutError):
        return None
    finally:
        answer.cancel()
        writer.close()


async def read_response_status(reader: asyncio.StreamReader) -> int | None:
    try:
        return int((await reader.readuntil(b"\r\n")).split()[1])
    except (OSError, asyncio.IncompleteReadError):
        return None


async def cut_off_requests(port: int, times: int) -> None:
    """Requests of clients that vanish in the middle."""
    for number in range(times):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        whole = request_bytes(GOOD)
        writer.write(whole[: 1 + number * (len(whole) - 1) // times])
        with suppress(OSError):
            await writer.drain()
        writer.transport.abort()


async def misbehave(port: int, stop: asyncio.Event) -> dict[str, Counter[str]]:
    """Send every kind of bad request again and again; the statuses of the answers to each."""
    statuses: dict[str, Counter[str]] = {name: Counter() for name in BAD_REQUESTS}

    async def repeat(name: str) -> None:
        while not stop.is_set():
            statuses[name][str(await send_bad_request(port, BAD_REQUESTS[name]))] += 1
            await asyncio.sleep(0.3)

    async def cut_off() -> None:
        while not stop.is_set():
            await cut_off_requests(port, 10)
            await asyncio.sleep(0.3)

    await asyncio.gather(cut_off(), *(repeat(name) for name in BAD_REQUESTS))
    return statuses


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which this share of the values is.

    >>> percentile([3, 1, 2, 4], 0.5)
    2
    """
    return sorted(values)[max(0, round(share * len(values)) - 1)]


async def measure(server: Server, docs: Sequence[Document], clients: int, seconds: float) -> dict[str, Any]:
    """Run well-behaved and misbehaving clients for some time."""
    memory: list[float] = []
    stop = asyncio.Event()

    async def wait(_: Outcome) -> None:
        for _ in range(6):
            await asyncio.sleep(seconds / 6)
            memory.append(server.memory())

    before = server.cpu_seconds()
    bad = asyncio.create_task(misbehave(server.port, stop))
    outcome = await run_clients(server.port, docs, clients, wait)
    cpu_seconds = server.cpu_seconds() - before
    stop.set()
    statuses = await bad
    return {
        "requests": len(outcome.seconds),
        "requests_per_second": round(len(outcome.seconds) / seconds, 1),
        "requests_per_cpu_second": round(len(outcome.seconds) / cpu_seconds, 1),
        "p50_ms": round(1000 * percentile(outcome.seconds, 0.5), 1),
        "p99_ms": round(1000 * percentile(outcome.seconds, 0.99), 1),
        "max_ms": round(1000 * max(outcome.seconds), 1),
        "statuses": dict(outcome.statuses),
        "wrong": outcome.wrong,
        "lost": outcome.lost,
        "unconnected": outcome.unconnected,
        "memory_mb": [round(value) for value in memory],
        "bad_requests": {name: dict(counts) for name, counts in statuses.items()},
    }


def predict_all(run: Path, corpus: Path) -> list[Document]:
    """The documents of a corpus with the tagger's own predictions."""
    return list(load(run).predict([Document(doc.id, doc.text) for doc in read(corpus)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    docs = predict_all(args.run, args.corpus)
    with start_server(args.run, "--workers", str(args.workers), "--max-seconds", "10") as server:
        row = asyncio.run(measure(server, docs, args.clients, args.seconds))
        row["exit_status"] = server.stop()
        row["log"] = [line.strip() for line in server.log if "stopped" in line]
    load_average = os.getloadavg()[0]
    sys.stdout.write(json.dumps({"load_average": round(load_average, 1), **row}, indent=1) + "\n")


if __name__ == "__main__":
    main()
