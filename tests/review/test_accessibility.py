"""The review page for everybody: contrast, names, focus, small windows, both colour schemes; and the screenshots."""

from __future__ import annotations

import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lacuner.audit.issues import new_issue
from lacuner.data import Document
from lacuner.review.queue import ReviewQueue, Sentence
from tests.review.conftest import LAPTOP, PHONE, ReviewServer, Tab, place, small_queue

pytestmark = pytest.mark.integration
SCREENSHOTS = os.environ.get("LACUNER_SCREENSHOTS")
"""Where the pictures of the documentation go: LACUNER_SCREENSHOTS=docs/img pytest tests/review -k pictures"""

# every visible text with its colour and the colours behind it, from the element outwards
CONTRAST = """() => {
    const parse = (color) => color.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => {
        const linear = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        const [x, y, z] = [r, g, b].map((v) => linear(v / 255));
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const behind = (node) => {
        for (; node; node = node.parentElement) {
            const color = parse(getComputedStyle(node).backgroundColor);
            if (color.length === 3 || color[3] === 1) return color;
        }
        return [255, 255, 255];
    };
    const rows = [];
    const add = (text, color, back) => {
        const [a, b] = [light(parse(color)), light(back)].sort((x, y) => y - x);
        rows.push([text.trim().slice(0, 40), (a + 0.05) / (b + 0.05)]);
    };
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const parent = node.parentElement;
        if (!node.textContent.trim() || !parent.checkVisibility()) continue;
        if (parent.closest(".visually-hidden, .skip-link")) continue;
        add(node.textContent, getComputedStyle(parent).color, behind(parent));
    }
    for (const node of document.querySelectorAll("#text [data-label]")) {
        const style = getComputedStyle(node, "::after");
        add(style.content, style.color, parse(style.backgroundColor));
    }
    return rows;
}"""
NAMELESS = """() => [...document.querySelectorAll("button, input, select, progress, [role=group], dialog, ul")]
    .filter((node) => node.checkVisibility())
    .filter((node) => !node.textContent.trim() && !node.ariaLabel && !node.labels?.length)
    .filter((node) => !node.hasAttribute("aria-labelledby"))
    .map((node) => node.outerHTML)"""


@pytest.fixture
def server(serve: Callable[[ReviewQueue], ReviewServer]) -> ReviewServer:
    return serve(small_queue())


def check_contrast(tab: Tab) -> None:
    rows = tab.page.evaluate(CONTRAST)
    assert len(rows) > 25
    assert [row for row in rows if row[1] < 4.5] == []


def take_picture(tab: Tab, name: str, folder: Path) -> None:
    path = (Path(SCREENSHOTS) if SCREENSHOTS else folder) / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(BytesIO(tab.page.screenshot())) as picture:
        picture.convert("RGB").quantize(64).save(path, optimize=True)
    assert 5_000 < path.stat().st_size < 60_000


@pytest.mark.parametrize(("scheme", "size"), [("light", LAPTOP), ("dark", LAPTOP), ("light", PHONE), ("dark", PHONE)])
def test_contrast_and_width(
    server: ReviewServer, open_tab: Callable[..., Tab], scheme: str, size: tuple[int, int], tmp_path: Path
) -> None:
    tab = open_tab(server.url, scheme=scheme, size=size)
    tab.press("s", "s", "a", "u")
    for keys in ((), ("1",), ("m",)):
        tab.press(*keys)
        check_contrast(tab)
        assert tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "no horizontal scrolling"
        assert tab.page.evaluate(NAMELESS) == []
    tab.press("n")
    check_contrast(tab)


def test_pictures(server: ReviewServer, open_tab: Callable[..., Tab], tmp_path: Path) -> None:
    for number, action in ((2, "accept"), (5, "reject"), (6, "accept"), (8, "accept")):
        server.log.append(server.queue.decide(server.issue(number).id, action))  # type: ignore[arg-type]
    pictures = (("review-phone", "light", PHONE), ("review-dark", "dark", LAPTOP), ("review", "light", LAPTOP))
    for name, scheme, size in pictures:
        tab = open_tab(server.url, scheme=scheme, size=size)
        take_picture(tab, name, tmp_path)
    tab.press("m", *["ArrowRight"] * 3, "3")
    take_picture(tab, "review-sentences", tmp_path)


def test_everything_can_be_reached_with_the_tab_key(server: ReviewServer, open_tab: Callable[..., Tab]) -> None:
    tab = open_tab(server.url)
    names: list[Any] = []
    for _ in range(60):
        tab.page.keyboard.press("Tab")
        names.append(tab.page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))
    reached = {name for name in names if name}
    assert {
        "accept",
        "reject",
        "skip",
        "undo",
        "accept-all",
        "step",
        "filter-search",
        "filter-kind",
        "next-round",
    } <= reached
    order = [names.index(name) for name in ("start-left", "accept", "skip", "undo", "filter-search", "filter-source")]
    assert order == sorted(order), "in the order in which they are read"
    tab.page.locator("#skip").focus()
    tab.page.keyboard.press("Space")
    tab.wait_for("status", "Skipped: Halden")
    tab.page.locator("#accept").focus()
    tab.page.keyboard.press("Enter")
    tab.wait_for("status", "Accepted: Halden")
    assert [decision.action for decision in server.decisions()] == ["skip", "accept"]


