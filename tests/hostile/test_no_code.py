"""T1 (a): nothing in the source could run code that comes from a file."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

import lacuner

SOURCE = Path(lacuner.__file__).parent
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib", "yaml", "code", "runpy"}
CALLS = {"eval", "exec", "compile", "__import__"}
ATTRIBUTES = {
    *(("torch", name) for name in ("load", "save", "jit", "package", "hub")),
    *(("importlib", name) for name in ("import_module", "__import__", "machinery")),
    *((numpy, name) for numpy in ("np", "numpy") for name in ("load", "save", "savez")),
    *(("importlib.util", name) for name in ("module_from_spec", "spec_from_file_location")),
    ("os", "system"),
    ("os", "popen"),
    ("builtins", "eval"),
    ("builtins", "exec"),
}
"""Attributes of modules, which may be imported by name, too."""
MUST_BE = {"trust_remote_code": (False,), "allow_pickle": (False,), "shell": (False,), "use_safetensors": (True,)}
"""Arguments, also as keys of a dictionary of arguments, and the only constants that they may be."""


def offences(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [alias.name for alias in node.names]
            if module.split(".")[0] in MODULES:
                found.append(module)
            found += [f"from {module} import {name}" for name in names if (module, name) in ATTRIBUTES or name == "*"]
        elif isinstance(node, ast.Dict):
            keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
            found += _wrong_constants(zip(keys, node.values, strict=True))
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in CALLS:
                found.append(node.func.id)
            found += _wrong_constants((keyword.arg, keyword.value) for keyword in node.keywords)
        elif isinstance(node, ast.Attribute) and (ast.unparse(node.value), node.attr) in ATTRIBUTES:
            found.append(ast.unparse(node))
    return found


def _wrong_constants(arguments: Iterable[tuple[object, ast.expr]]) -> list[str]:
    return [
        f"{name}={ast.unparse(node)}"
        for name, node in arguments
        if isinstance(name, str) and name in MUST_BE
        if not isinstance(node, ast.Constant) or not any(node.value is value for value in MUST_BE[name])
    ]


def test_the_scan_finds_what_it_looks_for() -> None:
    bad = "import pickle\nfrom joblib import load\neval('1')\ntorch.load(x)\n"
    bad += "f(trust_remote_code=True)\nf(allow_pickle=flag)"
    bad += "\nfrom torch import load\nfrom importlib import import_module\nf(**{'trust_remote_code': True})"
    bad += "\nf(use_safetensors=None)\nfrom pickle import *\nfrom torch import *\nd = {'use_safetensors': False}"
    assert len(offences(ast.parse(bad))) == 14
    assert not offences(ast.parse("model.eval()\nre.compile('x')\nf(trust_remote_code=False)"))


def test_no_module_can_run_code_from_files() -> None:
    files = sorted(SOURCE.rglob("*.py"))
    assert len(files) > 20
    for file in files:
        assert not offences(ast.parse(file.read_text(encoding="utf-8"))), file
