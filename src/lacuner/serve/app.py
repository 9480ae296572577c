"""The HTTP service: `POST /predict`, `/health`, `/metrics`, the OpenAPI schema, and a page to try it."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from lacuner import __version__
from lacuner.data import Document
from lacuner.models.storage import AnyTagger
from lacuner.serve.batching import BatchQueue, OverloadedError
from lacuner.serve.metrics import Metrics
from lacuner.serve.page import demo_headers, render_demo
from lacuner.serve.security import Access, App, Message, RefusedError, guard
from lacuner.serve.settings import ServiceSettings

MAX_TEXTS = 1_000
"""Texts per request, at most."""
MAX_REQUESTS = 512
"""Requests that a worker reads or answers at the same time, at most."""


def _refuse_surrogates(text: str) -> str:
    text.encode()  # a UnicodeEncodeError is a ValueError, so it becomes a validation error
    return text


Text = Annotated[str, AfterValidator(_refuse_surrogates)]


class PredictRequest(BaseModel):
    """Texts to tag."""

    model_config = ConfigDict(extra="forbid", strict=True)

    texts: Annotated[
        Text | Annotated[list[Text], Field(max_length=MAX_TEXTS)], Field(description="A text, or a list of texts.")
    ]
    threshold: Annotated[
        float | None,
        Field(gt=0, lt=1, description="Minimum probability of a predicted span; null: the threshold of the service."),
    ] = None


class SpanAnswer(BaseModel):
    """An entity: characters `start` to `end` of the text (Unicode code points, half-open)."""

    start: int
    end: int
    label: str
    text: str
    score: Annotated[float | None, Field(description="Probability; null for a gazetteer match without one.")]
    source: Annotated[str | None, Field(description="`gazetteer`, or null for the model.")]


class DocumentAnswer(BaseModel):
    spans: list[SpanAnswer]


class PredictAnswer(BaseModel):
    """One document per text, in the order of the request."""

    documents: list[DocumentAnswer]


class HealthAnswer(BaseModel):
    status: str
    labels: list[str]
    version: str


class ErrorAnswer(BaseModel):
    error: Annotated[str, Field(description="One sentence.")]


_PROBLEMS = {
    400: "The request is malformed, or names another host.",
    403: "The request comes from a web page of another site.",
    408: "The request did not arrive in time.",
    413: "The request has too many bytes.",
    422: "The request does not fit the schema.",
    431: "The headers have too many bytes.",
    429: "Too many requests wait: try again after the seconds in `Retry-After`.",
    503: "The service is stopping, or the prediction took too long.",
}
_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer, "description": text} for status, text in _PROBLEMS.items()
}


class Service:
    """A tagger behind HTTP. `app` is the ASGI application.

    >>> from pathlib import Path
    >>> from lacuner.models.lookup import LookupTagger
    >>> from starlette.testclient import TestClient
    >>> service = Service(LookupTagger({"Halden": "PLACE"}), ServiceSettings(Path("run")))
    >>> with TestClient(service.app, "http://localhost") as client:
    ...     [document] = client.post("/predict", json={"texts": "She left Halden."}).json()["documents"]
    >>> [(span["text"], span["label"]) for span in document["spans"]]
    [('Halden', 'PLACE')]
    """

    def __init__(self, tagger: AnyTagger, settings: ServiceSettings) -> None:
        self.draining = False
        """Whether the service is about to stop: it still answers, and asks clients to connect elsewhere."""
        self.accepted = self.answered = 0
        """Requests whose headers were read, and requests whose answer was sent."""
        self.settings = settings
        self.labels = _labels(tagger)
        self.metrics = Metrics()
        self.queue = BatchQueue(tagger, settings.max_queue, self._record_batch)
        self._tagger = tagger
        self._unread = 0
        access = Access(
            host=settings.host,
            open_paths=frozenset({"/"}),
            max_body=settings.max_bytes,
            max_seconds=settings.max_seconds,
            max_requests=MAX_REQUESTS,
            names=settings.names,
            headers=demo_headers(),
        )
        self._guarded = guard(_build_api(self), access)
        self.app: App = self._observe

    async def _observe(self, scope: Any, receive: Any, send: Any) -> None:
        """Count and time every request, also those that the guard refuses."""
        if scope["type"] != "http":
            await self._guarded(scope, receive, send)
            return
        start, path, status = time.perf_counter(), _known_path(scope["path"]), 500
        self.accepted += 1

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if self.draining:
                    message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                self.answered += 1

        try:
            await self._guarded(scope, receive, send_and_note)
        finally:
            self.metrics.requests.labels(path, status).inc()
            self.metrics.seconds.labels(path).observe(time.perf_counter() - start)

    def _record_batch(self, texts: int, seconds: float) -> None:
        self.metrics.batch_texts.observe(texts)
        self.metrics.batch_seconds.observe(seconds)
        self.metrics.queue.set(self.queue.characters)  # for scrapes that another worker answers
        unread, self._unread = self._tagger.words_unread - self._unread, self._tagger.words_unread
        self.metrics.words_unread.inc(unread)

    async def predict(self, texts: Sequence[str], threshold: float | None) -> list[Document]:
        """Predict through the queue, within the time limit."""
        threshold = self.settings.threshold if threshold is None else threshold
        try:
            async with asyncio.timeout(self.settings.max_seconds):
                docs = await self.queue.predict(texts, threshold)
        except OverloadedError as error:
            raise RefusedError(429, "too many requests wait: try again later", error.retry_after) from error
        except TimeoutError:
            problem = f"the prediction took longer than {self.settings.max_seconds:g} seconds: send less text"
            raise RefusedError(503, problem, retry_after=1) from None
        self.metrics.texts.inc(len(texts))
        self.metrics.characters.inc(sum(map(len, texts)))
        for label, times in Counter(span.label for doc in docs for span in doc.spans).items():
            self.metrics.entities.labels(label).inc(times)
        return docs


def _labels(tagger: AnyTagger) -> list[str]:
    """The labels of the model and of its gazetteer."""
    gazetteer = getattr(tagger, "gazetteer", None)
    return sorted({*tagger.labels, *(() if gazetteer is None else gazetteer.labels)})


def _known_path(path: str) -> str:
    """The path, if the service has it: a client cannot fill the metrics with paths."""
    return path if path in ("/", "/predict", "/health", "/metrics", "/openapi.json") else "other"


def _build_api(service: Service) -> App:
    @asynccontextmanager
    async def run_queue(_: FastAPI) -> AsyncIterator[None]:
        service.queue.start()
        yield
        await service.queue.close()

    # the interactive pages of FastAPI load scripts from other sites: the schema and our own page do without
    api = FastAPI(
        title="lacuner",
        version=__version__,
        description="Named-entity recognition: texts in, entities with offsets, labels and scores out.",
        docs_url=None,
        redoc_url=None,
        lifespan=run_queue,
    )
    api.add_exception_handler(HTTPException, _explain_http_error)
    api.add_exception_handler(RequestValidationError, _explain_validation_error)
    api.add_exception_handler(RefusedError, _explain_refusal)

    @api.post("/predict", response_model=PredictAnswer, responses=_ERRORS)
    async def predict(request: PredictRequest) -> Response:
        """Tag the entities of one or many texts."""
        texts = [request.texts] if isinstance(request.texts, str) else request.texts
        docs = await service.predict(texts, request.threshold)
        # not through the model of the answer, which would validate every span again
        return Response(json.dumps({"documents": [_answer(doc) for doc in docs]}), media_type="application/json")

    @api.get("/health", response_model=HealthAnswer, responses={503: {"model": HealthAnswer}})
    async def health() -> JSONResponse:
        """Whether the service takes requests: 200, or 503 while it stops."""
        status = "stopping" if service.draining else "ok" if service.queue.is_alive else "failed"
        facts = {"status": status, "labels": service.labels, "version": __version__}
        return JSONResponse(facts, 200 if status == "ok" else 503)

    @api.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def metrics() -> Response:
        """Metrics in the text format of Prometheus."""
        service.metrics.queue.set(service.queue.characters)
        text = await asyncio.to_thread(service.metrics.render)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    @api.get("/", include_in_schema=False)
    async def page() -> HTMLResponse:
        return HTMLResponse(render_demo(_title(service), service.labels))

    @api.post("/", include_in_schema=False)
    async def tag_on_page(request: Request) -> HTMLResponse:
        return await _answer_form(service, await request.body())

    return api


def _title(service: Service) -> str:
    return service.settings.run.resolve().name


def _answer(doc: Document) -> dict[str, Any]:
    return {
        "spans": [
            {
                **span._asdict(),
                "text": doc.text[span.start : span.end],
                "score": None if span.score is None else round(span.score, 6),
            }
            for span in doc.spans
        ]
    }


async def _answer_form(service: Service, body: bytes) -> HTMLResponse:
    """The demo page with the entities of a submitted text."""
    text = written = ""
    render = partial(render_demo, _title(service), service.labels)
    try:
        fields = parse_qs(body.decode(), keep_blank_values=True, strict_parsing=True, errors="strict", max_num_fields=2)
        [text], [written] = fields["text"], fields.get("threshold", [""])
        threshold = float(written) if written.strip() else None
        if threshold is not None and not 0 < threshold < 1:
            raise ValueError
    except (ValueError, KeyError):
        problem = "This is not a text with a threshold between 0 and 1."
        return HTMLResponse(render(text=text, threshold=written, problem=problem), 422)
    text = text.replace("\r\n", "\n")  # browsers send line breaks of a form as CRLF
    [doc] = await service.predict([text], threshold)
    return HTMLResponse(await asyncio.to_thread(render, doc, threshold=written))


async def _explain_http_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    problem = {404: "there is no such path", 405: "this path does not have this method"}.get(
        error.status_code, HTTPStatus(error.status_code).phrase.lower()
    )
    return JSONResponse({"error": problem}, error.status_code, headers=error.headers)


async def _explain_refusal(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RefusedError)
    headers = {} if error.retry_after is None else {"retry-after": str(error.retry_after)}
    return JSONResponse({"error": error.problem}, error.status, headers=headers)


async def _explain_validation_error(_: Request, error: Exception) -> JSONResponse:
    """One sentence without the input, which may be large or private."""
    assert isinstance(error, RequestValidationError)
    return JSONResponse({"error": _explain(error.errors()[0])}, 422)


def _explain(error: Mapping[str, Any]) -> str:
    """What is wrong with the body of a request, from the first error that pydantic found."""
    field = error["loc"][1] if len(error["loc"]) > 1 else None
    if error["type"] == "json_invalid":
        return "the body is not JSON"
    if error["type"] == "extra_forbidden":
        return f"there is no field {ascii(field)[:40]}: use texts and threshold"
    if field == "texts":
        return f"texts: a text or a list of at most {MAX_TEXTS:,} texts is expected, without halves of surrogate pairs"
    if field == "threshold":
        return "threshold: a number between 0 and 1 is expected"
    return 'send an object such as {"texts": "..."} with the header Content-Type: application/json'
