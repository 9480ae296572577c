"""T15: imports point one way, heavy libraries stay where they belong, modules stay small, one function writes files.

Each test reads every module and reports all violations at once.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lacuner
from tests.conftest import ROOT

SOURCE = Path(lacuner.__file__).parent
FILES = {file.relative_to(SOURCE).as_posix(): file for file in sorted(SOURCE.rglob("*.py"))}
TREES = {place: ast.parse(file.read_text(encoding="utf-8")) for place, file in FILES.items()}
# as in ARCHITECTURE.md: a package may import from the layers above it in this list, and from itself
LAYERS = [
    {"data"},
    {"errors"},
    {"atomic", "processes"},
    {"mapped"},
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
    {"serve"},
    {"review"},
    {"export"},
    {"bench"},
    {"scale"},
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
        "export",
        "bench",
        "scale",
    },
    "transformers": {
        "models/encoders/huggingface.py",
        "models/encoders/huggingface_mlm.py",
        "export/huggingface.py",
        "export/proof_worker.py",
    },
    "spacy": {
        "corpus/docbin.py",
        "annotate/spacy_source.py",
        "export/spacy_component.py",
        "export/spacy_pipeline.py",
        "export/proof_worker.py",
    },
    "onnx": {"export/onnx_graph.py"},
    "onnxruntime": {"export"},
    "pyarrow": {"corpus/parquet.py"},
    "ray": {"scale/ray_engine.py"},
    "upath": {"scale/locations.py"},
    "typer": {"cli"},
    "rich": {"cli", "api"},
    "starlette": {"serve", "review"},
    "uvicorn": {"serve"},
    "fastapi": {"serve"},
    "prometheus_client": {"serve"},
}
# module -> why it may be longer than 350 lines
LONG_MODULES: dict[str, str] = {}
# function -> why it may be longer than 60 lines
LONG_FUNCTIONS: dict[str, str] = {}
# function -> why it may have more than 7 parameters
WIDE_FUNCTIONS = {
    "api/taggers.py:train": "the interface for users: data and options, all by keyword",
    "api/taggers.py:distil": "the same",
    "trainer/train.py:train": "the same one level below",
}


def imports(tree: ast.AST) -> list[str]:
    """All modules imported anywhere in a module, except those under `if TYPE_CHECKING`."""
    modules: list[str] = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.append(node.module)
            modules += [f"{node.module}.{alias.name}" for alias in node.names if node.module == "lacuner"]
        else:
            modules += imports(node)
    return modules


def package(place: str) -> str:
    """The package or top-level module that a file belongs to."""
    return place.partition("/")[0].removesuffix(".py")


def report(violations: list[str]) -> str:
    return f"{len(violations)} violations:\n" + "\n".join(violations)


def test_imports_point_one_way() -> None:
    assert len(FILES) > 25
    violations = []
    for place, tree in TREES.items():
        importer = package(place)
        if importer in ("__init__", "__main__"):
            continue
        if importer not in RANK:
            violations.append(f"{place}: {importer} is not in LAYERS")
            continue
        for name in imports(tree):
            library, _, rest = name.partition(".")
            if library in HEAVY and not {importer, place} & HEAVY[library]:
                violations.append(f"{place}: may not import {library}")
            imported = rest.partition(".")[0]
            if library == "lacuner" and imported in RANK and imported != importer and RANK[imported] >= RANK[importer]:
                violations.append(f"{place}: {importer} may not import {name}")
    assert not violations, report(violations)


def body_lines(function: ast.FunctionDef) -> int:
    """Lines after the signature and the docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_sizes() -> None:
    violations = []
    for place, tree in TREES.items():
        lines = FILES[place].read_text(encoding="utf-8").count("\n")
        if lines > 350 and place not in LONG_MODULES:
            violations.append(f"{place}: {lines} lines, at most 350")
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef):
                continue
            name = f"{place}:{node.name}"
            if body_lines(node) > 60 and name not in LONG_FUNCTIONS:
                violations.append(f"{name}: {body_lines(node)} lines, at most 60")
            parameters = [arg for arg in (*node.args.args, *node.args.kwonlyargs) if arg.arg not in ("self", "cls")]
            if len(parameters) > 7 and package(place) != "cli" and name not in WIDE_FUNCTIONS:
                violations.append(f"{name}: {len(parameters)} parameters, at most 7")
    assert not violations, report(violations)


LAZY = """
import sys
import lacuner, lacuner.corpus, lacuner.evaluate, lacuner.noise, lacuner.cli.main
heavy = {"torch", "transformers", "spacy", "srsly", "pyarrow", "zstandard", "matplotlib", "pandas", "sklearn", "ray"}
heavy |= {"fastapi", "starlette", "uvicorn", "prometheus_client"}
print(*sorted(heavy & set(sys.modules)))
"""


@pytest.mark.integration
def test_starting_imports_no_heavy_library() -> None:
    done = subprocess.run([sys.executable, "-c", LAZY], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_no_catch_all_modules() -> None:
    names = {file.stem for file in FILES.values()}
    assert not names & {"utils", "util", "helpers", "misc", "common", "parts"}


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Every call with the name of the called function or method."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
            if name:
                yield name, node


def test_no_print_outside_the_command_line() -> None:
    violations = [
        f"{place}:{call.lineno}"
        for place, tree in TREES.items()
        for name, call in calls(tree)
        if name == "print" and isinstance(call.func, ast.Name) and package(place) != "cli"
    ]
    assert not violations, report(violations)


def test_text_for_the_terminal_goes_through_the_console() -> None:
    """Its functions make control characters visible; those of typer and click do not if the output is a terminal."""
    violations = []
    for place, tree in TREES.items():
        if package(place) != "cli" or place == "cli/console.py":
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("typer", "click", "rich"):
                names = {name.name for name in node.names} & {"echo", "secho", "print"}
            elif isinstance(node, ast.Attribute):
                names = {ast.unparse(node)} & {"typer.echo", "typer.secho", "click.echo", "sys.stdout.write"}
            else:
                continue
            violations += [f"{place}:{node.lineno}: {name}" for name in names]
    assert not violations, report(violations)


def opens_for_writing(call: ast.Call) -> bool:
    """Whether a mode among the arguments of `open` says so."""
    arguments = [*call.args, *[keyword.value for keyword in call.keywords if keyword.arg == "mode"]]
    modes = [arg.value for arg in arguments if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    return any(len(mode) <= 3 and set(mode) & set("wax+") for mode in modes)


def test_all_files_are_written_by_atomic() -> None:
    """The kill tests interrupt the one function that replaces files; a writer that bypasses it would not be tested.

    An empty lock file is the exception.
    """
    violations = []
    for place, tree in TREES.items():
        for name, call in calls(tree):
            writes = name in ("write_text", "write_bytes", "save_file")
            writes |= name in ("open", "fdopen") and opens_for_writing(call)
            if writes and place != "atomic.py" and ".lock" not in ast.unparse(call):
                violations.append(f"{place}:{call.lineno}: {ast.unparse(call)}")
    assert not violations, report(violations)


@pytest.mark.integration
def test_child_processes_import_this_checkout() -> None:
    code = "import lacuner; print(lacuner.__file__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert Path(done.stdout.strip()) == Path(lacuner.__file__) == ROOT / "src" / "lacuner" / "__init__.py"
