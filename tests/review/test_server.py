"""The requests of the review page, without a browser: what they answer, and what they refuse."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lacuner.audit.issues import new_issue
from lacuner.data import Document, Span
from lacuner.errors import ConfigError
from lacuner.review.next_round import NextRound
from lacuner.review.queue import ReviewQueue, decision_log, save_queue
from lacuner.review.server import FILES, Review, new_app, new_review, open_address, write_link
from lacuner.review.session import ReviewSession
from lacuner.serve.security import Access
from tests.review.conftest import many_issues, small_queue

pytest.importorskip("starlette", reason="extra `serve` is not installed")
TOKEN = "t0ken"


class Client:
    """Sends requests to the application, without a network."""

    def __init__(self, folder: Path, queue: Any = None) -> None:
        self.queue = queue or small_queue()
        self.log = decision_log(folder)
        review = Review(ReviewSession(self.queue, self.log), Path("runs/first"), NextRound(list))
        self.app = new_app(review, Access(token=TOKEN, open_paths=frozenset(FILES)))

    def request(self, path: str, body: bytes = b"", method: str = "POST", token: str = TOKEN) -> tuple[int, bytes]:
        headers = [(b"host", b"127.0.0.1:8000"), (b"authorization", f"Bearer {token}".encode())]
        scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b""}
        scope |= {"headers": headers, "root_path": "", "scheme": "http", "http_version": "1.1"}
        messages: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]
        sent: list[Any] = []

        async def receive() -> Any:
            return messages.pop() if messages else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])

    def post(self, name: str, status: int = 200, **row: Any) -> Any:
        got, body = self.request(f"/api/{name}", json.dumps({"tab": "tab-1", **row}).encode())
        assert got == status, body
        return json.loads(body)


def test_a_sample_is_evaluated_not_trained_on(tmp_path: Path) -> None:
    queue = small_queue()
    save_queue(replace(queue, facts={"sample": {}, "run": str(tmp_path / "run")}), tmp_path / "sample")
    [command] = new_review(tmp_path / "sample").next_round.commands()
    assert command == ["evaluate", str(tmp_path / "run"), "--reviewed", str(tmp_path / "sample")]
    assert Client(tmp_path, replace(queue, facts={"sample": {}})).post("issue")["summary"]["sample"] is True


@pytest.fixture
def client(tmp_path: Path) -> Client:
    return Client(tmp_path)


def test_the_page_needs_no_token_and_has_no_data(client: Client) -> None:
    for path, file in FILES.items():
        assert client.request(path, method="GET", token="") == (200, file.read_bytes())
    assert client.request("/api/summary", b"{}", token="")[0] == 401


def test_the_page_has_no_inline_code_and_fetches_only_its_own_files() -> None:
    assert len(FILES) == 11
    for path, file in FILES.items():
        text = file.read_text(encoding="utf-8")
        assert "://" not in text.replace("http://www.w3.org/2000/svg", ""), path
        assert "innerHTML" not in text and "insertAdjacentHTML" not in text and "eval(" not in text
    html = FILES["/"].read_text(encoding="utf-8")
    assert (
        html.count("<script") == 1
        and "<style" not in html
        and " style=" not in html
        and " on" not in html.split("<body>")[0]
    )


PATHS = [
    "/..",
    "/../server.py",
    "/%2e%2e/server.py",
    "/..\\server.py",
    "//etc/passwd",
    "/page/index.html",
    "/index.html",
]
PATHS += ["/review.js/", "/review.js\0", "/" + "a" * 10_000, "/api", "/api/", "/api/../review.js", "/static", "/docs"]


@pytest.mark.parametrize("path", PATHS)
def test_no_route_takes_a_path(client: Client, path: str) -> None:
    for method in ("GET", "POST"):
        assert client.request(path, b"{}", method)[0] in (404, 405)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "HEAD", "TRACE"])
def test_only_post_changes_anything(client: Client, method: str) -> None:
    assert client.request("/api/undo", b"{}", method)[0] == 405


@pytest.mark.parametrize("body", [b"", b"x", b"[]", b"1", b"[" * 100_000, b'"a"', b"\xff"])
def test_what_is_not_a_request_is_refused(client: Client, body: bytes) -> None:
    for name in ("issue", "decide", "label", "undo", "sentence", "summary"):
        status, answer = client.request(f"/api/{name}", body)
        assert status == 400 and json.loads(answer)["error"]
    assert client.log.read() == []


@pytest.mark.parametrize(
    "row",
    [
        {"issue": None, "action": "accept"},
        {"issue": "../../etc/passwd", "action": "accept"},
        {"action": "undo"},
        {"action": "label_sentence"},
        {"action": "no such action"},
        {"action": ["accept"]},
        {"action": "change", "span": {"start": 0, "end": 4, "type": 99}},
        {"action": "change", "span": {"start": 0, "end": 4, "type": "PERSON"}},
        {"action": "change", "span": {"start": 4, "end": 4, "type": 0}},
        {"action": "change", "span": {"start": 0, "end": 10**9, "type": 0}},
        {"action": "change", "span": {"start": -1, "end": 4, "type": 0}},
        {"action": "change", "span": {"start": True, "end": 4, "type": 0}},
        {"action": "change", "span": [0, 4, 0]},
        {"action": "accept", "expected": "1"},
        {"action": "accept", "filter": {"kind": "x"}},
        {"action": "accept", "filter": {"label": 99}},
        {"action": "accept", "filter": []},
        {"action": "accept", "tab": "x" * 101},
        {"action": "accept", "tab": 7},
    ],
)
def test_what_is_not_a_decision_is_refused(client: Client, row: dict[str, Any]) -> None:
    assert client.post("decide", 400, **{"issue": client.queue.issues[0].id, **row})["error"]
    assert client.log.read() == []


def test_a_decision_answers_with_the_next_issue(client: Client) -> None:
    first, second, *_ = client.queue.issues
    answer = client.post("decide", issue=first.id, action="accept")
    assert answer["number"] == 1 and answer["issue"]["id"] == second.id
    assert answer["summary"]["decided"] == 1
    assert client.log.read()[0].reviewer == "tab-1"


def test_of_two_tabs_the_first_wins(client: Client) -> None:
    issue = client.queue.issues[0].id
    client.post("decide", issue=issue, action="accept")
    conflict = client.post("decide", 409, issue=issue, action="reject", tab="tab-2")
    assert conflict["error"] == "another tab has decided this meanwhile" and conflict["summary"]["version"] == 1
    client.post("decide", issue=issue, action="reject", tab="tab-2", expected=1)
    assert [decision.action for decision in client.log.read()] == ["accept", "reject"]


def test_a_page_of_another_queue_is_refused(client: Client, tmp_path: Path) -> None:
    """Its numbers of types and sentences would be applied to other types and sentences."""
    queue = client.post("issue")["summary"]["queue"]
    spans = [{"start": 0, "end": 4, "type": 1}]
    others = [
        replace(client.queue, labels=("ANIMAL", *client.queue.labels)),
        replace(client.queue, sentences=client.queue.sentences[::-1]),
        replace(client.queue, issues=client.queue.issues[1:]),
        replace(client.queue, documents={**client.queue.documents, "reports/1": Document("reports/1", "Other text.")}),
    ]
    for other in others:
        changed = Client(tmp_path, other)
        assert "another queue" in changed.post("label", 410, queue=queue, sentence=0, spans=spans)["error"]
        assert changed.log.read() == []
    assert client.post("label", queue=queue, sentence=0, spans=spans)["number"] == 1


def test_the_page_knows_what_an_undo_would_take_back(client: Client) -> None:
    first, second, *_ = client.queue.issues
    assert client.post("issue")["summary"]["latest"] is None
    client.post("decide", issue=first.id, action="accept")
    assert client.post("decide", issue=second.id, action="reject")["summary"]["latest"] == 2
    assert client.post("undo", number=2)["summary"]["latest"] == 1


def test_an_issue_that_is_settled_meanwhile_is_passed_over(client: Client) -> None:
    second = client.queue.issues[1]
    assert client.post("issue", at=second.id)["issue"]["id"] == second.id
    client.post("label", sentence=0, spans=[])  # the sentence of the first three
    assert client.post("issue", at=second.id)["issue"]["document"] == "reports/2"
    settled = client.post("issue", at=second.id, filter={"status": "settled"})["issue"]
    assert settled["id"] == second.id and settled["settled"]


def test_equal_strings_are_shown_as_long_as_they_are_open(client: Client) -> None:
    first, other = client.queue.issues[0], client.queue.issues[3]
    issue = client.post("issue", at=first.id)["issue"]
    assert [row["before"] + row["text"] for row in issue["others"]] == [
        "😀 The report 🏴‍☠️ names Halden",
        "Tuesday was quiet in Halden",
    ]
    client.post("decide", issue=other.id, action="reject")
    issue = client.post("issue", at=first.id)["issue"]
    assert (len(issue["others"]), issue["equal"]) == (1, 2)


def test_a_repeated_request_is_answered_like_the_first(client: Client) -> None:
    issue = client.queue.issues[0].id
    first = client.post("decide", issue=issue, action="accept", everywhere=True)
    again = client.post("decide", issue=issue, action="accept", everywhere=True)
    assert (again["number"], again["decided"]) == (first["number"], first["decided"]) == (1, 3)
    undone = [client.post("undo", number=1)["undone"] for _ in range(2)]
    assert undone[0] == undone[1]
    assert [decision.action for decision in client.log.read()] == ["accept", "undo"]


def test_an_undo_can_be_undone(client: Client) -> None:
    client.post("decide", issue=client.queue.issues[0].id, action="accept")
    client.post("undo")
    assert client.post("undo", number=2)["summary"]["decided"] == 1
    assert client.post("undo", number=99)["undone"] is None


def test_decisions_of_other_processes_are_seen(client: Client) -> None:
    version = client.post("summary")["version"]
    assert client.post("summary", version=version) == {"version": 0}
    decision_log(client.log.path.parent.parent).append(client.queue.decide(client.queue.issues[0].id, "skip"))
    answer = client.post("summary", version=version)
    assert answer["version"] == 1 and answer["summary"]["skipped"] == 1


def test_a_full_disk_is_reported(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(28, "No space left on device")

    issue = client.queue.issues[0].id
    monkeypatch.setattr(os, "fsync", refuse)
    assert "No space left on device" in client.post("decide", 500, issue=issue, action="accept")["error"]


def test_every_issue_is_found_once_in_order(tmp_path: Path) -> None:
    client = Client(tmp_path, many_issues(30))
    seen = [client.post("issue", filter={})["issue"]["id"]]
    while (issue := client.post("decide", issue=seen[-1], action="skip")["issue"]) is not None:
        seen.append(issue["id"])
    assert seen == [issue.id for issue in client.queue.issues]
    assert client.post("issue", filter={"status": "skipped"})["issue"]["id"] == seen[0]
    assert client.post("issue", filter={"status": "skipped"}, before=seen[0])["issue"]["id"] == seen[-1]


def test_filters_combine(client: Client) -> None:
    def found(**row: Any) -> list[str]:
        ids: list[str] = []
        issue = client.post("issue", filter=row)["issue"]
        while issue is not None and issue["id"] not in ids:
            ids.append(issue["id"])
            issue = client.post("issue", filter=row, after=issue["id"])["issue"]
        return [client.queue.issue(id_).text for id_ in ids]

    assert found(kind="missing", label=2) == ["Halden"] * 3
    assert found(source=0) == ["Halden", "Mara Teel", "Tuesday"]
    assert found(search="HALDEN  on", kind="wrong_boundary") == ["Mara Teel"]
    assert found(search="reports/4") == ["李小"]
    assert found(search="nowhere") == []
    client.post("decide", issue=client.queue.issues[0].id, action="accept")
    assert found(status="decided") == ["Halden"]


def test_evidence_of_any_form_is_shown(tmp_path: Path) -> None:
    doc = Document("1", "Mara left")
    odd = {
        "probability": float("nan"),
        "labeled": {"A": "x", "B": 2},
        "unlabeled": [],
        "mentions": [7, {"document": "9"}],
    }
    odd |= {"gazetteer": {"term": 1}, "other": {"x": 1}}
    issue = new_issue("missing", doc, Span(0, 4, "PER"), (), 0.5, odd)
    evidence = Client(tmp_path, ReviewQueue((issue,), {"1": doc}, (), ("PER",))).post("issue")["issue"]["evidence"]
    assert evidence["labeled"] == [["B", 2]] and evidence["other"] == [["other", "{'x': 1}"]]
    assert evidence["probability"] is None and evidence["gazetteer"] == evidence["mentions"] == []


def test_the_address_stays_the_same_and_is_private(tmp_path: Path) -> None:
    with open_address(tmp_path, "127.0.0.1", None).listener as listener:
        first = json.loads((tmp_path / "server.json").read_text())
        assert first["port"] == listener.getsockname()[1]
    second = open_address(tmp_path, "127.0.0.1", None)
    assert second.url == f"http://127.0.0.1:{first['port']}/#token={first['token']}"
    other = open_address(tmp_path, "127.0.0.1", None)  # the port is taken
    assert other.token == second.token and other.url != second.url
    link = write_link(second, tmp_path)
    for path in (link, tmp_path / "server.json"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert second.url in link.read_text()
    for address in (second, other):
        address.listener.close()
    (tmp_path / "server.json").write_text('{"port": 80, "token": "short"}')
    third = open_address(tmp_path, "127.0.0.1", None)
    assert len(third.token) == 43
    third.listener.close()
    with pytest.raises(ConfigError, match="--allow-remote"):
        open_address(tmp_path, "0.0.0.0", None)


def test_decisions_settle_issues_beside_them(client: Client) -> None:
    one = client.queue.document("reports/1")
    longer = {"start": one.text.index("council"), "end": one.text.index("Halden.") + 6, "type": 0}
    inside = new_issue("missing", one, Span(longer["start"], longer["start"] + 7, "COMPANY"), (), 0.3)
    queue = ReviewQueue(
        (*client.queue.issues, inside), client.queue.documents, client.queue.sentences, client.queue.labels
    )
    client = Client(client.log.path.parent.parent, queue)
    answer = client.post("decide", issue=queue.issues[0].id, action="change", span=longer)
    assert answer["summary"]["decided"] == 1 and answer["summary"]["settled"] == 1
    assert client.post("issue", filter={"status": "settled"})["issue"]["id"] == inside.id
    client.post("undo")
    assert client.post("summary")["summary"]["settled"] == 0
    client.post("label", sentence=0, spans=[])
    assert client.post("summary")["summary"]["settled"] == 4, "all issues of a sentence that is labeled completely"
    client.post("undo")
    client.post("decide", issue=queue.issues[0].id, action="reject")
    assert client.post("summary")["summary"]["settled"] == 0, "the rejected string does not contain the other"


def test_a_sentence_starts_from_what_was_decided(client: Client) -> None:
    one = client.queue.document("reports/1")

    def spans() -> list[tuple[str, str]]:
        rows = client.post("sentence", at=0)["sentence"]["spans"]
        return [(one.text[row["start"] : row["end"]], row["label"]) for row in rows]

    assert spans() == [("Mara Teel", "PERSON")]
    client.post("decide", issue=client.queue.issues[0].id, action="accept")
    assert spans() == [("Mara Teel", "PERSON"), ("Halden", "PLACE")]
    client.post("decide", issue=client.queue.issues[2].id, action="change")  # nothing there is an entity
    assert spans() == [("Halden", "PLACE")]
