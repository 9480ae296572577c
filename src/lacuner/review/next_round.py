"""The next round: apply the decisions to the weak labels, train on the result, and find its label issues."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Literal

from lacuner.review.queue import DOCUMENTS, FOLDER

Command = list[str]
"""A command without the name of the program: `["train", "--weak", ...]`."""
REVIEWED = "reviewed.jsonl"
_MAX_LINE, _MAX_LINES = 300, 15


def describe_inputs(
    weak: Iterable[Path], dev: Path | None, settings: Iterable[str], arguments: Iterable[str]
) -> dict[str, Any]:
    """What the commands of the next round need to know about the inputs of this one, as JSON.

    `settings` are those of the encoder; `arguments` say how the files are read.

    >>> describe_inputs([Path("/data/weak.jsonl")], None, ['encoder.name="tiny"'], [])["weak"]
    ['/data/weak.jsonl']
    """
    return {
        "weak": [str(path.resolve()) for path in weak],
        "dev": None if dev is None else str(dev.resolve()),
        "settings": list(settings),
        "arguments": list(arguments),
    }


def plan_round(run: Path, inputs: Mapping[str, Any]) -> list[Command]:
    """The commands of the next round. It goes to a new run folder: `runs/a` is followed by `runs/a-2`.

    >>> inputs = describe_inputs([], None, [], [])
    >>> [shlex.join(command) for command in plan_round(Path("runs/a-2"), inputs)][1]
    'train --weak runs/a-2/review/reviewed.jsonl --out runs/a-3'
    """
    weak, reading = _strings(inputs.get("weak")), _strings(inputs.get("arguments"))
    if not weak or not all(Path(path).exists() for path in weak):
        # they have moved, or came from a pipe; the queue has the same documents
        weak, reading = [str(run / FOLDER / DOCUMENTS)], []
    reviewed, following = str(run / FOLDER / REVIEWED), str(next_folder(run))
    options = ["--dev", _relative(str(inputs["dev"]))] if inputs.get("dev") else []
    for setting in _strings(inputs.get("settings")):
        options += ["--set", setting]
    return [
        ["apply", str(run), *map(_relative, weak), "--out", reviewed, *reading],
        ["train", "--weak", reviewed, *options, "--out", following],
        ["audit", "issues", following, "--weak", reviewed, *options],
    ]


def next_folder(run: Path) -> Path:
    """The run folder of the next round, which does not exist yet.

    >>> [next_folder(Path(run)).name for run in ("first", "first-2", "a-b")]
    ['first-2', 'first-3', 'a-b-2']
    """
    run = run.resolve() if run.name in ("", "..") else run
    match = re.fullmatch(r"(.*)-([1-9][0-9]{0,5})", run.name)
    name, number = (match[1], int(match[2])) if match else (run.name, 1)
    return next(path for i in count(number + 1) if not (path := run.with_name(f"{name}-{i}")).exists())


def format_commands(commands: Iterable[Command]) -> list[str]:
    """The commands as a user would type them, with the review of the label issues that the last one finds.

    >>> format_commands([["audit", "issues", "a b"]])
    ["lacuner audit issues 'a b'", "lacuner review 'a b'"]
    """
    commands = list(commands)
    reviews = [["review", command[2]] for command in commands[-1:] if command[:2] == ["audit", "issues"]]
    return [shlex.join(["lacuner", *command]) for command in [*commands, *reviews]]


def _strings(value: Any) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def _relative(path: str) -> str:
    """A path as seen from here, if it is below here."""
    with suppress(ValueError):
        return str(Path(path).relative_to(Path.cwd()))
    return path


_PROGRAM = "from lacuner.processes import end_with_parent; end_with_parent(); from lacuner.cli.main import main; main()"


class NextRound:
    """Runs commands one after the other in the background, and knows how far they are.

    `plan` gives the commands each time they are shown or started: after a failure, they name another folder. They are
    run by `program`; `-P` keeps Python from importing modules of the current folder. They end with this process.

    >>> NextRound(lambda: []).progress()
    {'state': 'not started', 'command': 0, 'commands': 0, 'line': '', 'output': []}
    """

    def __init__(
        self, plan: Callable[[], Sequence[Command]], program: Sequence[str] = (sys.executable, "-P", "-c", _PROGRAM)
    ) -> None:
        self._plan, self._program = plan, list(program)
        self._commands: list[Command] = []
        self._state: Literal["not started", "running", "finished", "failed", "stopped"] = "not started"
        self._number = 0
        self._output: deque[str] = deque(maxlen=_MAX_LINES)
        self._child: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Run the commands, unless they are running."""
        if self._state != "running":
            self._commands = list(self._plan())
            self._state, self._number = "running", 0
            self._output.clear()
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def commands(self) -> list[Command]:
        """The commands that are running or finished, or those that `start` would run."""
        return self._commands if self._state in ("running", "finished") else list(self._plan())

    def progress(self) -> dict[str, Any]:
        """State, number of the command that is running, the last line that it printed, and the last lines of all."""
        facts = {"state": self._state, "command": self._number, "commands": len(self._commands)}
        output = self._output.copy()
        return facts | {"line": output[-1].strip() if output else "", "output": list(output)}

    def stop(self) -> None:
        """End the commands."""
        if self._state == "running":
            self._state = "stopped"
            if self._child is not None:
                self._child.terminate()
            if self._thread is not None:
                self._thread.join()

    def _run(self) -> None:
        for number, command in enumerate(self._commands, 1):
            self._number = number
            if self._state != "running" or not self._run_command(command):
                self._state = "stopped" if self._state == "stopped" else "failed"
                return
        self._state = "finished"

    def _run_command(self, command: Command) -> bool:
        # standard input stays open as long as this process lives: a server that is killed leaves no command running
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        # a session of its own: Ctrl-C reaches the server only, which then ends the command properly
        with subprocess.Popen(
            [*self._program, *command], encoding="utf-8", errors="replace", start_new_session=True, **pipes
        ) as child:
            self._child = child
            if self._state != "running":  # stopped meanwhile
                child.terminate()
            for line in child.stdout or ():
                if line.strip():
                    self._output.append(line.rstrip()[:_MAX_LINE])
        return child.returncode == 0
