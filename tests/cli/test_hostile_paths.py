"""Whatever path a command is given, it ends with one sentence: names too long, loops, NUL, folders for files."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, get_args, get_origin

import pytest
from typer.models import ArgumentInfo, OptionInfo

from lacuner.cli.main import COMMANDS
from lacuner.cli.options import flatten_options
from lacuner.corpus import write
from lacuner.data import Document, Span
from tests.cli.conftest import Run

LONG = "x" * 300
PATHS = {"name of 300 characters": LONG, "path of 5,000": f"{'y' * 200}/" * 25, "loop": "loop/x", "NUL": "a\0b"}
VALUES = {"recipe": "trust", "to": "spacy", "run": "corpus.jsonl"}
"""Values of required parameters that are no files of a corpus."""


def is_path(parameter: inspect.Parameter) -> bool:
    kinds = get_args(parameter.annotation)[:1] if get_origin(parameter.annotation) is Annotated else ()
    return any(kind is Path or Path in get_args(kind) or list[Path] in get_args(kind) for kind in kinds)


def arguments(parameter: inspect.Parameter, value: str) -> list[str]:
    info = next(part for part in get_args(parameter.annotation) if isinstance(part, ArgumentInfo | OptionInfo))
    if isinstance(info, ArgumentInfo):
        return [value]
    names = [name for name in (info.default, *(info.param_decls or ())) if str(name).startswith("--")]
    return [names[0] if names else f"--{parameter.name.rstrip('_').replace('_', '-')}", value]


def cases(name: str, bad: str) -> Iterator[list[str]]:
    """The bad path for each parameter of a command that is a path, beside valid values of the required ones."""
    parameters = list(inspect.signature(flatten_options(COMMANDS[name]), eval_str=True).parameters.values())
    required = [parameter for parameter in parameters if parameter.default is inspect.Parameter.empty]
    for target in filter(is_path, parameters):
        given = []
        for other in required:
            if other is not target:
                good = "new.jsonl" if other.name == "out" else "corpus.jsonl"
                given += arguments(other, VALUES.get(other.name, good))
        yield [*given, *arguments(target, bad)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(
        [Document("1", "Mara Teel left Halden.", spans=(Span(0, 9, "PER"),), complete=True)], tmp_path / "corpus.jsonl"
    )
    (tmp_path / "loop").symlink_to("loop")
    return tmp_path


@pytest.mark.parametrize("name", COMMANDS)
def test_any_path_is_refused_in_one_sentence(name: str, folder: Path, run: Run) -> None:
    tried = 0
    for bad in PATHS.values():
        for given in cases(name, bad):
            done = run(*name.split(), *given, status=2)
            *_, last = (done.stderr or done.stdout).strip().splitlines()
            assert last.startswith(("lacuner: ", "Error: Invalid value")) or name == "check", (given, last)
            assert "Traceback" not in done.stderr
            tried += 1
    assert tried >= len(PATHS)
    assert not [file for file in os.listdir(folder) if file.endswith(".part")]


EVIL = "\x1b]0;title\x07\x1b[2J\x9b31m\r"
PRINTED = {
    "check evil.jsonl": 2,
    "check evil.jsonl --fix --out fixed.jsonl": 0,
    "convert evil.jsonl out.conll": 0,
    "evaluate evil.jsonl --gold evil.jsonl": 0,
    "evaluate other.jsonl --gold evil.jsonl": 0,
    "noise measure evil.jsonl --gold other.jsonl": 0,
    "noise corrupt evil.jsonl --drop 0.5 --out weak.jsonl": 0,
    "recipes --for evil.jsonl": 0,
    "dictionary build evil.tsv --out terms.tsv": 0,
}


@pytest.mark.parametrize("command", PRINTED)
@pytest.mark.parametrize("json", [False, True])
def test_no_command_sends_control_characters_of_a_file_to_the_terminal(
    command: str, json: bool, folder: Path, run: Run
) -> None:
    text = f"Mara{EVIL} left Halden."
    spans = (Span(0, 4, f"PER{EVIL}"), Span(1, 3, f"PER{EVIL}"))
    docs = [Document(f"{number}{EVIL}", text, spans=spans, complete=True) for number in range(3)]
    write(docs, folder / "evil.jsonl")
    place = Span(len(text) - 7, len(text) - 1, f"LOC{EVIL}")
    write([Document(doc.id, text, spans=(place,)) for doc in docs], folder / "other.jsonl")
    (folder / "evil.tsv").write_text(f"Mara\tPER{EVIL.strip()}\nleft\tX{EVIL.strip()}\nleft\tY\n")
    done = run(*command.split(), *["--json"] * json, status=PRINTED[command])
    assert done.stdout + done.stderr and "Traceback" not in done.stderr
    assert not set(done.stdout + done.stderr) & set("\x1b\x07\x9b\r")