def test_a_screen_reader_hears_what_happens(server: ReviewServer, open_tab: Callable[..., Tab]) -> None:
    tab = open_tab(server.url)
    assert tab.page.get_by_role("status").first.get_attribute("aria-live") == "polite"
    assert tab.page.get_by_role("heading", name="Label “Halden” as PLACE?").is_visible()
    for role, name in (
        ("button", "a Accept: PLACE"),
        ("button", "start left"),
        ("button", "end right"),
        ("progressbar", "0 of 9 decided"),
        ("combobox", "Kind"),
        ("searchbox", "Search /"),
        ("group", "Decision"),
        ("list", "Other mentions"),
    ):
        assert tab.page.get_by_role(role, name=name, exact=True).is_visible(), name  # type: ignore[arg-type]
    tab.press("Shift+ArrowRight")
    assert tab.text("status") == "Halden."
    tab.press("m", "ArrowRight")
    assert tab.text("status") == "Teel, PERSON"
    shortcuts = tab.page.evaluate(
        "[...document.querySelectorAll('button[aria-keyshortcuts]')].map((b) => b.ariaKeyShortcuts)"
    )
    assert {"a", "x", "s", "u", "0", "Shift+A", "Shift+X", "c", "e", "n", "1", "2", "3"} <= set(shortcuts)


def test_the_legend_names_every_key(server: ReviewServer, open_tab: Callable[..., Tab]) -> None:
    tab = open_tab(server.url)
    issues, sentences = tab.text("legend"), tab.press("m").text("legend")
    for key in ("a", "x", "0", "⇧A", "⇧X", "1", "t", "←", "⇧→", "c", "s", "u", "j", "k", "e", "/", "m", "n", "?"):
        assert key in issues.split(), key
    for key in ("a", "←", "⇧→", "1", "t", "Delete", "c", "s", "u", "j", "m", "n", "?"):
        assert key in sentences.split(), key
    assert tab.page.locator("#keys").get_attribute("open") is not None
    tab.press("?")
    assert tab.page.locator("#keys").get_attribute("open") is None


def test_keys_can_be_switched_off(server: ReviewServer, open_tab: Callable[..., Tab]) -> None:
    """Speech input types single letters by mistake (WCAG 2.1.4)."""
    tab = open_tab(server.url)
    tab.page.get_by_label("Single-key shortcuts").click()
    tab.press("a", "x", "s")
    tab.page.reload()
    tab.wait_for("question", "Label “Halden”")
    tab.press("a")
    assert server.decisions() == []
    tab.page.locator("#accept").click()
    tab.wait_for("status", "Accepted: Halden")
    tab.page.get_by_label("Single-key shortcuts").click()
    tab.press("x")
    assert [decision.action for decision in server.decisions()] == ["accept", "reject"]


def test_a_phone_needs_no_keyboard(server: ReviewServer, open_tab: Callable[..., Tab]) -> None:
    tab = open_tab(server.url, size=PHONE, touch=True)
    assert not tab.page.locator("#accept kbd").is_visible()
    tab.page.locator("#accept").tap()
    tab.wait_for("status", "Accepted: Halden")
    tab.page.locator("#mode-sentences").tap()
    tab.wait_for("question", "Label all entities")
    place = server.queue.document("reports/1").text.index("Tuesday")
    tab.tap(place, place + 4)
    assert tab.text("status") == "Tuesday"
    tab.page.locator("#types button").first.tap()
    tab.page.locator("#accept").tap()
    tab.wait_for("status", "Saved with 3 entities.")
    labels = {span.start: span.label for span in server.decisions()[-1].edits[0].spans}
    assert labels[place] == "COMPANY"


def test_what_the_question_is_about_can_be_seen(
    serve: Callable[[ReviewQueue], ReviewServer], open_tab: Callable[..., Tab]
) -> None:
    """On a phone, the text around a string is longer than its box."""
    words = " ".join(["wordsofninetyletters" * 4 + "everywhere"] * 20)
    doc = Document("long", f"{words} Halden {words}")
    issue = new_issue("missing", doc, place(doc, "Halden", "PLACE"), (), 0.9)
    queue = ReviewQueue((issue,), {"long": doc}, (Sentence("long", 0.5, ()),), ("PLACE",))
    tab = open_tab(serve(queue).url, size=PHONE)
    right, left = ["ArrowRight"] * 15, ["ArrowLeft"] * 14
    for keys, part in (((), "mark"), (("e",), "mark"), (("m", *right), ".cursor"), (left, ".cursor")):
        tab.press(*keys)
        outer, inner = (tab.page.locator(name).bounding_box() for name in ("#text", f"#text {part}"))
        assert outer is not None and inner is not None
        assert outer["y"] <= inner["y"] and inner["y"] + inner["height"] <= outer["y"] + outer["height"]
        assert tab.page.evaluate("scrollY") == 0


def test_buttons_are_large_enough_for_a_thumb(server: ReviewServer, open_tab: Callable[..., Tab]) -> None:
    tab = open_tab(server.url, size=PHONE)
    for name in ("accept", "reject", "skip", "undo"):
        box = tab.page.locator(f"#{name}").bounding_box()
        assert box is not None and box["height"] >= 44 and box["width"] >= 44
        assert box["y"] + box["height"] <= PHONE[1], "visible without scrolling"
