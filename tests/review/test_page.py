"""The review page in a real browser, with the keyboard and the mouse."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lacuner.data import Document, Span
from lacuner.review.next_round import NextRound
from lacuner.review.queue import ReviewQueue, decision_log, save_queue
from tests.review.conftest import ReviewServer, Tab, many_issues, small_queue

pytestmark = pytest.mark.integration
Serve = Callable[[ReviewQueue], ReviewServer]
OpenTab = Callable[..., Tab]


@pytest.fixture
def server(serve: Serve) -> ReviewServer:
    return serve(small_queue())


@pytest.fixture
def tab(server: ReviewServer, open_tab: OpenTab) -> Tab:
    return open_tab(server.url)


def spans(server: ReviewServer, number: int = -1) -> list[tuple[str, str]]:
    """Text and label of the spans of a decision."""
    return [
        (server.queue.document(edit.doc_id).text[span.start : span.end], span.label)
        for edit in server.decisions()[number].edits
        for span in edit.spans
    ]


def test_accept_reject_and_skip(tab: Tab, server: ReviewServer) -> None:
    assert tab.text("question") == "Label “Halden” as PLACE?"
    tab.press("a")
    assert tab.text("question") == "Change “Halden” PERSON to PLACE?"
    assert tab.text("status") == "Accepted: Halden"
    tab.press("x")
    assert tab.text("question") == "Change “Mara” to “Mara Teel”?"
    tab.press("s")
    assert [decision.action for decision in server.decisions()] == ["accept", "reject", "skip"]
    assert [decision.edits[0].issue for decision in server.decisions()] == [server.issue(i).id for i in range(3)]
    assert tab.text("progress-text") == "2 of 9 decided, 1 skipped"
    assert tab.text("precision").startswith("1 of 2 issues were real: 50 % (9 % to 91 %)")
    assert tab.page.evaluate("document.activeElement.id") == "question"


def test_the_evidence_is_shown(tab: Tab) -> None:
    assert tab.text("reasons").split("\n") == [
        *("source", "model", "model’s probability", "0.970", "gazetteer entry", "Halden (PERSON)"),
        *("this string in the corpus", "1 × PERSON, 3 × not labeled"),
    ]
    assert tab.text("mentions") == "Mara Teel left Halden on Tuesday. Later Teel met the council … PERSON"


def test_every_kind_of_issue_says_what_a_key_does(tab: Tab, server: ReviewServer) -> None:
    seen = {}
    for issue in server.queue.issues[:6]:
        seen[issue.kind] = tab.text("accept"), tab.text("reject"), tab.page.locator("#none").is_visible()
        tab.press("s")
    assert seen == {
        "missing": ("a Accept: PLACE", "x Reject: no entity here", False),
        "wrong_type": ("a Accept: change it", "x Reject: keep PERSON", True),
        "wrong_boundary": ("a Accept: change it", "x Reject: keep PERSON", True),
        "spurious": ("a Accept: remove it", "x Reject: keep PERSON", False),
    }


def test_no_entity_at_all(tab: Tab, server: ReviewServer) -> None:
    tab.press("0")
    assert server.decisions() == [], "a missing label is rejected by x"
    tab.press("j", "0")
    [decision] = server.decisions()
    assert decision.action == "change" and decision.edits[0].spans == ()
    assert [span.label for span in decision.edits[0].rejected] == [""]


def test_the_type_is_changed_by_a_digit(tab: Tab, server: ReviewServer) -> None:
    tab.press("1")
    assert tab.text("question") == "Label “Halden” as COMPANY?"
    assert tab.page.locator("#types [aria-pressed=true]").inner_text() == "1 COMPANY"
    tab.press("9")
    assert tab.text("question") == "Label “Halden” as COMPANY?", "there is no ninth type"
    tab.press("a")
    assert server.decisions()[0].action == "change"
    assert spans(server) == [("Halden", "COMPANY")]


def test_moved_boundaries_hold_only_where_the_same_words_are_around(tab: Tab, server: ReviewServer) -> None:
    tab.press("1")
    assert tab.text("accept-all") == "⇧ A Save for all 3 equal strings"
    tab.press("ArrowLeft")
    assert tab.text("accept-all") == "⇧ A Save for up to 3 equal strings"
    tab.press("A")
    assert spans(server) == [("of Halden", "COMPANY")]
    assert tab.text("status") == "Saved: of Halden"


def test_more_types_than_digits(serve: Serve, open_tab: OpenTab) -> None:
    labels = tuple(f"TYPE{i}" for i in range(12))
    server = serve(many_issues(3, labels))
    tab = open_tab(server.url)
    tab.press("t")
    tab.page.keyboard.type("type1")
    tab.press("ArrowDown", "ArrowDown", "Enter")
    assert tab.text("question") == "Label “Port0” as TYPE11?"
    assert tab.text("other-type") == "t TYPE11"
    tab.press("t", "Escape", "a")
    assert spans(server) == [("Port0", "TYPE11")]


def test_boundaries_move_by_words(tab: Tab, server: ReviewServer) -> None:
    tab.press("ArrowLeft", "Shift+ArrowRight", "Shift+ArrowRight")
    assert tab.marked == "of Halden. The"
    tab.press("ArrowRight", "Shift+ArrowLeft", "Shift+ArrowLeft")
    assert tab.marked == "Halden"
    tab.press("ArrowRight", "Shift+ArrowLeft")
    assert tab.marked == "Halden", "a span never becomes empty"
    tab.press("ArrowLeft", "a")
    assert spans(server) == [("of Halden", "PLACE")]


def test_boundaries_move_by_characters(tab: Tab, server: ReviewServer) -> None:
    tab.press("c", "ArrowRight", "Shift+ArrowLeft")
    assert tab.marked == "alde"
    tab.press("a")
    assert spans(server) == [("alde", "PLACE")]


def test_what_cannot_be_saved_is_said(tab: Tab, server: ReviewServer) -> None:
    tab.press("c", "ArrowLeft", "a")
    assert "starts or ends with white space" in tab.text("banner")
    assert server.decisions() == []
    tab.press("ArrowRight", "a")
    assert not tab.page.locator("#banner").is_visible()
    tab.press("2")
    assert tab.text("question") == "Keep the label PERSON of “Halden”?"
    tab.press("a")
    assert [decision.action for decision in server.decisions()] == ["accept", "change"]
    assert spans(server) == [("Halden", "PERSON")]
    tab.errors.clear()  # the status of the refused request


def test_offsets_behind_emoji_are_right(tab: Tab, server: ReviewServer) -> None:
    tab.press("j", "j", "j")
    assert tab.marked == "Halden"
    tab.press("ArrowLeft")
    assert tab.marked == "names Halden"
    tab.press("Shift+ArrowRight")
    assert tab.marked == "names Halden 👩‍🔬"
    tab.press("a")
    assert spans(server) == [("names Halden 👩‍🔬", "PLACE")]


def test_the_mouse_selects_whole_words(tab: Tab, server: ReviewServer) -> None:
    tab.press(*"jjjjjjjj")
    assert tab.marked == "Orla"
    text = server.queue.document("reports/2").text
    start = len(text[: text.index("Orla")].encode("utf-16-le")) // 2
    tab.select(start + 1, start + 8)
    assert tab.marked == "Orla Finch"
    tab.press("a")
    assert spans(server) == [("Orla Finch", "PERSON")]


def test_arrows_follow_the_eye_from_right_to_left(tab: Tab, server: ReviewServer) -> None:
    tab.press(*"jjjjjj")
    assert tab.marked == "مارا"
    assert tab.page.evaluate("getComputedStyle(document.getElementById('text')).direction") == "rtl"
    tab.press("Shift+ArrowLeft")
    assert tab.marked == "مارا تيل"
    tab.page.locator("#end-right").click()
    assert tab.marked == "مارا", "the buttons move as the keys do"
    tab.page.locator("#end-left").click()
    tab.press("a")
    assert spans(server) == [("مارا تيل", "PERSON")]


def test_chinese_words_are_characters(tab: Tab, server: ReviewServer) -> None:
    tab.press(*"jjjjjjj")
    tab.press("Shift+ArrowRight", "a")
    assert spans(server) == [("李小龙", "PERSON")]


def test_undo_has_no_limit(tab: Tab, server: ReviewServer) -> None:
    tab.press("a", "x", "0", "A", "1", "a", "s")
    decided = len(server.decisions())
    questions = []
    for _ in range(decided):
        tab.press("u")
        questions.append(tab.text("question"))
    assert questions[-1] == "Label “Halden” as PLACE?"
    assert len(set(questions)) >= 4
    assert "COMPANY" in questions[1]
    assert [decision.action for decision in server.decisions()[decided:]] == ["undo"] * decided
    assert server.log.state().current == {}
    assert tab.text("progress-text") == "0 of 9 decided"
    tab.press("u")
    assert tab.text("status") == "There is nothing to undo."


def test_an_undo_whose_answer_is_lost_takes_back_one_decision(
    tab: Tab, server: ReviewServer, open_tab: OpenTab
) -> None:
    """A tab without decisions of its own takes back the latest of all, not two of them."""
    open_tab(server.url, beside=tab).press("a", "x")
    lost: list[str] = []

    def lose_answer(route: Any) -> None:
        if lost:
            route.continue_()
            return
        lost.append(route.fetch().text())
        route.abort()

    tab.intercept("/api/undo", lose_answer)
    tab.page.bring_to_front()
    tab.press("u")
    assert [decision.undoes for decision in server.decisions()] == [None, None, 2]
    assert tab.text("progress-text") == "1 of 9 decided"
    tab.errors.clear()


def test_undo_takes_back_changes_first(tab: Tab, server: ReviewServer) -> None:
    tab.press("a", "1", "ArrowLeft", "u")
    assert tab.text("question") == "Change “Halden” PERSON to PLACE?"
    assert len(server.decisions()) == 1
    tab.press("u")
    assert tab.text("question") == "Label “Halden” as PLACE?"


def test_undo_brings_a_change_back(tab: Tab, server: ReviewServer) -> None:
    tab.press("ArrowLeft", "1", "a", "u")
    assert tab.text("question") == "Label “of Halden” as COMPANY?"
    tab.press("2", "u")
    assert tab.text("question") == "Label “of Halden” as COMPANY?"
    tab.press("a")
    assert spans(server) == [("of Halden", "COMPANY")]


def test_all_equal_strings(tab: Tab, server: ReviewServer) -> None:
    assert tab.text("accept-all") == "⇧ A Accept for all 3 equal strings"
    tab.press("j", "j", "j", "x", "k", "k", "k")
    assert tab.text("accept-all") == "⇧ A Accept for both equal strings", "the rejected one is decided"
    tab.press("A")
    decisions = server.decisions()
    assert [len(decision.edits) for decision in decisions] == [1, 2]
    assert {edit.doc_id for edit in decisions[1].edits} == {"reports/1", "reports/5"}
    assert tab.text("status") == "Accepted: Halden (2 equal strings)"
    assert tab.text("progress-text") == "3 of 9 decided"
    tab.press("u")
    assert tab.text("status") == "Undone for 2 equal strings."
    tab.press("X")
    assert server.decisions()[-1].action == "reject"
    assert not tab.page.locator("#group").is_visible()


def test_a_decision_can_be_changed_later(tab: Tab, server: ReviewServer) -> None:
    tab.press("a")
    tab.page.select_option("#filter-status", "decided")
    tab.wait_for("question", "Label “Halden” as PLACE?")
    assert tab.text("earlier") == "Already accepted. A new decision replaces this one."
    tab.page.locator("h1").click()
    tab.press("x")
    assert server.log.state().current[server.issue(0).id][0].action == "reject"


def test_filters_and_search(tab: Tab, server: ReviewServer) -> None:
    tab.page.select_option("#filter-kind", "spurious")
    tab.wait_for("question", "Remove the label PERSON from “Tuesday”?")
    tab.page.locator("#clear-filters").click()
    tab.wait_for("question", "Label “Halden”")
    tab.page.select_option("#filter-source", label="gazetteer (3)")
    tab.wait_for("question", "Change “Halden”")
    tab.page.locator("#clear-filters").click()
    tab.wait_for("question", "Label “Halden”")
    tab.page.select_option("#filter-label", label="PERSON (6)")
    tab.wait_for("question", "Change “Halden” PERSON")
    tab.page.locator("#clear-filters").click()
    tab.wait_for("question", "Label “Halden”")
    tab.press("/")
    tab.page.keyboard.type("北京")
    tab.wait_for("question", "李小")
    tab.page.keyboard.type("x")
    tab.wait_for("question", "No issue matches the filter.")
    assert server.decisions() == [], "what is typed into the field is not a decision"
    tab.page.keyboard.press("Backspace")
    tab.page.keyboard.press("Enter")
    assert tab.page.evaluate("document.activeElement.id") == "question", "now keys are decisions again"
    tab.wait_for("question", "李小")


def test_the_end_of_the_queue(tab: Tab, server: ReviewServer) -> None:
    tab.press("A", *"xxxxxx")
    assert tab.text("question") == "All issues are decided."
    assert tab.text("facts") == "Press n for the next round, or u to undo."
    assert not tab.page.locator("#accept").is_visible()
    tab.press("u")
    assert tab.text("question") == "Label “Orla” as PERSON?"


def test_a_reload_changes_nothing(tab: Tab, server: ReviewServer) -> None:
    tab.press("a", "x", "j")
    question = tab.text("question")
    tab.page.reload()
    tab.wait_for("question", question)
    assert tab.text("progress-text") == "2 of 9 decided"
    assert "token" not in tab.page.url
    tab.press("u", "u")
    assert server.log.state().current == {}


def test_two_tabs_do_not_overwrite_each_other(tab: Tab, server: ReviewServer, open_tab: OpenTab) -> None:
    other = open_tab(server.url, beside=tab)
    other.press("a")
    tab.page.bring_to_front()
    tab.wait_for("status", "Another tab has decided the issue that was here. Nothing was overwritten.")
    assert "Change “Halden”" in tab.text("question")
    assert tab.text("progress-text") == "1 of 9 decided"
    tab.press("u")
    assert tab.text("question") == "Label “Halden” as PLACE?", "without own decisions, the latest of all is undone"


def test_a_tab_that_is_late_is_refused(tab: Tab, server: ReviewServer, open_tab: OpenTab) -> None:
    """The second tab decides before it has heard of the first tab's decision."""
    tab.intercept("/api/summary", lambda route: route.abort())
    other = open_tab(server.url, beside=tab)
    other.press("a")
    tab.press("x")
    tab.wait_for("status", "Another tab has decided the issue that was here. Nothing was overwritten.")
    assert [decision.action for decision in server.decisions()] == ["accept"]
    tab.press("x")
    own, late = server.decisions()
    assert own.reviewer != late.reviewer
    assert late.edits[0].issue == server.issue(1).id
    tab.press("u")
    assert server.decisions()[-1].undoes == late.number, "its own decision, not the other tab's"
    tab.errors.clear()  # the aborted requests


