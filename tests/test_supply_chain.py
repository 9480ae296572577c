"""What is installed: every range is bounded, torch is new enough, and the lock file agrees with the exact versions."""

from __future__ import annotations

import re
import tomllib

from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
RANGES = [*PROJECT["dependencies"], *(item for items in EXTRAS.values() for item in items)]


def name_of(requirement: str) -> str:
    return re.split(r"[<>=\[; ]", requirement)[0].lower().replace("_", "-")


def test_every_range_has_an_upper_bound() -> None:
    assert len(RANGES) > 25
    assert [item for item in RANGES if "<" not in item.partition(";")[0]] == []


def test_torch_has_the_fixes_of_the_published_advisories() -> None:
    assert any(item.startswith("torch>=2.10,") for item in PROJECT["dependencies"])


def test_every_direct_dependency_has_an_exact_version() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    exact = {name_of(line) for line in lines if line and not line.startswith("#")}
    assert {name_of(item) for item in RANGES} <= exact


def test_the_lock_file_has_the_same_versions_and_no_addresses() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in text
    locked = dict(re.findall(r"^(\S+)==(\S+) --hash=sha256:[0-9a-f]{64}$", text, re.MULTILINE))
    exact = dict(re.findall(r"^([^#=\s]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    exact = {name_of(name): version for name, version in exact.items()}
    assert len(locked) > 50
    locked.pop("setuptools", None)  # torch wants it at run time; `pip freeze` does not list it
    for name, version in locked.items():
        assert version.partition("+")[0] == exact[name_of(name)].partition("+")[0], name
