"""T10: a local server answers only its own page, with the token, and never more than its limits."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Mapping
from typing import Any

import pytest

from lacuner.errors import ConfigError
from lacuner.serve.security import HEADERS, Access, guard, is_loopback, listen, new_token

TOKEN = "t0ken"
ACCESS = Access(token=TOKEN, open_paths=frozenset({"/"}), max_body=100)
OWN = {"host": "127.0.0.1:8000", "authorization": f"Bearer {TOKEN}"}


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """An application that returns the body of the request, and tries to weaken a header."""
    body = (await receive())["body"]
    headers = [(b"Content-Security-Policy", b"default-src *"), (b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def request(
    headers: Mapping[str, str] | list[tuple[str, str]], path: str = "/api", chunks: tuple[bytes, ...] = (b"",),
    access: Access = ACCESS,
) -> tuple[int, bytes, dict[str, str]]:  # fmt: skip
    """Send one request; status, body and headers of the response."""
    pairs = list(headers.items()) if isinstance(headers, Mapping) else headers
    scope = {"type": "http", "method": "POST", "path": path}
    scope["headers"] = [(name.encode(), value.encode("latin-1")) for name, value in pairs]  # type: ignore[assignment]
    incoming = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    incoming[-1]["more_body"] = False
    sent: list[Any] = []

    async def receive() -> Any:
        return incoming.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(guard(echo, access)(scope, receive, send))
    start, *pieces = sent
    body = b"".join(piece["body"] for piece in pieces)
    return start["status"], body, {name.decode(): value.decode() for name, value in start["headers"]}


def test_own_requests_are_answered() -> None:
    assert request(OWN, chunks=(b"one ", b"two"))[:2] == (200, b"one two")
    assert request({**OWN, "origin": "http://127.0.0.1:8000", "sec-fetch-site": "same-origin"})[0] == 200
    for host in ("localhost:8000", "[::1]:8000", "127.0.0.1"):
        assert request({**OWN, "host": host})[0] == 200


@pytest.mark.parametrize(
    "host",
    ["", "evil.example", "evil.example:8000", "127.0.0.1.evil.example", "0.0.0.0:8000", "[::1].evil", "10.0.0.1"],
)
def test_other_hosts_are_refused(host: str) -> None:
    """DNS rebinding: the name of another site resolves to 127.0.0.1."""
    assert request({**OWN, "host": host})[0] == 400


@pytest.mark.parametrize(
    "origin", ["null", "https://evil.example", "http://127.0.0.1:9000", "http://localhost:8000", "file://", ""]
)
def test_other_origins_are_refused(origin: str) -> None:
    assert request({**OWN, "origin": origin})[0] == 403
    assert request({**OWN, "origin": origin}, path="/")[0] == 403


def test_a_form_of_an_own_page_is_answered() -> None:
    """Browsers send the origin `null` for it, because the page sends no referrer."""
    form = {"host": "localhost:8000", "origin": "null"}
    access = Access(open_paths=frozenset({"/"}))
    assert request({**form, "sec-fetch-site": "same-origin"}, path="/", access=access)[0] == 200
    for site in ("cross-site", "same-site", "none"):
        assert request({**form, "sec-fetch-site": site}, path="/", access=access)[0] == 403


def test_requests_of_other_sites_are_refused() -> None:
    for site in ("cross-site", "same-site"):
        assert request({**OWN, "sec-fetch-site": site})[0] == 403
        assert request({**OWN, "sec-fetch-site": site}, path="/")[0] == 200, (
            "a link to the page is fine: it has no data"
        )


@pytest.mark.parametrize(
    "token", ["", TOKEN, f"Basic {TOKEN}", "Bearer", "Bearer t0ke", f"Bearer {TOKEN} ", "Bearer \xe9"]
)
def test_a_wrong_token_is_refused(token: str) -> None:
    assert request({**OWN, "authorization": token})[0] == 401


def test_only_open_paths_need_no_token() -> None:
    host = {"host": OWN["host"]}
    assert request(host, path="/")[0] == 200
    assert [request(host, path=path)[0] for path in ("//", "/.", "/x", "/api")] == [401] * 4
    assert request(host, access=Access())[0] == 200, "a server without token"


def test_sizes_are_limited() -> None:
    assert request(OWN, chunks=(b"x" * 100,))[0] == 200
    assert request(OWN, chunks=(b"x" * 101,))[0] == 413
    assert request(OWN, chunks=(b"x" * 60, b"x" * 60))[0] == 413, "without content-length"
    assert request({**OWN, "content-length": "101"})[0] == 413
    assert request({**OWN, "content-length": "-1"})[0] == 400


def test_headers_are_limited() -> None:
    assert request({**OWN, "x": "y" * 16_000})[0] == 200
    assert request({**OWN, "x": "y" * 17_000})[0] == 431


def test_headers_that_decide_occur_once() -> None:
    assert request([*OWN.items(), ("Host", "evil.example")])[0] == 400
    assert request([*OWN.items(), ("Authorization", "Bearer x")])[0] == 400


def test_every_response_has_the_headers() -> None:
    for headers in (OWN, {"host": "evil.example"}):
        _, body, sent = request(headers)
        assert {name: sent[name] for name in HEADERS} == HEADERS
        assert "Content-Security-Policy" not in sent, "an application cannot weaken it"
        assert not body or json.loads(body)["error"]
    policy = HEADERS["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';") and "unsafe" not in policy


def test_websockets_are_ignored() -> None:
    asyncio.run(guard(echo, ACCESS)({"type": "websocket"}, None, None))  # type: ignore[arg-type]


def test_listening() -> None:
    with listen("127.0.0.1", 0) as first:
        address, port = first.getsockname()[:2]
        assert address == "127.0.0.1"
        with pytest.raises(ConfigError, match=f"port {port}: Address already in use; choose another port with --port"):
            listen("127.0.0.1", port)
    for host in ("0.0.0.0", "::", "192.168.1.2", "example.org"):
        with pytest.raises(ConfigError, match="--allow-remote"):
            listen(host, 0)
    with listen("0.0.0.0", 0, allow_remote=True) as remote:
        assert remote.family == socket.AF_INET


def test_a_remote_server_answers_to_its_address() -> None:
    named = Access("192.168.1.2", TOKEN)
    assert request({**OWN, "host": "192.168.1.2:8000"}, access=named)[0] == 200
    assert request({**OWN, "host": "evil.example"}, access=named)[0] == 400
    anywhere = Access("0.0.0.0", TOKEN)
    assert request({**OWN, "host": "my-laptop:8000"}, access=anywhere)[0] == 200
    assert request({"host": "my-laptop:8000"}, access=anywhere)[0] == 401


def test_tokens_differ() -> None:
    assert len({new_token() for _ in range(100)}) == 100
    assert not is_loopback("127.0.0.1.evil.example") and is_loopback("127.1.2.3")


def test_a_body_that_does_not_arrive_is_refused() -> None:
    """A client that stops sending gets an answer, and nobody waits for the rest of its request for long."""
    sent: list[Any] = []

    async def receive() -> Any:
        if not sent:
            await asyncio.sleep(30)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "path": "/api", "headers": [(b"host", b"localhost")]}
    asyncio.run(guard(echo, Access(max_seconds=0.01))(scope, receive, send))
    assert sent[0]["status"] == 408 and b"within 0.01 seconds" in sent[1]["body"]


def test_too_many_requests_at_once_are_refused() -> None:
    """While one request is answered, the second gets 429 with a time to try again; afterwards there is room."""
    gate = asyncio.Event()
    statuses: list[tuple[int, bool]] = []

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await gate.wait()
        await echo(scope, receive, send)

    guarded = guard(slow, Access(max_requests=1))

    async def ask() -> None:
        async def receive() -> Any:
            return {"type": "http.request", "body": b""}

        async def send(message: Any) -> None:
            if "status" in message:
                statuses.append((message["status"], (b"retry-after", b"1") in message["headers"]))

        await guarded({"type": "http", "path": "/", "headers": [(b"host", b"localhost")]}, receive, send)

    async def ask_three_times() -> None:
        first = asyncio.create_task(ask())
        await asyncio.sleep(0)
        await ask()
        gate.set()
        await first
        await ask()

    asyncio.run(ask_three_times())
    assert statuses == [(429, True), (200, False), (200, False)]


@pytest.mark.parametrize(
    ("host", "status"),
    [("10.1.2.3:8000", 200), ("localhost", 200), ("[fe80::1]:8000", 200), ("ner.example:8000", 200), ("evil", 400)],
)
def test_without_a_token_any_address_has_only_the_names_it_was_given(host: str, status: int) -> None:
    """DNS rebinding needs a name; an address in the Host header cannot come from it."""
    access = Access(host="0.0.0.0", names=frozenset({"ner.example"}))
    assert request({"host": host}, access=access)[0] == status