def test_a_killed_server_loses_nothing(
    tmp_path: Path,
    start_command: Callable[[Path], tuple[subprocess.Popen[str], dict[str, Any]]],
    open_tab: OpenTab,
) -> None:
    save_queue(small_queue(), tmp_path)
    process, facts = start_command(tmp_path)
    tab = open_tab(facts["url"])
    tab.press("a")
    process.send_signal(signal.SIGKILL)
    process.wait()
    tab.page.keyboard.press("x")
    tab.wait_for("banner", "Your last decision is not saved yet")
    assert "Change “Halden” PERSON" in tab.text("question"), "the page does not move on"
    _, again = start_command(tmp_path)
    assert again["url"] == facts["url"]
    tab.wait_for("question", "Mara Teel")
    assert not tab.page.locator("#banner").is_visible()
    assert [decision.action for decision in decision_log(tmp_path).read()] == ["accept", "reject"]
    tab.errors.clear()  # the failed requests


def test_a_decision_that_was_written_before_the_connection_broke_is_not_repeated(
    tab: Tab, server: ReviewServer
) -> None:
    lost: list[str] = []

    def lose_answer(route: Any) -> None:
        if lost:
            route.continue_()
            return
        lost.append(route.fetch().text())
        route.abort()

    tab.intercept("/api/decide", lose_answer)
    tab.press("A")
    assert len(lost) == 1
    assert tab.text("progress-text") == "3 of 9 decided"
    assert len(server.decisions()) == 1
    tab.errors.clear()


