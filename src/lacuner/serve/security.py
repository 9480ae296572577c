"""Protect a local web server: where it listens, which requests it answers, and how much they may send.

The threats: other machines (the server listens on loopback only), web pages that are open in the same browser (Host and
Origin are checked, also against DNS rebinding, and a token is needed), text that tries to become code (the Content
Security Policy allows no inline code and no markup from strings), and requests that are too large.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import re
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from lacuner.errors import ConfigError

if TYPE_CHECKING:
    import uvicorn

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
"""An ASGI application, such as those of Starlette and FastAPI."""

MAX_HEADERS = 16_384
"""Bytes that the address and the headers of a request may have."""
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Headers of every response."""
LINGER_BYTES = 32_000_000
LINGER_SECONDS = 5.0
"""How much of a refused request is still read, and how long: a connection that is closed earlier loses the answer."""


@dataclass(frozen=True)
class Access:
    """Which requests a server answers."""

    host: str = "127.0.0.1"
    """The address that the server listens on."""
    token: str | None = None
    """What requests must present as `Authorization: Bearer TOKEN`; None: no token is needed."""
    open_paths: frozenset[str] = frozenset()
    """Paths that need no token, because they contain no data: the files of a page."""
    max_body: int = 1_000_000
    """Bytes that the body of a request may have."""
    max_seconds: float | None = None
    """Time in which the body of a request must arrive; None: any."""
    max_requests: int | None = None
    """Requests that are answered at the same time; None: any number."""
    names: frozenset[str] = frozenset()
    """Host names that the server answers to, beside its address and the names of loopback."""
    headers: Mapping[str, str] = field(default_factory=lambda: HEADERS)
    """Headers of every response."""


class RefusedError(Exception):
    """A request that is not answered: the HTTP status, one sentence, and the seconds after which to try again."""

    def __init__(self, status: int, problem: str, retry_after: int | None = None) -> None:
        self.status = status
        self.problem = problem
        self.retry_after = retry_after
        super().__init__(problem)


def require_extra() -> None:
    """Raise an error if the web framework is not installed.

    >>> require_extra()
    """
    for library in ("starlette", "uvicorn", "fastapi", "prometheus_client"):
        if find_spec(library) is None:
            raise ConfigError(f"{library} is not installed: pip install 'lacuner[serve]'")


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to the address.

    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def new_token() -> str:
    """A token that cannot be guessed.

    >>> len(new_token())
    43
    """
    return secrets.token_urlsafe(32)


