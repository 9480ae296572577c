"""The service as real processes: nothing is lost on SIGTERM, a worker may die, and bad clients disturb nobody."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from benchmarks.serve_load import (
    BAD_REQUESTS,
    Outcome,
    Server,
    cut_off_requests,
    run_clients,
    send_bad_request,
    start_server,
)
from lacuner.data import Document
from lacuner.models.storage import load, save
from lacuner.serve import server as server_module
from lacuner.serve.security import listen
from lacuner.serve.server import TimedProtocol
from lacuner.serve.settings import ServiceSettings
from tests.demo_corpus import demo_corpus
from tests.models.test_tagger import new_tagger

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.integration
CLIENTS = 20


class EarlyWorker:
    """A worker that is started when SIGTERM arrives."""

    def __init__(self, *_: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    def wait_until_ready(self, stopping: list[int]) -> None:
        assert stopping == [signal.SIGTERM]

    def stop(self) -> None:
        pass

    def join(self, deadline: float) -> None:
        pass


def test_sigterm_while_workers_start_ends_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was once ignored until all processes were started."""
    monkeypatch.setattr(server_module, "_Worker", EarlyWorker)
    messages: list[str] = []
    server_module.run_workers(ServiceSettings(tmp_path), listen("127.0.0.1", 0), 1, messages.append)
    assert not messages


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("serve") / "model"
    save(new_tagger("span"), path)
    return path


@pytest.fixture(scope="module")
def docs(folder: Path) -> list[Document]:
    return list(load(folder).predict([Document(doc.id, doc.text) for doc in demo_corpus().test[:40]]))


async def wait_for_answers(outcome: Outcome, number: int) -> None:
    """Wait for this many more answers."""
    target = len(outcome.seconds) + number
    while len(outcome.seconds) < target:
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("workers", [1, 2])
def test_sigterm_under_load_loses_no_request(folder: Path, docs: list[Document], workers: int) -> None:
    """Every request that a worker accepted is answered, and every request that a client sent."""

    async def stop_under_load(server: Server) -> tuple[Outcome, int]:
        statuses: list[int] = []

        async def during(outcome: Outcome) -> None:
            await wait_for_answers(outcome, 3 * CLIENTS)
            statuses.append(await asyncio.to_thread(server.stop))

        return await run_clients(server.port, docs, CLIENTS, during), statuses[0]

    with start_server(folder, "--workers", str(workers)) as server:
        outcome, status = asyncio.run(stop_under_load(server))
    counts = re.findall(r"stopped: ([\d,]+) requests accepted, ([\d,]+) answered", "".join(server.log))
    accepted, answered = (
        sum(int(number.replace(",", "")) for number in column) for column in zip(*counts, strict=True)
    )
    assert status == 0 and len(counts) == workers
    assert accepted == answered == len(outcome.seconds) > 3 * CLIENTS
    assert (outcome.lost, outcome.wrong, dict(outcome.statuses)) == (0, 0, {200: answered})
    assert outcome.unconnected > 0, "the clients were still trying when the service ended"


def test_a_worker_dies_under_load_and_the_others_go_on(folder: Path, docs: list[Document]) -> None:
    """Requests of the killed worker are lost, others are not; it is replaced; without their parent, workers end."""

    async def kill_under_load(server: Server) -> Outcome:
        async def during(outcome: Outcome) -> None:
            await wait_for_answers(outcome, 3 * CLIENTS)
            victim = server.workers()[0]
            os.kill(victim, signal.SIGKILL)
            await wait_for_answers(outcome, 3 * CLIENTS)
            while victim in server.workers() or len(server.workers()) < 2:
                await asyncio.sleep(0.05)

        return await run_clients(server.port, docs, CLIENTS, during)

    with start_server(folder, "--workers", "2") as server:
        outcome = asyncio.run(kill_under_load(server))
        workers = server.workers()
        server.process.kill()
        deadline = time.monotonic() + 60
        while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not any(Path(f"/proc/{pid}").exists() for pid in workers)
    assert outcome.lost <= CLIENTS and outcome.wrong == 0 and set(outcome.statuses) == {200}


def test_bad_clients_get_4xx_and_disturb_nobody(folder: Path, docs: list[Document]) -> None:
    names = [name for name in BAD_REQUESTS if name != "slow headers"]  # its limit is ten seconds

    async def misbehave(server: Server) -> tuple[Outcome, dict[str, int | None]]:
        statuses: dict[str, int | None] = {}

        async def during(outcome: Outcome) -> None:
            await cut_off_requests(server.port, 40)
            answers = await asyncio.gather(*(send_bad_request(server.port, BAD_REQUESTS[name]) for name in names))
            statuses.update(zip(names, answers, strict=True))
            await wait_for_answers(outcome, CLIENTS)

        return await run_clients(server.port, docs, 4, during), statuses

    with start_server(folder, "--max-seconds", "2") as server:
        outcome, statuses = asyncio.run(misbehave(server))
        assert server.stop() == 0
    assert statuses == {
        "not HTTP": 400, "not JSON": 422, "wrong type": 422, "deep JSON": 400, "huge body": 413,
        "huge body announced": 413, "huge headers": 431, "slow body": 408, "other host": 400,
    }  # fmt: skip
    assert (outcome.lost, outcome.wrong, outcome.unconnected, set(outcome.statuses)) == (0, 0, 0, {200})
    assert "Traceback" not in "".join(server.log)


def test_a_model_that_cannot_be_loaded_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError) as failed, start_server(tmp_path / "nowhere", "--workers", "2"):
        pass
    assert (
        str(failed.value).splitlines()[-1]
        == f"lacuner: {tmp_path / 'nowhere'}: there is no such folder: a run or model is needed"
    )


def test_headers_have_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a request gets 408, also as the second one of a connection; a connection without one is closed."""
    monkeypatch.setattr(server_module, "HEADER_SECONDS", 0.2)
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]

    async def send(*pieces: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0.1)
        answer = await asyncio.wait_for(reader.read(), 20)
        writer.close()
        return answer

    async def scenario() -> list[bytes]:
        config = uvicorn.Config(hello, interface="asgi3", http=TimedProtocol, lifespan="off", log_level="error")
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve(sockets=[listener]))
        whole, half = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"GET / HT"
        answers = await asyncio.gather(send(half), send(), send(whole, half), send(half, whole[len(half) :], half))
        server.should_exit = True
        await task
        return answers

    first, empty, second, slow_but_whole = asyncio.run(scenario())
    assert first.startswith(b"HTTP/1.1 408") and empty == b""
    for answer in (second, slow_but_whole):
        assert answer.startswith(b"HTTP/1.1 200") and answer.count(b"HTTP/1.1 408") == 1


async def hello(_: Any, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"hi"})


def test_the_demo_page_in_a_browser(folder: Path, docs: list[Document], browser: Browser) -> None:
    """A browser sends the form, accepts the answer to it, and applies the style that the policy allows by its hash."""
    doc = next(doc for doc in docs if doc.spans)
    with start_server(folder) as server:
        tab = browser.new_page()
        complaints: list[str] = []
        tab.on("console", lambda message: complaints.append(message.text))
        tab.goto(f"http://127.0.0.1:{server.port}/")
        tab.fill("textarea", doc.text)
        tab.click("button")
        marks = tab.locator("mark")
        marks.first.wait_for()
        assert marks.count() == len(doc.spans) and tab.input_value("textarea") == doc.text
        assert marks.first.evaluate("mark => getComputedStyle(mark).borderRadius") != "0px"
        tab.close()
    assert complaints == []