def test_a_sentence_is_labeled_with_the_keyboard(tab: Tab, server: ReviewServer) -> None:
    tab.press("m")
    assert tab.text("question") == "Label all entities of this sentence"
    assert tab.text("spans") == "“Mara Teel” PERSON ×"
    tab.press("ArrowRight", "ArrowRight", "ArrowRight", "3")
    tab.press(*["ArrowRight"] * 13, "Shift+ArrowRight", "1")
    assert "“Veyra Company” COMPANY" in tab.text("spans").replace("\n", " ")
    assert tab.text("accept") == "a Save: these 3 and no others"
    tab.press("a")
    [decision] = server.decisions()
    assert decision.action == "label_sentence" and decision.edits[0].complete
    assert spans(server) == [("Mara Teel", "PERSON"), ("Halden", "PLACE"), ("Veyra Company", "COMPANY")]
    assert tab.text("progress-text") == "1 of 3 labeled"
    tab.press("s", "Delete", "ArrowRight")
    tab.press("u", "u", "Delete", "2")
    assert tab.text("spans").startswith("“Mara” PERSON")


def test_a_sentence_is_labeled_with_the_mouse(tab: Tab, server: ReviewServer) -> None:
    tab.page.locator("#mode-sentences").click()
    tab.wait_for("question", "Label all entities")
    tab.press("j")
    text = server.queue.document("reports/2").text
    start = len(text[: text.index("Orla")].encode("utf-16-le")) // 2
    tab.select(start + 1, start + 9)
    tab.page.locator("#types button").nth(1).click()
    assert "“Orla Finch” PERSON" in tab.text("spans").replace("\n", " ")
    tab.page.locator("#accept").click()
    tab.wait_for("status", "Saved with 1 entity.")
    assert spans(server) == [("Orla Finch", "PERSON")]
    tab.press("u")
    tab.click(start, start + 4)
    assert tab.text("status") == "Orla, PERSON"
    tab.click(start - 4, start - 1)
    assert tab.text("status") == "and"


