"""A small review queue, its server, and a real browser."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lacuner.audit.issues import LabelIssue, new_issue
from lacuner.data import Document, Span
from lacuner.review.decisions import Decision
from lacuner.review.next_round import NextRound
from lacuner.review.queue import ReviewQueue, Sentence, decision_log
from tests.conftest import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, Route

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
LAPTOP, PHONE = (1280, 800), (390, 844)


def place(doc: Document, text: str, label: str, number: int = 0, score: float | None = None) -> Span:
    """The span of the n-th occurrence of a text."""
    start = -1
    for _ in range(number + 1):
        start = doc.text.index(text, start + 1)
    return Span(start, start + len(text), label, score, None if score is not None else "gazetteer")


def small_queue() -> ReviewQueue:
    """Nine issues of all kinds, in four scripts, and four sentences."""
    texts = {
        "reports/1": "Mara Teel left Halden on Tuesday. Later Teel met the council of Halden. The Veyra Company paid.",
        "reports/2": "😀 The report 🏴‍☠️ names Halden 👩‍🔬 and Orla Finch twice.",
        "reports/3": "زارت مارا تيل مدينة حلب في العام الماضي.",
        "reports/4": "马丁昨天在北京见到了李小龙。",
        "reports/5": "Tuesday was quiet in Halden.",
    }
    docs = {name: Document(name, text) for name, text in texts.items()}
    one, two, three, four, five = docs.values()
    one.spans = (place(one, "Mara", "PERSON"), place(one, "Halden", "PERSON"))
    five.spans = (place(five, "Tuesday", "PERSON"),)
    mentions = [{"document": one.id, "start": 15, "end": 21, "label": "PERSON"}]
    evidence = {"gazetteer": [{"term": "Halden", "label": "PERSON"}], "labeled": {"PERSON": 1}, "unlabeled": 3}
    evidence |= {"probability": 0.97, "mentions": mentions}
    issues = [
        new_issue("missing", one, place(one, "Halden", "PLACE", 1), (), 0.93, evidence),
        new_issue("wrong_type", one, place(one, "Halden", "PLACE"), one.spans[1:], 0.91, {"probability": 0.95}),
        new_issue("wrong_boundary", one, place(one, "Mara Teel", "PERSON"), one.spans[:1], 0.9, {"probability": 0.9}),
        new_issue("missing", two, place(two, "Halden", "PLACE"), (), 0.88, {"probability": 0.9}),
        new_issue("missing", five, place(five, "Halden", "PLACE"), (), 0.87, {"probability": 0.9}),
        new_issue("spurious", five, five.spans[0], five.spans, 0.8, {"probability": None}),
        new_issue("missing", three, place(three, "مارا", "PERSON"), (), 0.7, {"probability": 0.8}),
        new_issue("missing", four, place(four, "李小", "PERSON"), (), 0.6, {"probability": 0.7}),
        new_issue("missing", two, place(two, "Orla", "PERSON"), (), 0.5, {"probability": 0.7}),
    ]
    sentences = (
        Sentence(one.id, 0.9, (place(one, "Mara Teel", "PERSON", score=0.9),)),
        Sentence(two.id, 0.8, ()),
        Sentence(four.id, 0.4, (place(four, "北京", "PLACE", score=0.8),)),
    )
    return ReviewQueue(tuple(issues), docs, sentences, ("COMPANY", "PERSON", "PLACE"))


def many_issues(number: int, labels: tuple[str, ...] = ("PERSON", "PLACE")) -> ReviewQueue:
    """A queue of missing labels with distinct strings, one per document."""
    docs, issues = {}, []
    for i in range(number):
        doc = Document(f"doc {i}", f"On day {i} the ship reached Port{i} and stayed there for a week.")
        docs[doc.id] = doc
        span = place(doc, f"Port{i} ", labels[i % len(labels)])
        issues.append(new_issue("missing", doc, span._replace(end=span.end - 1), (), 1 - i / (2 * number)))
    return ReviewQueue(tuple(issues), docs, (), labels)


class Tab:
    """A page in the browser, driven by keys."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", lambda dialog: self.errors.append(f"dialog: {dialog.message}"))
        page.on("console", lambda line: self.errors.append(line.text) if line.type in ("error", "warning") else None)

    def press(self, *keys: str) -> Tab:
        """Press keys one after the other; each time wait until the page has the answer of the server."""
        for key in keys:
            self.page.keyboard.press(key)
            self.page.wait_for_selector("body:not([data-busy])")
        return self

    def wait_until_ready(self) -> None:
        self.page.wait_for_selector("#types button")
        self.page.wait_for_selector("body[data-mode]:not([data-busy])")

    def intercept(self, path: str, handler: Callable[[Route], object]) -> None:
        """Let a handler answer the requests for a path. A page that is already there may still go past it."""
        self.page.route(f"**{path}", handler)
        self.page.reload()
        self.wait_until_ready()

    def text(self, id_: str) -> str:
        return self.page.locator(f"#{id_}").inner_text()

    def wait_for(self, id_: str, text: str) -> None:
        """Wait until an element contains a text."""
        self.page.locator(f"#{id_}").filter(has_text=text).wait_for(timeout=10_000)

    @property
    def marked(self) -> str:
        """The text of the span under review."""
        return self.page.evaluate("[...document.querySelectorAll('#text mark')].map((m) => m.textContent).join('')")

    def click(self, start: int, end: int) -> None:
        """Click between two characters of the text; offsets in UTF-16 units of the whole text."""
        left, top, right, _ = self._box(start, end)
        self.page.mouse.click((left + right) / 2, top)

    def tap(self, start: int, end: int) -> None:
        """Tap between two characters of the text with a finger; offsets as above."""
        left, top, right, _ = self._box(start, end)
        self.page.touchscreen.tap((left + right) / 2, top)

    def select(self, start: int, end: int) -> None:
        """Select characters of the text with the mouse; offsets in UTF-16 units of the whole text."""
        box = self._box(start, end)
        mouse = self.page.mouse
        mouse.move(box[0], box[1])
        mouse.down()
        mouse.move(box[2], box[3], steps=3)
        mouse.up()
        self.page.evaluate("() => new Promise((resolve) => setTimeout(resolve, 20))")  # the page waits for the browser

    def _box(self, start: int, end: int) -> list[float]:
        """Where the first of these characters begins on the screen, and where the last one ends."""
        box: list[float] = self.page.evaluate(
            """([start, end]) => {
                const walker = document.createTreeWalker(document.getElementById("text"), NodeFilter.SHOW_TEXT);
                const range = document.createRange();
                let seen = 0;
                for (let node = walker.nextNode(); node; node = walker.nextNode()) {
                    const last = seen + node.length;
                    if (seen <= start && start < last) range.setStart(node, start - seen);
                    if (seen < end && end <= last) range.setEnd(node, end - seen);
                    seen = last;
                }
                const boxes = [...range.getClientRects()];
                const [a, b] = [boxes[0], boxes.at(-1)];
                return [a.left + 1, a.top + a.height / 2, b.right - 1, b.top + b.height / 2];
            }""",
            [start, end],
        )
        return box


