"""The HTTP service: the same entities as `predict`, one sentence for every mistake, limits, metrics, the demo page."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from lacuner.annotate.gazetteer.entries import Entry
from lacuner.data import Document
from lacuner.models.gazetteer import TaggerGazetteer
from lacuner.models.lookup import LookupTagger
from lacuner.models.storage import AnyTagger
from lacuner.serve.app import MAX_TEXTS, ErrorAnswer, PredictAnswer, Service
from lacuner.serve.page import render_demo
from lacuner.serve.settings import ServiceSettings
from tests.hostile.test_html import HOSTILE, PLAIN, Page
from tests.models.test_tagger import new_tagger, words
from tests.strategies import texts as any_text

NAMES = {"Halden": "PLACE", "Mara Teel": "PERSON"}


def client_of(tagger: AnyTagger | None = None, **settings: Any) -> TestClient:
    service = Service(tagger or LookupTagger(NAMES), ServiceSettings(Path("run"), **settings))
    return TestClient(service.app, "http://localhost:8000")


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with client_of() as client:
        yield client


def spans(answer: dict[str, Any]) -> list[list[tuple[int, int, str]]]:
    return [[(span["start"], span["end"], span["label"]) for span in doc["spans"]] for doc in answer["documents"]]


def test_one_text_and_many(client: TestClient) -> None:
    one = client.post("/predict", json={"texts": "Mara Teel left Halden."})
    assert one.status_code == 200 and spans(one.json()) == [[(0, 9, "PERSON"), (15, 21, "PLACE")]]
    assert one.json()["documents"][0]["spans"][1] == {
        "start": 15, "end": 21, "label": "PLACE", "text": "Halden", "score": 1.0, "source": None
    }  # fmt: skip
    many = client.post("/predict", json={"texts": ["Halden", "", "nobody"], "threshold": None})
    assert spans(many.json()) == [[(0, 6, "PLACE")], [], []]
    assert client.post("/predict", json={"texts": []}).json() == {"documents": []}


@pytest.mark.parametrize("kind", ["token", "span"])
def test_the_service_equals_the_tagger(kind: str) -> None:
    """With a gazetteer, and with thresholds of the service and of the request."""
    tagger = new_tagger(kind)
    tagger.gazetteer = TaggerGazetteer([Entry("abc", "DRUG")])
    texts = [" ".join([*words(9, seed), "abc"]) for seed in range(20)]
    docs = [Document(str(number), text) for number, text in enumerate(texts)]
    with client_of(tagger, threshold=0.6) as client:
        for threshold in (None, 0.3, 0.9):
            expected = [doc.spans for doc in tagger.predict(docs, threshold=threshold or 0.6)]
            answer = client.post("/predict", json={"texts": texts, "threshold": threshold}).json()
            assert spans(answer) == [[span.key for span in each] for each in expected]
            assert any(span["source"] == "gazetteer" for doc in answer["documents"] for span in doc["spans"])
    with client_of(tagger) as client:
        own = [doc.spans for doc in tagger.predict(docs)]
        assert spans(client.post("/predict", json={"texts": texts}).json()) == [[span.key for span in s] for s in own]
        assert client.get("/health").json()["labels"] == ["DRUG", "LOC", "PER"]


@given(text=any_text)
def test_offsets_are_exact_for_any_text(client: TestClient, text: str) -> None:
    answer = client.post("/predict", json={"texts": [f"{text} Halden {text}"]}).json()
    [document] = answer["documents"]
    assert document["spans"] and all(
        f"{text} Halden {text}"[span["start"] : span["end"]] == span["text"] == "Halden" for span in document["spans"]
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=5), values, max_size=3),
    max_leaves=6,
)
bodies = st.fixed_dictionaries(
    {"texts": json_values | st.text(max_size=9) | st.lists(st.text(max_size=9), max_size=3)},
    optional={"threshold": st.none() | st.floats(0, 1) | json_values, "other": json_values},
)


@given(body=bodies | json_values)
def test_any_json_is_answered_as_the_schema_says(client: TestClient, body: Any) -> None:
    answer = client.post("/predict", content=json.dumps(body), headers={"content-type": "application/json"})
    threshold = body.get("threshold") if isinstance(body, dict) else None
    texts = body.get("texts") if isinstance(body, dict) else None
    valid = (
        isinstance(body, dict)
        and set(body) <= {"texts", "threshold"}
        and all(is_unicode(text) for text in (texts if isinstance(texts, list) else [texts]))
        and (threshold is None or (type(threshold) is float and 0 < threshold < 1))
    )
    assert answer.status_code == (200 if valid else 422), body
    model = PredictAnswer if valid else ErrorAnswer
    assert model.model_validate_json(answer.content, strict=True, extra="forbid")


def is_unicode(value: object) -> bool:
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 422, "send an object"),
        (b"[1]", 422, "send an object"),
        (b"{", 422, "the body is not JSON"),
        (b'{"texts": 7}', 422, "texts: a text or a list"),
        (b'{"texts": ["a", null]}', 422, "texts: a text or a list"),
        (b'{"texts": "\\ud800"}', 422, "without halves of surrogate pairs"),
        (json.dumps({"texts": ["a"] * (MAX_TEXTS + 1)}).encode(), 422, "at most 1,000 texts"),
        (b'{"texts": "a", "treshold": 1}', 422, "there is no field 'treshold'"),
        (b'{"texts": "a", "threshold": NaN}', 422, "threshold: a number between 0 and 1"),
        (b'{"texts": "a", "threshold": 1}', 422, "threshold: a number between 0 and 1"),
        (b'{"texts": "a", "threshold": "0.5"}', 422, "threshold: a number between 0 and 1"),
        (b'{"texts": "a", "threshold": 1' + b"0" * 5000 + b"}", 400, "bad request"),
        (b"[" * 100_000, 400, "bad request"),
        (b'{"texts": "\xff"}', 400, "bad request"),
        (b"x" * 256_001, 413, "at most 256,000 bytes"),
    ],
)
def test_wrong_requests_are_one_sentence(client: TestClient, body: bytes, status: int, words: str) -> None:
    answer = client.post("/predict", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, list(answer.json())) == (status, ["error"])
    assert words in answer.json()["error"] and len(answer.json()["error"]) < 200


def test_other_content_types_are_refused(client: TestClient) -> None:
    """A web page of another site could send these without asking first."""
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        answer = client.post("/predict", content=b'{"texts": "a"}', headers={"content-type": kind})
        assert answer.status_code == 422 and "Content-Type: application/json" in answer.json()["error"]


def test_other_paths_methods_hosts_and_origins(client: TestClient) -> None:
    assert client.get("/../etc/passwd").json() == {"error": "there is no such path"}
    assert client.get("/docs").status_code == 404, "no page that loads scripts from elsewhere"
    wrong = client.get("/predict")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    assert client.get("/health", headers={"host": "evil.example"}).status_code == 400
    posted = client.post("/predict", json={"texts": "a"}, headers={"origin": "https://evil.example"})
    assert posted.status_code == 403


class StuckTagger(LookupTagger):
    """Predicts only when it may."""

    def __init__(self) -> None:
        super().__init__(NAMES)
        self.gate = threading.Event()

    def predict(self, docs: Any, **options: Any) -> Iterator[Document]:
        assert self.gate.wait(20)
        return super().predict(docs, **options)


def test_a_full_queue_is_429_and_a_slow_model_503() -> None:
    tagger = StuckTagger()
    with client_of(tagger, max_seconds=0.3, max_queue=50) as client:
        slow = client.post("/predict", json={"texts": "x" * 60})
        assert slow.status_code == 503 and "longer than 0.3 seconds" in slow.json()["error"]
        full = client.post("/predict", json={"texts": "y"})
        assert full.status_code == 429 and int(full.headers["retry-after"]) >= 1
        tagger.gate.set()
        while client.post("/predict", json={"texts": "y"}).status_code != 200:
            pass
        text = client.get("/metrics").text
    for status in (200, 429, 503):
        assert f'lacuner_requests_total{{path="/predict",status="{status}"}}' in text


def test_an_idle_worker_has_no_queue_in_the_metrics() -> None:
    """Another worker may answer the next scrape, which sums what each worker has written by itself.

    The size of the queue was once written at scrapes only, and a worker that was busy then counted as busy ever after.
    """
    tagger = StuckTagger()
    service = Service(tagger, ServiceSettings(Path("run"), max_seconds=0.2))
    with TestClient(service.app, "http://localhost") as client:
        assert client.post("/predict", json={"texts": "x" * 60}).status_code == 503
        assert "lacuner_queue_characters 61.0" in client.get("/metrics").text
        tagger.gate.set()
    assert "lacuner_queue_characters 0.0" in service.metrics.render().decode()


def test_a_request_that_breaks_the_model_is_500_and_the_next_is_answered() -> None:
    class Broken(LookupTagger):
        def predict(self, docs: Sequence[Document], **options: Any) -> Iterator[Document]:  # type: ignore[override]
            if any("bad" in doc.text for doc in docs):
                raise RuntimeError("secret of the machine")
            return super().predict(docs, **options)

    service = Service(Broken(NAMES), ServiceSettings(Path("run")))
    with TestClient(service.app, "http://localhost", raise_server_exceptions=False) as client:
        answer = client.post("/predict", json={"texts": "bad"})
        assert answer.status_code == 500 and "secret" not in answer.text
        assert client.post("/predict", json={"texts": "Halden"}).status_code == 200
        assert client.get("/health").status_code == 200


def test_health_while_stopping() -> None:
    service = Service(LookupTagger(NAMES), ServiceSettings(Path("run")))
    with TestClient(service.app, "http://localhost") as client:
        assert client.get("/health").json()["status"] == "ok"
        service.draining = True
        health = client.get("/health")
        assert (health.status_code, health.json()["status"], health.headers["connection"]) == (503, "stopping", "close")
        answer = client.post("/predict", json={"texts": "Halden"})
        assert (answer.status_code, answer.headers["connection"]) == (200, "close"), "it still answers"
    assert (service.accepted, service.answered) == (3, 3)


def test_metrics() -> None:
    with client_of() as client:
        client.post("/predict", json={"texts": ["Mara Teel left Halden.", "Halden"]})
        client.post("/predict", json={"texts": 7})
        client.get("/" + "x" * 50)
        answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    for line in (
        'lacuner_requests_total{path="/predict",status="200"} 1.0',
        'lacuner_requests_total{path="/predict",status="422"} 1.0',
        'lacuner_requests_total{path="other",status="404"} 1.0',
        "lacuner_texts_total 2.0",
        "lacuner_characters_total 28.0",
        'lacuner_entities_total{label="PLACE"} 2.0',
        "lacuner_batch_texts_sum 2.0",
        "lacuner_queue_characters 0.0",
    ):
        assert line in answer.text.splitlines()


def test_the_schema_is_complete(client: TestClient) -> None:
    schema = client.get("/openapi.json").json()
    assert sorted(schema["paths"]) == ["/health", "/metrics", "/predict"]
    statuses = set(schema["paths"]["/predict"]["post"]["responses"])
    assert statuses == {"200", "400", "403", "408", "413", "422", "429", "431", "503"}
    assert "://" not in json.dumps(schema), "it refers to nothing on other sites"


def test_the_demo_page(client: TestClient) -> None:
    empty = client.get("/")
    page = client.post("/", data={"text": "Mara Teel\r\nleft Halden.", "threshold": " 0.5 "})
    assert empty.status_code == page.status_code == 200
    parsed = Page(page.text)
    assert parsed.elements["mark"] == 2 and "script" not in parsed.elements
    assert all(link in ("/", "/openapi.json") for link in parsed.links)
    marked = [text for text, where in parsed.texts if "mark" in where and "small" not in where]
    assert marked == ["Mara Teel", "Halden"]
    [style] = re.findall(r"<style>(.*?)</style>", page.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    for answer in (empty, page):
        policy = answer.headers["content-security-policy"]
        assert f"style-src 'sha256-{digest}'" in policy and "unsafe" not in policy and "script" not in policy


@pytest.mark.parametrize("body", ["", "text=a&threshold=2", "text=a&threshold=x", "text=%ff", "text=a&text=b", "a=b"])
def test_a_wrong_form_is_explained_on_the_page(client: TestClient, body: str) -> None:
    answer = client.post("/", content=body, headers={"content-type": "application/x-www-form-urlencoded"})
    assert answer.status_code == 422 and "not a text with a threshold between 0 and 1" in answer.text
    if "threshold" in body:
        assert "\na</textarea>" in answer.text, "the text is still there"


@pytest.mark.parametrize("name", HOSTILE)
def test_text_on_the_page_is_inert(name: str) -> None:
    def render(bad: str) -> Page:
        doc = next(LookupTagger({"Halden": bad}).predict([Document("1", f"{bad} Halden {bad}")]))
        return Page(render_demo(bad, [bad], doc, threshold=bad))

    plain, page = render(PLAIN), render(HOSTILE[name])
    assert page.pairs == plain.pairs and page.links == plain.links