def test_labels_are_removed_and_changed_in_a_sentence(tab: Tab, server: ReviewServer) -> None:
    tab.press("m", "ArrowRight", "3")
    assert tab.text("spans") == "“Mara Teel” PLACE ×", "the whole span gets the new type"
    tab.press("Backspace")
    assert tab.text("accept") == "a Save: no entities"
    tab.press("u", "u")
    assert tab.text("spans") == "“Mara Teel” PERSON ×"
    tab.page.get_by_role("button", name="Remove Mara Teel, PERSON").click()
    tab.press("a")
    assert server.decisions()[0].edits[0].spans == ()


def test_the_page_says_when_to_stop(serve: Serve, open_tab: OpenTab) -> None:
    server = serve(many_issues(40))
    tab = open_tab(server.url)
    tab.press(*"x" * 19)
    assert not tab.page.locator("#advice").is_visible()
    tab.press("x")
    assert tab.text("advice").startswith("Of the last 20 issues only 0 were real (at most 16 %")


def test_offsets_are_converted_in_one_place(tab: Tab) -> None:
    """The module's code points equal Python's, whatever the text."""
    text = "a😀b\u0301👩‍🔬 é\u200fא 𝔘中\r\n x"
    for start in range(len(text)):
        for end in range(start + 1, len(text) + 1):
            got = (
                tab.page.evaluate(
                    """async ([text, start, end]) => {
                    const { TextWindow } = await import("/text.js");
                    return new TextWindow({ text, offset: 7, words: [] }).slice(start + 7, end + 7);
                }""",
                    [text, start, end],
                )
                if (start + end) % 5 == 0
                else text[start:end]
            )
            assert got == text[start:end]


