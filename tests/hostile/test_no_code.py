"""T1 (a): nothing in the source could run code that comes from a file."""

from __future__ import annotations

import ast
from pathlib import Path

import lacuner

SOURCE = Path(lacuner.__file__).parent
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib", "yaml", "code", "runpy"}
CALLS = {"eval", "exec", "compile", "__import__"}
ATTRIBUTES = {("torch", "load"), ("torch", "save"), ("importlib", "import_module"), ("np", "load"), ("numpy", "load")}


def offences(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in MODULES:
            found.append(str(node.module))
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in CALLS:
                found.append(node.func.id)
            for keyword in node.keywords:
                value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
                if keyword.arg in ("trust_remote_code", "allow_pickle", "shell") and value is not False:
                    found.append(f"{keyword.arg}={ast.unparse(keyword.value)}")
        elif isinstance(node, ast.Attribute) and (ast.unparse(node.value), node.attr) in ATTRIBUTES:
            found.append(ast.unparse(node))
    return found


def test_the_scan_finds_what_it_looks_for() -> None:
    bad = "import pickle\nfrom joblib import load\neval('1')\ntorch.load(x)\n"
    bad += "f(trust_remote_code=True)\nf(allow_pickle=flag)"
    assert len(offences(ast.parse(bad))) == 6
    assert not offences(ast.parse("model.eval()\nre.compile('x')\nf(trust_remote_code=False)"))


def test_no_module_can_run_code_from_files() -> None:
    files = sorted(SOURCE.rglob("*.py"))
    assert len(files) > 20
    for file in files:
        assert not offences(ast.parse(file.read_text(encoding="utf-8"))), file
