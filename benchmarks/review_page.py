"""Speed of the review page in a real browser: `python -m benchmarks.review_page [ISSUES]`.

Serves a queue of 20,000 issues with `lacuner review`, opens it in Chromium, and presses keys. A decision is timed in
the page, from the key to the next question: the request, the write to the disk (fsync), the answer, and the new text.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from lacuner.audit.issues import new_issue
from lacuner.data import Document, Span
from lacuner.review.build import build_queue
from lacuner.review.queue import save_queue

ISSUES = 20_000
DECISIONS = 300
LOADS = 10
KEYS = "aaxaxs"
_WATCH = """() => {
    window.times = [];
    let pressed = null;
    document.addEventListener("keydown", (event) => { pressed = event.timeStamp; }, { capture: true });
    new MutationObserver(() => {
        if (pressed === null) return;
        const start = pressed;
        pressed = null;
        requestAnimationFrame(() => window.times.push(performance.now() - start));
    }).observe(document.getElementById("facts"), { childList: true });
}"""
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def write_queue(run: Path, number: int) -> None:
    """A queue with groups of ten equal strings, in documents of about 60 words."""
    docs, issues = [], []
    filler = "The crew of the ship stayed there for a week and then went on to the next harbour. " * 3
    for i in range(number):
        text = f"On day {i} the ship reached Port {i // 10} and stayed. {filler}"
        doc = Document(f"report-{i}", text, spans=(Span(4, 6, "NUMBER", source="gazetteer"),))
        start = text.index("Port")
        span = Span(start, start + len(f"Port {i // 10}"), "PLACE")
        docs.append(doc)
        issues.append(new_issue("missing", doc, span, (), 0.9 - 0.8 * i / number, {"probability": 0.9}))
    save_queue(build_queue(docs, issues), run)


def describe(name: str, milliseconds: list[float]) -> str:
    """Median, 95th percentile and maximum."""
    p50, p95 = np.percentile(milliseconds, [50, 95])
    return (
        f"{name}: median {p50:.0f} ms, p95 {p95:.0f} ms, maximum {max(milliseconds):.0f} ms ({len(milliseconds)} times)"
    )


def main(number: int = ISSUES) -> None:
    from playwright.sync_api import sync_playwright

    with TemporaryDirectory() as folder:
        run = Path(folder)
        write_queue(run, number)
        command = [sys.executable, "-m", "lacuner", "review", str(run), "--no-browser", "--json"]
        started = time.perf_counter()
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            url = json.loads(server.stdout.readline())["url"]
            print(f"{number:,} issues; the command is ready after {time.perf_counter() - started:.1f} s")
            with sync_playwright() as driver:
                browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
                page = browser.new_page(viewport={"width": 1280, "height": 800})
                paints, firsts = [], []
                for _ in range(LOADS):
                    page.goto("about:blank")
                    page.goto(url)
                    page.wait_for_selector("#types button")
                    paints.append(page.evaluate(_PAINT))
                    firsts.append(page.evaluate("performance.getEntriesByName('first issue')[0].startTime"))
                print(describe("first paint", paints))
                print(describe("first issue shown", firsts))
                page.evaluate(_WATCH)
                for i in range(DECISIONS):
                    page.keyboard.press(KEYS[i % len(KEYS)])
                    page.wait_for_selector("body:not([data-busy])")
                print(describe("decision, from key to next question", page.evaluate("window.times")))
                browser.close()
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