def test_a_sentence_can_be_seen_again(tab: Tab, server: ReviewServer) -> None:
    tab.press("m", "a", "k")
    assert "sentence 1 of 3" in tab.text("facts")
    assert tab.text("earlier") == "Already labeled. Saving replaces the earlier decision."
    tab.press("Delete", "a")
    assert [len(decision.edits[0].spans) for decision in server.decisions()] == [1, 0]
    tab.press("k", "k")
    assert "sentence 3 of 3" in tab.text("facts"), "the number goes round"


def test_the_other_mode_shows_what_it_showed_before(tab: Tab) -> None:
    tab.press("j", "j", "m", "j", "m")
    assert "issue 3 of 9" in tab.text("facts")
    tab.press("m")
    assert "sentence 2 of 3" in tab.text("facts")
    assert tab.text("status") == ""


def test_a_selected_word_is_where_the_cursor_goes_on(tab: Tab, server: ReviewServer) -> None:
    tab.press("m", "j")
    start = server.queue.document("reports/2").text.index("Orla") + 4  # UTF-16 units before it: 4 emoji of two
    tab.select(start + 1, start + 9)
    assert tab.text("status") == "Selected: Orla Finch. Choose a type."
    tab.press("Shift+ArrowRight")
    assert tab.text("status") == "Orla Finch twice"


