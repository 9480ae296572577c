"""The commands of the next round, and running them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lacuner.review.next_round import NextRound, describe_inputs, format_commands, next_folder, plan_round

SLEEP = [sys.executable, "-u", "-c", "import time; print('started'); time.sleep(60)"]


def test_commands_name_the_files_of_this_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("my weak.conll", "dev.conll"):
        (tmp_path / name).touch()
    settings, arguments = ['encoder.name="tiny"'], ["--scheme", "IOB2"]
    inputs = describe_inputs([Path("my weak.conll")], Path("dev.conll"), settings, arguments)
    commands = plan_round(Path("run"), inputs)
    assert format_commands(commands) == [
        "lacuner apply run 'my weak.conll' --out run/review/reviewed.jsonl --scheme IOB2",
        "lacuner train --weak run/review/reviewed.jsonl --dev dev.conll --set 'encoder.name=\"tiny\"' --out run-2",
        "lacuner audit issues run-2 --weak run/review/reviewed.jsonl --dev dev.conll --set 'encoder.name=\"tiny\"'",
        "lacuner review run-2",
    ]
    (tmp_path / "run-2").mkdir()
    assert next_folder(Path("run")) == Path("run-3"), "a folder that is there is not used again"


@pytest.mark.parametrize(
    "inputs", [{}, {"weak": ["/no/such/file", __file__]}, {"weak": 7, "settings": None, "arguments": "x"}]
)
def test_without_the_files_the_documents_of_the_queue_are_used(inputs: dict[str, object]) -> None:
    commands = plan_round(Path("run"), inputs)
    assert commands[0] == ["apply", "run", "run/review/documents.jsonl", "--out", "run/review/reviewed.jsonl"]


@pytest.mark.integration
def test_commands_run_one_after_the_other_until_one_fails() -> None:
    program = [sys.executable, "-c", "import sys; print('epoch', sys.argv[1]); sys.exit(sys.argv[1] == '2')"]
    for commands, state, number in (([["1"], ["3"]], "finished", 2), ([["1"], ["2"], ["3"]], "failed", 2)):
        following = NextRound(lambda commands=commands: commands, program)
        following.start()
        assert following._thread is not None
        following._thread.join()
        assert following.progress()["state"] == state and following.progress()["command"] == number
        assert following.progress()["line"] == f"epoch {commands[number - 1][0]}"
        assert following.progress()["output"] == [f"epoch {command[0]}" for command in commands[:number]]


@pytest.mark.integration
def test_a_command_ends_with_the_server() -> None:
    following = NextRound(lambda: [["1"], ["2"]], SLEEP)
    following.start()
    while following.progress()["line"] != "started":
        time.sleep(0.01)
    following.start()  # it is running already
    following.stop()
    assert following.progress()["state"] == "stopped"
    assert following._child is not None and following._child.returncode == -15


ROUND = """
import sys, time
from lacuner.review.next_round import NextRound
code = "from lacuner.processes import end_with_parent; end_with_parent(); import os, time; "
code += "print(os.getpid(), flush=True); time.sleep(600)"
following = NextRound(lambda: [["1"]], [sys.executable, "-c", code])
following.start()
while not following.progress()["line"]:
    time.sleep(0.01)
print(following.progress()["line"], flush=True)
time.sleep(600)
"""


@pytest.mark.integration
def test_a_server_that_is_killed_leaves_no_command_running() -> None:
    with subprocess.Popen([sys.executable, "-c", ROUND], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        child = Path("/proc") / server.stdout.readline().strip()
        assert (child / "stat").exists()
        os.kill(server.pid, signal.SIGKILL)
    for _ in range(3000):
        if not child.exists() or " Z " in (child / "stat").read_text():
            break
        time.sleep(0.02)
    else:
        pytest.fail("the command is still running")