def listen(host: str, port: int, *, allow_remote: bool = False) -> socket.socket:
    """A socket that listens on the address; port 0 takes a free port.

    >>> listen("0.0.0.0", 0)
    Traceback (most recent call last):
    lacuner.errors.ConfigError: --host 0.0.0.0 lets other machines connect: add --allow-remote if you want that
    """
    if not is_loopback(host) and not allow_remote:
        raise ConfigError(f"--host {host} lets other machines connect: add --allow-remote if you want that")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise ConfigError(f"--host {host} is not an address of this machine: {error.strerror}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        listener.close()
        problem = f"cannot listen on {host}, port {port}: {error.strerror}"
        raise ConfigError(f"{problem}; choose another port with --port") from error
    return listener


def new_server(app: App) -> uvicorn.Server:
    """A server for an application; `run(sockets=[...])` answers requests until `should_exit` is set."""
    import uvicorn

    config = uvicorn.Config(
        app,
        http="h11",  # the one that limits the size of headers
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=MAX_HEADERS,
        limit_concurrency=100,
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)


def run_server(app: App, listener: socket.socket) -> None:
    """Answer requests until the process is interrupted."""
    new_server(app).run(sockets=[listener])


def guard(app: App, access: Access) -> App:
    """Wrap an application so that it sees only requests that `access` allows.

    Works as Starlette's and FastAPI's middleware, too: `app.add_middleware(guard, access=access)`.

    >>> import asyncio
    >>> async def send(message):
    ...     print(message.get("status", message.get("body")))
    >>> headers = [(b"host", b"evil.example:80")]
    >>> request = {"type": "http", "method": "GET", "path": "/", "headers": headers}
    >>> async def receive():
    ...     return {"type": "http.request", "body": b""}
    >>> asyncio.run(guard(None, Access())(request, receive, send))
    400
    b'{"error": "this server does not answer to this host name"}'
    b''
    """
    running = 0

    async def guarded(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        nonlocal running
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = access.headers
                sent = [(name, value) for name, value in message["headers"] if name.lower().decode() not in own]
                message["headers"] = sent + [(name.encode(), value.encode()) for name, value in own.items()]
            await send(message)

        body_reader = _BodyReader(receive)
        running += 1
        try:
            headers = _single_headers(scope["headers"])
            check_request(scope["path"], headers, access)
            if access.max_requests is not None and running > access.max_requests:
                raise RefusedError(429, "the server has too many requests: try again later", retry_after=1)
            body = await body_reader.read(headers, access)
            await app(scope, _replay(body, receive), send_with_headers)
        except RefusedError as refusal:
            await _send_refusal(refusal, body_reader, send_with_headers)
        finally:
            running -= 1

    return guarded


def check_request(path: str, headers: Mapping[str, str], access: Access) -> None:
    """Raise `RefusedError` unless host, origin and token are right.

    >>> check_request("/", {"host": "localhost:8000", "origin": "https://evil.example"}, Access())
    Traceback (most recent call last):
    lacuner.serve.security.RefusedError: this request comes from another web page
    """
    host = headers.get("host", "")
    if not _is_own_name(_without_port(host), access):
        raise RefusedError(400, "this server does not answer to this host name")
    own_origins = [f"http://{host}", f"https://{host}"]
    if headers.get("sec-fetch-site") == "same-origin":  # no page can set this header; it is the browser's own word
        own_origins.append("null")  # which browsers send for forms of pages that send no referrer
    if "origin" in headers and headers["origin"] not in own_origins:
        raise RefusedError(403, "this request comes from another web page")
    if path in access.open_paths:
        return
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        raise RefusedError(403, "this request comes from another web page")
    scheme, _, presented = headers.get("authorization", "").partition(" ")
    if access.token is not None and (
        scheme.lower() != "bearer" or not hmac.compare_digest(presented.encode(), access.token.encode())
    ):
        raise RefusedError(
            401, "the token is missing or wrong: open the address that the server printed when it started"
        )


def _is_own_name(name: str, access: Access) -> bool:
    """Whether a Host header names this server. Listening on a particular address, it has that name only."""
    if is_loopback(name) or name in access.names:
        return True
    if not _is_any_address(access.host):
        return name == access.host and not is_loopback(access.host)
    # a token protects a server with any address; without one it has no names, because DNS rebinding needs a name
    return access.token is not None or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_any_address(host: str) -> bool:
    return _is_address(host) and ipaddress.ip_address(host).is_unspecified


def _without_port(host: str) -> str:
    match = re.fullmatch(r"(?:\[([^\]]*)\]|([^:]*))(?::[0-9]+)?", host)
    return (match[1] or match[2]).lower() if match else ""


def _single_headers(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by name; those that decide about access may occur only once."""
    if sum(len(name) + len(value) for name, value in headers) > MAX_HEADERS:  # uvicorn limits only what comes in pieces
        raise RefusedError(431, f"the headers of a request may have at most {MAX_HEADERS:,} bytes")
    single: dict[str, str] = {}
    for name, value in headers:
        key = name.decode("latin-1").lower()
        if key in single and key in ("host", "origin", "authorization", "content-length", "sec-fetch-site"):
            raise RefusedError(400, f"the header {key} occurs twice")
        single[key] = value.decode("latin-1")
    return single


class _BodyReader:
    """Reads the body of a request, within limits."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._complete = False

    async def read(self, headers: Mapping[str, str], access: Access) -> bytes:
        length, limit = headers.get("content-length", "0"), access.max_body
        if not re.fullmatch("[0-9]{1,20}", length):
            raise RefusedError(400, "the header content-length is not a number")
        if int(length) > limit:
            raise RefusedError(413, f"a request may have at most {limit:,} bytes")
        try:
            return await asyncio.wait_for(self._read(limit), access.max_seconds)
        except TimeoutError:
            raise RefusedError(408, f"the request did not arrive within {access.max_seconds:g} seconds") from None

    async def _read(self, limit: int) -> bytes:
        body = bytearray()
        while not self._complete:
            body += await self._next_piece()
            if len(body) > limit:
                raise RefusedError(413, f"a request may have at most {limit:,} bytes")
        return bytes(body)

    async def _next_piece(self) -> bytes:
        message = await self._receive()
        self._complete = not message.get("more_body", False)
        if message["type"] == "http.disconnect":
            raise RefusedError(400, "the connection was closed")
        piece: bytes = message.get("body", b"")
        return piece

    async def discard(self) -> None:
        """Read what is left of the body, up to a limit."""
        size = 0
        with suppress(TimeoutError, RefusedError):
            async with asyncio.timeout(LINGER_SECONDS):
                while not self._complete and size < LINGER_BYTES:
                    size += len(await self._next_piece())


def _replay(body: bytes, receive: Receive) -> Receive:
    """Give an application the body that was read, and after it what the server says."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay


async def _send_refusal(refusal: RefusedError, body_reader: _BodyReader, send: Send) -> None:
    body = json.dumps({"error": refusal.problem}).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    headers.append((b"content-length", str(len(body)).encode()))
    if refusal.retry_after is not None:
        headers.append((b"retry-after", str(refusal.retry_after).encode()))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": True})
    await body_reader.discard()
    await send({"type": "http.response.body", "body": b""})