def test_equal_strings_are_listed(tab: Tab) -> None:
    assert tab.text("others").split("\n") == [
        "😀 The report 🏴‍☠️ names Halden 👩‍🔬 and Orla Finch twice.",
        "Tuesday was quiet in Halden.",
    ]
    tab.press("j")
    assert not tab.page.locator("#others-title").is_visible()


def test_a_page_is_loaded_again_if_the_server_has_another_queue(
    tab: Tab, server: ReviewServer, serve: Callable[..., ReviewServer]
) -> None:
    """Its numbers of types and sentences mean something else there."""
    tab.page.select_option("#filter-label", index=3)
    tab.press("m", "3")
    server.stop()
    other = small_queue()
    other = ReviewQueue(other.issues[::-1], other.documents, other.sentences[::-1], ("ANIMAL", *other.labels))
    again = serve(other, run=server.run)
    assert again.url == server.url
    tab.press("a")
    tab.wait_for("status", "There is a new queue. A decision that was not saved yet is lost.")
    assert again.decisions() == []
    assert tab.page.locator("#types button").first.inner_text() == "1 ANIMAL"
    tab.press("m", "a")
    assert again.decisions()[0].edits[0].issue == other.issues[0].id
    tab.errors.clear()  # the refused requests


def test_a_random_sample_ends_with_scores(serve: Callable[..., ReviewServer], open_tab: OpenTab) -> None:
    queue = small_queue()
    sample = ReviewQueue((), queue.documents, queue.sentences, queue.labels, {"sample": {}})
    print_scores = [sys.executable, "-c", "print('precision 0.9'); print('recall 0.5')"]
    tab = open_tab(serve(sample, NextRound(lambda: [["evaluate"]], print_scores)).url)
    assert tab.text("next-round") == "n Scores"
    tab.press("n")
    assert "random sample" in tab.text("round-dialog") and "trains" not in tab.text("round-dialog")
    tab.press("Enter")
    tab.wait_for("round-progress", "Finished.")
    assert tab.text("round-output") == "precision 0.9\nrecall 0.5"
    assert "Ctrl-C" not in tab.text("round-progress")
    tab.page.locator("#round-start").click()
    tab.wait_for("round-progress", "Finished.")


