"""Decisions: nothing is lost, nothing is overwritten, and an undo is a decision too."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lacuner.data import Span
from lacuner.errors import CorpusError
from lacuner.review.decisions import Decision, DecisionLog, Edit, parse_decision, replay, text_hash


def decide(action: str, issue: str = "a", **facts: object) -> Decision:
    return Decision(action, (Edit("1", text_hash("Mara"), issue),), **facts)  # type: ignore[arg-type]


def test_numbers_and_times_are_given_when_a_decision_is_appended(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path / "decisions.jsonl")
    first, second = log.append(decide("accept")), log.append(decide("reject", "b"))
    assert (first.number, second.number) == (1, 2)
    assert first.time > 0
    assert DecisionLog(log.path).read() == [first, second]


def test_only_the_owner_can_read_the_file(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path / "decisions.jsonl")
    log.append(decide("accept"))
    assert log.path.stat().st_mode & 0o777 == 0o600


def test_a_later_decision_wins_and_the_earlier_one_stays_in_the_file(tmp_path: Path) -> None:
    first, second = DecisionLog(tmp_path / "decisions.jsonl"), DecisionLog(tmp_path / "decisions.jsonl")
    first.append(decide("accept", reviewer="tab 1"))
    second.append(decide("reject", reviewer="tab 2"))
    assert [decision.number for decision in first.read()] == [1, 2]
    assert first.state().current["a"][0].action == "reject"
    assert first.path.read_text().count("\n") == 2


def test_undo_restores_what_counted_before_and_can_be_undone(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path / "decisions.jsonl")
    actions = ["accept", "reject", "skip"]
    for action in actions:
        log.append(decide(action))
    for before in reversed(actions[:-1]):
        last = log.state().last()
        assert last is not None
        log.append(Decision("undo", undoes=last.number))
        assert log.state().current["a"][0].action == before
    log.append(Decision("undo", undoes=1))
    assert log.state().current == {}
    assert log.state().last() is None
    log.append(Decision("undo", undoes=6))  # undo the last undo
    assert log.state().current["a"][0].number == 1
    assert len(log.read()) == 7


def test_one_reviewer_does_not_undo_the_decision_of_another() -> None:
    state = replay([decide("accept", number=1, reviewer="x"), decide("reject", "b", number=2, reviewer="y")])
    last = state.last("x")
    assert last is not None and last.number == 1


@pytest.mark.parametrize("number", [2, 7])
def test_undo_of_nothing_is_an_error(tmp_path: Path, number: int) -> None:
    log = DecisionLog(tmp_path / "decisions.jsonl")
    log.append(decide("accept"))
    log.append(decide("skip"))
    log.append(Decision("undo", undoes=2))
    with pytest.raises(CorpusError, match=f"no decision {number} to undo"):
        log.append(Decision("undo", undoes=number))


@pytest.mark.parametrize("rest", [b'{"number": 2, "act', b"\0\0\0\0", b'{"number": 2}'])
def test_a_cut_off_last_line_is_ignored_and_removed_by_the_next_decision(tmp_path: Path, rest: bytes) -> None:
    log = DecisionLog(tmp_path / "decisions.jsonl")
    log.append(decide("accept"))
    whole = log.path.read_bytes()
    log.path.write_bytes(whole + rest)
    fresh = DecisionLog(log.path)
    assert len(fresh.read()) == 1
    assert fresh.append(decide("reject", "b")).number == 2
    assert log.path.read_bytes().startswith(whole + b'{"number": 2')
    assert [decision.number for decision in log.read()] == [1, 2]


def test_a_last_line_that_lacks_only_its_end_is_kept(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path / "decisions.jsonl")
    log.append(decide("accept"))
    log.append(decide("reject", "b"))
    log.path.write_bytes(log.path.read_bytes()[:-1])
    fresh = DecisionLog(log.path)
    assert len(fresh.read()) == 2
    assert fresh.append(decide("skip", "c")).number == 3
    assert [decision.number for decision in DecisionLog(log.path).read()] == [1, 2, 3]
    assert len(fresh.read()) == 3


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("garbage", "not a decision"),
        ('{"number": 1, "action": "explode", "time": 1, "edits": []}', "no action 'explode'"),
        ('{"number": 1, "action": "accept", "time": 1, "edits": []}', "needs at least one edit"),
        ('{"number": 9, "action": "undo", "time": 1, "edits": []}', "an undo needs the number"),
        ('{"action": "skip"}', "there is no 'number'"),
        ("[1, 2]", "not a decision"),
        ('{"number": ' + "9" * 5000 + "}", "not a decision: a number has too many digits$"),
        ('{"number": 1, "action": "accept", "time": 1, "edits": [{"document": "1", "text_hash": "", "spans": '
         '[{"start": 3, "end": 1, "label": "PER"}], "rejected": []}]}', "`start` < `end`"),
    ],
)  # fmt: skip
def test_damage_in_the_middle_is_an_error_with_file_and_line(tmp_path: Path, line: str, problem: str) -> None:
    log = DecisionLog(tmp_path / "decisions.jsonl")
    log.append(decide("accept"))
    good = log.path.read_text()
    log.path.write_text(f"{good}{line}\n{good.replace('1', '5', 1)}")
    with pytest.raises(CorpusError, match=problem) as caught:
        DecisionLog(log.path).read()
    assert str(caught.value).startswith(f"{log.path}:2: ")


def test_numbers_must_increase(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path / "decisions.jsonl")
    log.append(decide("accept"))
    log.path.write_text(log.path.read_text() * 2)
    with pytest.raises(CorpusError, match="decision 1 comes after decision 1"):
        DecisionLog(log.path).read()


def test_json_keeps_every_field() -> None:
    edit = Edit("d", "h", None, (Span(0, 4, "PER", None, "review"),), (Span(5, 9, "", None, "review"),), True)
    decision = Decision("label_sentence", (edit,), None, "tab", 4, 1.5)
    assert parse_decision(json.loads(json.dumps(decision.as_json()))) == decision


ROW = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["number", "action", "time", "edits", "undoes", "document", "text_hash", "spans", "rejected"]
            )
            | st.text(max_size=3),
            inner,
            max_size=5,
        )
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.binary(max_size=30) | ROW.map(lambda row: json.dumps(row).encode()), max_size=4))
def test_any_file_is_read_or_refused_in_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    path = tmp_path_factory.mktemp("decisions") / "decisions.jsonl"
    DecisionLog(path).append(decide("accept"))
    path.write_bytes(path.read_bytes() + b"\n".join(lines))
    log = DecisionLog(path)
    try:
        read = log.read()
    except CorpusError as error:
        assert error.file == str(path) and error.line is not None and error.line >= 2
    else:
        assert log.append(decide("skip")).number == read[-1].number + 1


WRITER = """
import sys
from lacuner.review.decisions import Decision, DecisionLog, Edit
log = DecisionLog(sys.argv[1])
for number in range(int(sys.argv[3])):
    done = log.append(Decision("accept", (Edit("1", "hash", f"{sys.argv[2]}-{number}"),), reviewer=sys.argv[2]))
    print(done.number, flush=True)
"""


def start_writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.integration
def test_two_processes_do_not_overwrite_each_other(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    writers = [start_writer(path, name, 40) for name in ("x", "y")]
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    decisions = DecisionLog(path).read()
    assert [decision.number for decision in decisions] == list(range(1, 81))
    assert len(replay(decisions).current) == 80


@pytest.mark.integration
def test_kill_loses_at_most_the_decision_in_flight(tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    for confirmed in (1, 7, 20):
        path.unlink(missing_ok=True)
        writer = start_writer(path, "x", 100_000)
        assert writer.stdout is not None
        numbers = [int(writer.stdout.readline()) for _ in range(confirmed)]
        os.kill(writer.pid, signal.SIGKILL)
        numbers += [int(line) for line in writer.stdout if line.endswith("\n")]
        writer.wait()
        writer.stdout.close()
        log = DecisionLog(path)
        assert [decision.number for decision in log.read()][: len(numbers)] == numbers
        assert len(log.read()) <= len(numbers) + 1
        assert log.append(decide("skip")).number == len(log.read())
