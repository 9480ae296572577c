"""The web server of the review page: the files of the page, and JSON requests about the review.

The page (`page/`) contains no data and needs no token; everything else does (`lacuner.serve.security`). No request
names a file: the files of the page are loaded at start, and issues, sentences and labels are looked up in the queue.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lacuner.atomic import atomic_write
from lacuner.data import Span
from lacuner.errors import ConfigError, LacunerError
from lacuner.review.context import CONTEXT, MAX_CONTEXT, show
from lacuner.review.decisions import ACTIONS, Action
from lacuner.review.next_round import NextRound, format_commands, plan_round
from lacuner.review.queue import decision_log, open_queue
from lacuner.review.session import ConflictError, ReviewSession, parse_filter
from lacuner.serve.security import Access, App, guard, listen, new_token

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

PAGE = Path(__file__).parent / "page"
MEDIA_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
FILES = {f"/{file.name}": file for file in sorted(PAGE.iterdir()) if file.suffix in MEDIA_TYPES}
FILES["/"] = FILES.pop("/index.html")
_ADDRESS = "server.json"

Row = Mapping[str, Any]
Answer = dict[str, Any]


@dataclass(frozen=True)
class Review:
    """What the requests are about: a session, the run folder, and the next round."""

    session: ReviewSession
    run: Path
    next_round: NextRound


def new_review(run: Path) -> Review:
    """The review of a run folder, with the decisions so far."""
    session = ReviewSession(open_queue(run), decision_log(run))
    facts = session.queue.facts
    if "sample" in facts:  # what was labeled is for scores: to train on it would spoil them
        evaluate = ["evaluate", str(facts.get("run", run.parent)), "--reviewed", str(run)]
        return Review(session, run, NextRound(lambda: [evaluate]))
    inputs = facts.get("inputs")
    return Review(session, run, NextRound(lambda: plan_round(run, inputs if isinstance(inputs, dict) else {})))


def new_app(review: Review, access: Access) -> App:
    """The application: the page, and one route per request. `access` says who may use it."""
    from starlette.routing import Route, Router

    routes = [Route(path, _file_route(file), methods=["GET"]) for path, file in FILES.items()]
    routes += [Route(f"/api/{name}", _api_route(answer, review), methods=["POST"]) for name, answer in REQUESTS.items()]
    return guard(Router(routes, redirect_slashes=False), access)


def _file_route(file: Path) -> Callable[[Request], Any]:
    content, media_type = file.read_bytes(), MEDIA_TYPES[file.suffix]

    async def send_file(_: Request) -> Response:
        from starlette.responses import Response

        return Response(content, media_type=media_type)

    return send_file


def _api_route(answer: Callable[[Review, Row], Answer], review: Review) -> Callable[[Request], Any]:
    async def reply(request: Request) -> Response:  # one at a time: decisions are never made concurrently
        from starlette.responses import JSONResponse

        try:
            row = json.loads(await request.body())
            if not isinstance(row, dict):
                raise ConfigError("a request must be a JSON object")
            if row.get("queue") not in (None, review.session.fingerprint):  # its numbers mean something else here
                return JSONResponse({"error": "this page shows another queue: load it again"}, 410)
            return JSONResponse(answer(review, row))
        except (ValueError, RecursionError):
            return JSONResponse({"error": "this request is not JSON"}, 400)
        except ConflictError as error:
            return JSONResponse({"error": str(error), "summary": review.session.summary()}, 409)
        except ConfigError as error:
            return JSONResponse({"error": show(str(error))}, 400)
        except LacunerError as error:  # such as a full disk: the page does not move on, and says why
            return JSONResponse({"error": show(str(error))}, 500)

    return reply


def answer_summary(review: Review, row: Row) -> Answer:
    """Counts and precision; only `version` if nothing has changed since the page's version."""
    summary = review.session.summary()
    if row.get("version") == summary["version"]:
        return {"version": summary["version"]}
    return {"version": summary["version"], "summary": summary}