def test_a_long_document_is_sent_in_parts(serve: Serve, open_tab: OpenTab) -> None:
    from lacuner.audit.issues import new_issue
    from lacuner.review.queue import Sentence

    start = 700_000
    doc = Document("long", "word " * (start // 5) + "Halden " + "word " * 60_000)
    issue = new_issue("missing", doc, Span(start, start + 6, "PLACE"), (), 0.9)
    server = serve(ReviewQueue((issue,), {"long": doc}, (Sentence("long", 0.5, ()),), ("PLACE",)))
    tab = open_tab(server.url)
    assert tab.marked == "Halden"
    shown = len(tab.page.evaluate("document.getElementById('text').textContent"))
    assert shown < 1_000
    tab.press("e")
    assert 2_000 < len(tab.page.evaluate("document.getElementById('text').textContent")) < 3_000
    assert tab.page.locator("#mode-sentences").is_disabled(), "a document of a million characters is not a sentence"
    tab.press("a")
    assert spans(server) == [("Halden", "PLACE")]


def test_a_long_queue_costs_no_more_than_a_short_one(serve: Serve, open_tab: OpenTab) -> None:
    sizes = []
    for number in (10, 20_000):
        server = serve(many_issues(number))
        page_bytes: list[int] = []
        tab = open_tab(server.url)
        tab.page.on("response", lambda response, seen=page_bytes: seen.append(len(response.body())))
        tab.page.reload()
        tab.wait_for("question", "Label “Port0”")
        tab.press("a")
        assert len(page_bytes) <= 14
        sizes.append(sum(page_bytes))
    assert sizes[1] < sizes[0] + 3_000
    assert sizes[1] < 80_000


def test_the_next_round_starts_from_the_page(serve: Callable[..., ReviewServer], open_tab: OpenTab) -> None:
    program = [sys.executable, "-u", "-c", "import sys; print('epoch', sys.argv[1]); sys.exit(sys.argv[1] == '3')"]
    tab = open_tab(serve(small_queue(), NextRound(lambda: [["1"], ["2"]], program)).url)
    tab.press("a", "n")
    assert tab.text("round-summary") == "Decided issues: 1. Labeled sentences: 0."
    assert tab.text("round-commands") == "lacuner 1\nlacuner 2"
    tab.press("Enter")
    tab.wait_for("round-progress", "Finished.")
    tab.press("Escape", "a")
    assert tab.text("progress-text") == "2 of 9 decided"
    failing = open_tab(serve(small_queue(), NextRound(lambda: [["1"], ["3"], ["4"]], program)).url)
    failing.press("n", "Enter")
    failing.wait_for("round-progress", "Failed at command 2 of 3: epoch 3")


def test_a_queue_of_sentences_only(serve: Serve, open_tab: OpenTab) -> None:
    queue = small_queue()
    tab = open_tab(serve(ReviewQueue((), queue.documents, queue.sentences, queue.labels)).url)
    tab.wait_for("question", "Label all entities of this sentence")
    assert tab.page.locator("#mode-issues").is_disabled()
    tab.press("m", "a", "a", "s")
    assert tab.text("question") == "All sentences are labeled."
    assert tab.text("progress-text") == "2 of 3 labeled, 1 skipped"
