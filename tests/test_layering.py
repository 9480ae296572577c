"""T15: imports point one way, heavy libraries stay where they belong, and nothing grows without a reason."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import lacuner

SOURCE = Path(lacuner.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
# as in ARCHITECTURE.md: each may import from what stands before it, and from itself
LAYERS = [
    {"data"},
    {"errors"},
    {"atomic", "processes"},
    {"config"},
    {"reporting"},
    {"corpus"},
    {"evaluate"},
    {"noise", "annotate", "demo"},
    {"advice"},
    {"models"},
    {"losses", "sampling"},
    {"training"},
    {"pretraining"},
    {"techniques"},
    {"recipes"},
    {"trainer"},
    {"audit"},
    {"bench"},
    {"cli", "api"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
# library -> the only places that may import it
HEAVY = {
    "torch": {
        "models",
        "losses",
        "sampling",
        "training",
        "pretraining",
        "techniques",
        "recipes",
        "trainer",
        "audit",
        "bench",
    },
    "transformers": {"models/encoders/huggingface.py", "models/encoders/huggingface_mlm.py"},
    "spacy": {"corpus/docbin.py"},
    "typer": {"cli"},
    "rich": {"cli"},
}
# module -> why it may be longer than 350 lines
LONG_MODULES: dict[str, str] = {}
# function -> why it may be longer than 60 lines
LONG_FUNCTIONS: dict[str, str] = {}


def imports(tree: ast.AST) -> list[str]:
    """All modules imported anywhere, but for those that only the type checker sees."""
    found: list[str] = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
            found += [f"{node.module}.{alias.name}" for alias in node.names if node.module == "lacuner"]
        else:
            found += imports(node)
    return found


def layer(file: Path) -> str:
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_imports_point_one_way(file: Path) -> None:
    mine = layer(file)
    if mine in ("__init__", "__main__"):
        return
    assert mine in RANK, f"{mine} has no place in the layers"
    place = file.relative_to(SOURCE).as_posix()
    for name in imports(ast.parse(file.read_text(encoding="utf-8"))):
        parts = name.split(".")
        if parts[0] in HEAVY:
            allowed = HEAVY[parts[0]]
            assert mine in allowed or place in allowed, f"{place} imports {name}"
        if parts[0] != "lacuner" or len(parts) == 1 or parts[1] not in RANK:
            continue
        theirs = parts[1]
        assert RANK[theirs] < RANK[mine] or theirs == mine, f"{mine} imports {theirs}"


def test_there_are_modules_to_look_at() -> None:
    assert len(FILES) > 25


LAZY = """
import sys
import lacuner, lacuner.corpus, lacuner.evaluate, lacuner.noise, lacuner.cli.main
print(*sorted({"torch", "transformers", "spacy", "matplotlib", "pandas", "sklearn"} & set(sys.modules)))
"""


def test_starting_is_light() -> None:
    done = subprocess.run([sys.executable, "-c", LAZY], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def body_lines(function: ast.FunctionDef) -> int:
    """Lines after the signature and the docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_sizes(file: Path) -> None:
    place = file.relative_to(SOURCE).as_posix()
    text = file.read_text(encoding="utf-8")
    if place not in LONG_MODULES:
        assert text.count("\n") <= 350, place
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            name = f"{place}:{node.name}"
            if name not in LONG_FUNCTIONS:
                assert body_lines(node) <= 60, name
            count = len([arg for arg in (*node.args.args, *node.args.kwonlyargs) if arg.arg not in ("self", "cls")])
            assert count <= 7 or layer(file) == "cli", name


def test_no_module_is_a_drawer() -> None:
    names = {file.stem for file in FILES}
    assert not names & {"utils", "util", "helpers", "misc", "common"}


def test_no_print_outside_the_command_line() -> None:
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                assert layer(file) == "cli", file