def answer_issue(review: Review, row: Row) -> Answer:
    """An issue by id (`at`), the next one after or the previous one before an issue, or the first one."""
    session, issue_filter = review.session, parse_filter(row.get("filter", {}), review.session)
    at, after, before = (_text(row, name) for name in ("at", "after", "before"))
    session.read_state()
    issue = session.queue.by_id.get(at) if at is not None else None
    if issue is not None and session.status_of(issue.id) == "settled" and issue_filter.status != "settled":
        issue, after = None, at  # nothing is left to decide there
    issue = issue or session.find_issue(issue_filter, after or before, -1 if before is not None else 1)
    context = min(_number(row, "context") or CONTEXT, MAX_CONTEXT)
    return _with_summary(review, issue=None if issue is None else session.issue_view(issue, context))


def answer_decide(review: Review, row: Row) -> Answer:
    """Decide an issue; answers with the next one, so that the page can move on at once."""
    session, issue_filter = review.session, parse_filter(row.get("filter", {}), review.session)
    issue = session.queue.issue(_text(row, "issue") or "")
    span = None if row.get("span") is None else _span(row["span"], session)
    everywhere, reviewer = row.get("everywhere") is True, _text(row, "tab") or ""
    decision = session.queue.decide(issue.id, _action(row), span=span, everywhere=everywhere, reviewer=reviewer)
    decision = session.decide(decision, _number(row, "expected"))
    following = session.find_issue(issue_filter, issue.id)
    view = None if following is None else session.issue_view(following)
    return _with_summary(review, issue=view, number=decision.number, decided=len(decision.edits))


def answer_sentence(review: Review, row: Row) -> Answer:
    """A sentence by number (`at`), or the next one that is open."""
    session, at = review.session, _number(row, "at")
    if at is None or at >= len(session.sentences):
        at = session.find_sentence(_number(row, "after"))
    return _with_summary(review, sentence=None if at is None else session.sentence_view(at))


def answer_label(review: Review, row: Row) -> Answer:
    """Label a sentence completely, or skip it; answers with the next one."""
    session, number = review.session, _number(row, "sentence")
    if number is None or number >= len(session.sentences):
        raise ConfigError("there is no such sentence")
    doc_id, reviewer = session.sentences[number].doc_id, _text(row, "tab") or ""
    if row.get("spans") is None:
        decision = session.queue.skip_sentence(doc_id, reviewer)
    elif isinstance(row["spans"], list):
        decision = session.queue.label_sentence(doc_id, [_span(span, session) for span in row["spans"]], reviewer)
    else:
        raise ConfigError("`spans` must be a list")
    decision = session.decide(decision, _number(row, "expected"))
    following = session.find_sentence(number)
    view = None if following is None else session.sentence_view(following)
    return _with_summary(review, sentence=view, number=decision.number)


def answer_undo(review: Review, row: Row) -> Answer:
    """Undo a decision by number, or the latest one; answers with what it was about."""
    session = review.session
    undone = session.undo(_number(row, "number"), _text(row, "tab") or "")
    if undone is None:
        return _with_summary(review, undone=None)
    if not undone.edits:  # an undo itself
        return _with_summary(review, undone={"action": undone.action, "count": 0, "spans": []})
    edit = undone.edits[0]
    spans = [session.span_json(span) for span in edit.spans]
    facts: Answer = {"undone": {"action": undone.action, "count": len(undone.edits), "spans": spans}}
    if edit.issue in session.queue.by_id:
        facts["issue"] = session.issue_view(session.queue.by_id[edit.issue or ""])
    for number, sentence in enumerate(session.sentences):
        if edit.issue is None and sentence.doc_id == edit.doc_id:
            facts["sentence"] = session.sentence_view(number)
    return _with_summary(review, **facts)