class Gate:
    """Holds back the requests of a page for a path while it is closed."""

    def __init__(self, tab: Tab, path: str) -> None:
        self._page, self._held = tab.page, list[Any]()
        self.closed = False
        tab.intercept(path, self._handle)

    def _handle(self, route: Route) -> None:
        if self.closed:
            self._held.append(route)
        else:
            route.continue_()

    def close(self) -> None:
        self.closed = True

    def wait(self) -> None:
        """Wait until a request is held back."""
        while not self._held:
            self._page.wait_for_timeout(20)

    def open(self) -> None:
        self.closed = False
        for route in self._held:
            route.continue_()
        self._held.clear()


class ReviewServer:
    """A server in a thread of this process, with the decisions that it wrote."""

    def __init__(self, run: Path, queue: ReviewQueue, next_round: NextRound | None = None) -> None:
        from lacuner.review.server import FILES, Review, new_app, open_address
        from lacuner.review.session import ReviewSession
        from lacuner.serve.security import Access, new_server

        self.run, self.queue, self.log = run, queue, decision_log(run)
        address = open_address(run / "review", "127.0.0.1", None)
        self.url, self.token = address.url, address.token
        review = Review(ReviewSession(queue, self.log), run, next_round or NextRound(lambda: [["apply"]]))
        self._server = new_server(new_app(review, Access(token=address.token, open_paths=frozenset(FILES))))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [address.listener]})
        self._thread.start()

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()

    def decisions(self) -> list[Decision]:
        return self.log.read()

    def issue(self, number: int) -> LabelIssue:
        return self.queue.issues[number]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, once per module."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    pytest.importorskip("uvicorn", reason="extra `serve` is not installed")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: scripts/install_browser")
    with playwright.sync_playwright() as driver:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]  # containers have no user namespaces
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield chromium
        chromium.close()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., ReviewServer]]:
    """Start servers that stop at the end of the test."""
    servers: list[ReviewServer] = []

    def start(queue: ReviewQueue, next_round: NextRound | None = None, run: Path | None = None) -> ReviewServer:
        run = run or tmp_path / "runs" / ("first", "second")[len(servers)]
        servers.append(ReviewServer(run, queue, next_round))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def open_tab(browser: Browser) -> Iterator[Callable[..., Tab]]:
    """Open the page in a new tab, wait for the first issue, and check at the end that no tab had an error."""
    contexts: list[BrowserContext] = []
    tabs: list[Tab] = []

    def open_(
        url: str,
        *,
        size: tuple[int, int] = LAPTOP,
        scheme: Any = "light",
        touch: bool = False,
        beside: Tab | None = None,
    ) -> Tab:
        if beside is None:
            view: Any = {"width": size[0], "height": size[1]}
            contexts.append(browser.new_context(viewport=view, color_scheme=scheme, has_touch=touch, is_mobile=touch))
        tab = Tab((beside.page.context if beside else contexts[-1]).new_page())
        tabs.append(tab)
        tab.page.goto(url)
        tab.wait_until_ready()
        return tab

    yield open_
    for context in contexts:
        context.close()
    assert [error for tab in tabs for error in tab.errors] == []


@pytest.fixture
def start_command() -> Iterator[Callable[[Path], tuple[subprocess.Popen[str], dict[str, Any]]]]:
    """Run `lacuner review` as a command; the process, and what it printed."""
    processes: list[subprocess.Popen[str]] = []

    def start(run: Path, *options: str) -> tuple[subprocess.Popen[str], dict[str, Any]]:
        command = [sys.executable, "-m", "lacuner", "review", str(run), "--no-browser", "--json", *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=dict(os.environ))
        processes.append(process)
        assert process.stdout is not None
        return process, json.loads(process.stdout.readline())

    yield start
    for process in processes:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
