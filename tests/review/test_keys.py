"""Keys of the review page: no key is lost, and none applies to an issue that was not shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lacuner.review.queue import ReviewQueue
from tests.review.conftest import Gate, ReviewServer, Tab, many_issues, small_queue

pytestmark = pytest.mark.integration
OpenTab = Callable[..., Tab]


@pytest.fixture
def server(serve: Callable[[ReviewQueue], ReviewServer]) -> ReviewServer:
    return serve(small_queue())


@pytest.fixture
def tab(server: ReviewServer, open_tab: OpenTab) -> Tab:
    return open_tab(server.url)


def type_fast(tab: Tab, *keys: str) -> None:
    """Press keys without waiting for the page."""
    for key in keys:
        tab.page.keyboard.press(key)


def actions(server: ReviewServer) -> list[tuple[str, int | None]]:
    """The decisions, and the place of their issue in the queue."""
    places = {issue.id: number for number, issue in enumerate(server.queue.issues)}
    return [(d.action, places[d.edits[0].issue or ""] if d.edits else None) for d in server.decisions()]


def test_keys_wait_for_a_slow_server(tab: Tab) -> None:
    gate = Gate(tab, "/api/issue")
    gate.close()
    type_fast(tab, "j", "j", "j")
    gate.wait()
    gate.open()
    tab.wait_until_ready()
    assert "issue 4 of 9" in tab.text("facts")


def test_a_decision_is_never_for_an_issue_that_is_not_there_yet(tab: Tab, server: ReviewServer) -> None:
    gate = Gate(tab, "/api/decide")
    gate.close()
    type_fast(tab, "a", "x", "1")
    gate.wait()
    gate.open()
    tab.wait_until_ready()
    assert actions(server) == [("accept", 0)]
    assert tab.text("status").startswith("Nothing was done: what is here now was not on the screen yet.")
    assert tab.text("question") == "Change “Halden” PERSON to PLACE?"
    tab.press("x")
    assert actions(server) == [("accept", 0), ("reject", 1)]


def test_a_decision_on_its_way_can_be_undone(tab: Tab, server: ReviewServer) -> None:
    gate = Gate(tab, "/api/decide")
    gate.close()
    type_fast(tab, "a", "u")
    gate.wait()
    gate.open()
    tab.wait_until_ready()
    assert actions(server) == [("accept", 0), ("undo", None)]
    assert tab.text("question") == "Label “Halden” as PLACE?"


def test_a_key_counts_while_the_page_hears_of_another_tab(tab: Tab, server: ReviewServer, open_tab: OpenTab) -> None:
    gate = Gate(tab, "/api/issue")
    gate.close()
    server.log.append(server.queue.decide(server.issue(8).id, "accept"))
    gate.wait()  # the page asks what has become of its issue
    type_fast(tab, "x")
    gate.open()
    tab.wait_until_ready()
    assert actions(server) == [("accept", 8), ("reject", 0)]


def test_the_chosen_type_is_there_for_the_next_key(
    serve: Callable[[ReviewQueue], ReviewServer], open_tab: OpenTab
) -> None:
    server = serve(many_issues(3, tuple(f"TYPE{i}" for i in range(12))))
    tab = open_tab(server.url)
    tab.page.evaluate(
        """() => {
            const press = (target, key) =>
                target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
            const search = document.getElementById("type-search");
            press(document.body, "t");
            return Promise.resolve().then(() => {
                search.value = "TYPE11";
                search.dispatchEvent(new Event("input"));
                press(search, "Enter");
                press(document.body, "a");
            });
        }"""
    )
    tab.wait_for("status", "Saved: Port0")
    assert [span.label for span in server.decisions()[0].edits[0].spans] == ["TYPE11"]
    tab.press("t")
    tab.page.keyboard.type("no such type")
    tab.press("Enter")
    assert tab.text("type-count") == "No type has this in its name."
    tab.page.wait_for_timeout(750)  # by then, a selection in the text would have been used
    assert "Port0" in tab.text("status"), "what is typed is no selection in the text"
    tab.press("Escape", "a")
    assert [span.label for span in server.decisions()[1].edits[0].spans] == ["TYPE1"]


@pytest.mark.parametrize(
    ("event", "action"),
    [
        ({"key": "A", "modifierCapsLock": True}, "accept for one"),
        ({"key": "a", "modifierCapsLock": True, "shiftKey": True}, "accept for all"),
        ({"key": "A", "shiftKey": True}, "accept for all"),
        ({"key": "ф", "code": "KeyA"}, "accept for one"),
        ({"key": "Ф", "code": "KeyA", "shiftKey": True}, "accept for all"),
        ({"key": "ش", "code": "KeyA"}, "accept for one"),
        ({"key": "é", "code": "Digit2"}, "type"),
        ({"key": "ö", "code": "Semicolon"}, "nothing"),
        ({"key": "a", "ctrlKey": True}, "nothing"),
    ],
)
def test_letters_are_those_of_the_key_caps(tab: Tab, server: ReviewServer, event: dict[str, Any], action: str) -> None:
    tab.page.evaluate(
        "(event) => document.body.dispatchEvent(new KeyboardEvent('keydown', {bubbles: true, ...event}))", event
    )
    tab.wait_until_ready()
    decided = [len(decision.edits) for decision in server.decisions()]
    assert decided == {"accept for one": [1], "accept for all": [3]}.get(action, [])
    assert (tab.text("question") == "Label “Halden” as PERSON?") == (action == "type")


def test_after_a_choice_with_the_mouse_keys_decide(tab: Tab, server: ReviewServer) -> None:
    """In a list of choices, a letter would choose another entry."""
    tab.page.locator("#filter-kind").dispatch_event("pointerdown")
    tab.page.select_option("#filter-kind", "spurious")
    tab.wait_for("question", "Remove the label PERSON")
    tab.press("a")
    assert actions(server) == [("accept", 5)]
    tab.page.locator("#filter-kind").focus()
    tab.page.keyboard.press("ArrowUp")
    tab.wait_until_ready()
    assert tab.page.evaluate("document.activeElement.id") == "filter-kind", "the keyboard stays in the field"
    tab.press("Escape", "s")
    assert len(actions(server)) == 2


def test_enter_searches_at_once(tab: Tab, server: ReviewServer) -> None:
    gate = Gate(tab, "/api/issue")
    gate.close()
    tab.page.keyboard.press("/")
    tab.page.keyboard.type("Orla")
    type_fast(tab, "Enter", "a")
    gate.open()
    tab.wait_until_ready()
    assert actions(server) == [], "the first result was not on the screen yet"
    assert "reports/2" in tab.text("facts")
    tab.press("a")
    assert actions(server) == [("accept", 3)]


def test_a_key_without_an_effect_says_so(tab: Tab, server: ReviewServer) -> None:
    tab.press("0")
    assert tab.text("status") == "If there is no entity here, press x."
    tab.press("e")
    assert tab.text("status") == "This is all of the text."
    tab.press("j", "j", "j", "j", "j", "0")
    assert tab.text("status") == "To remove the label, press a."
    tab.press("m", "x")
    assert tab.text("status") == "Here a saves the sentence with its labels, and s skips it."
    assert actions(server) == []


def test_a_decision_for_all_equal_strings_needs_no_others(tab: Tab, server: ReviewServer) -> None:
    tab.press("j", "A", "X")
    assert actions(server) == [("accept", 1), ("reject", 2)]
