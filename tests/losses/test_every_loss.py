"""Conformance of the modules in `lacuner.losses`: each is documented like its neighbours and has its own tests."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

import pytest

import lacuner.losses

HEADINGS = ("What it does:", "Assumes:", "Departs from the authors:", "Reference:")
MODULES = sorted(file.stem for file in Path(lacuner.losses.__file__).parent.glob("[!_]*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_every_loss_has_the_headings_and_an_example(name: str) -> None:
    module = import_module(f"lacuner.losses.{name}")
    docstrings = {
        key: function.__doc__ or ""
        for key, function in vars(module).items()
        if inspect.isfunction(function) and function.__module__ == module.__name__ and not key.startswith("_")
    }
    assert any(all(heading in text for heading in HEADINGS) for text in docstrings.values()), f"headings: {HEADINGS}"
    assert not [key for key, text in docstrings.items() if ">>> " not in text], "functions without an example"


@pytest.mark.parametrize("name", MODULES)
def test_every_module_has_its_tests(name: str) -> None:
    imported = f"from lacuner.losses.{name} import"
    files = [file.read_text(encoding="utf-8") for file in Path(__file__).parent.glob("test_*.py")]
    tests = [text for text in files if imported in text]
    assert tests, f"no file in tests/losses imports lacuner.losses.{name}"
    assert any("gradcheck" in text for text in tests), f"the gradient of lacuner.losses.{name} is not checked"