def answer_round(review: Review, row: Row) -> Answer:
    """The commands of the next round and how far they are; `start`: run them."""
    following = review.next_round
    if row.get("start") is True:
        following.start()
    progress = following.progress()
    progress |= {"line": show(progress["line"]), "output": [show(line) for line in progress["output"]]}
    commands = format_commands(following.commands())
    return _with_summary(review, commands=[show(command) for command in commands], progress=progress)


REQUESTS: dict[str, Callable[[Review, Row], Answer]] = {
    "summary": answer_summary,
    "issue": answer_issue,
    "decide": answer_decide,
    "sentence": answer_sentence,
    "label": answer_label,
    "undo": answer_undo,
    "round": answer_round,
}


def _with_summary(review: Review, **facts: Any) -> Answer:
    return {"run": show(str(review.run)), "summary": review.session.summary(), **facts}


def _text(row: Row, name: str) -> str | None:
    value = row.get(name)
    if value is not None and (not isinstance(value, str) or len(value) > 100):
        raise ConfigError(f"`{name}` must be a short text")
    return value


def _action(row: Row) -> Action:
    action = row.get("action")
    if action not in ACTIONS:
        raise ConfigError("there is no such action")
    return action  # type: ignore[no-any-return]


def _number(row: Row, name: str) -> int | None:
    value = row.get(name)
    if value is not None and (type(value) is not int or value < 0):
        raise ConfigError(f"`{name}` must be a whole number")
    return value


def _span(row: Any, session: ReviewSession) -> Span:
    """A span that the page sends: `{start, end, type}`, offsets in code points, the type by number."""
    if not isinstance(row, Mapping):
        raise ConfigError("a span must be an object")
    start, end, number = (_number(row, name) for name in ("start", "end", "type"))
    labels = session.queue.labels
    if start is None or end is None or number is None or number >= len(labels):
        raise ConfigError("a span needs `start`, `end` and the number of a type")
    return Span(start, end, labels[number])


@dataclass(frozen=True)
class Address:
    """Where the page is: a listening socket and the token. A restarted server has the same ones if it can.

    So a page that is still open in the browser reconnects.
    """

    listener: socket.socket
    token: str
    host: str

    @property
    def url(self) -> str:
        """The address to open. Browsers do not send the part after `#`, so the token stays out of logs."""
        host = socket.gethostname() if self.host in ("0.0.0.0", "::") else self.host
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.listener.getsockname()[1]}/#token={self.token}"


def open_address(folder: Path, host: str, port: int | None, allow_remote: bool = False) -> Address:
    """Listen on a port: the given one, or the one that this folder had the last time, or a free one."""
    stored: Any = {}
    with suppress(OSError, ValueError, RecursionError):
        stored = json.loads((folder / _ADDRESS).read_text(encoding="utf-8"))
    stored = stored if isinstance(stored, dict) else {}
    token = stored.get("token")
    token = token if isinstance(token, str) and len(token) >= len(new_token()) else new_token()
    last = stored.get("port")
    listener: socket.socket | None = None
    if port is None and type(last) is int and 1024 <= last <= 65535:
        with suppress(ConfigError):  # another program has it now
            listener = listen(host, last, allow_remote=allow_remote)
    listener = listener or listen(host, port or 0, allow_remote=allow_remote)
    address = Address(listener, token, host)
    with atomic_write(folder / _ADDRESS, private=True) as stream:
        stream.write(json.dumps({"port": listener.getsockname()[1], "token": token}).encode() + b"\n")
    return address


def write_link(address: Address, folder: Path) -> Path:
    """Write a page that leads to the address, readable by the owner only.

    A browser gets the name of this file on its command line, where other users of the machine can read it, and not the
    token.
    """
    path, url = folder / "open.html", address.url
    head = f'<meta charset="utf-8"><meta http-equiv="refresh" content="0; url={url}"><title>Review</title>'
    with atomic_write(path, private=True) as stream:
        stream.write(f'<!doctype html>{head}<a href="{url}">Review</a>\n'.encode())
    return path
