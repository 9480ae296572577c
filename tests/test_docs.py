"""T13: every command in the README and in docs/ is executed, every link leads somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lacuner.corpus import FORMATS, read
from tests.conftest import ROOT

pytestmark = pytest.mark.integration

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAPERS = [*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "CHANGELOG.md"]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[str]:
    joined = "".join(blocks(page, "bash")).replace("\\\n", " ")
    return [line.split("#")[0].strip() for line in joined.splitlines() if line.split("#")[0].strip()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_runs(page: Path, tmp_path: Path) -> None:
    lines = commands(page)
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for line in lines:
        if line.startswith("make"):  # these set up everything and run this very test: only see that they exist
            done = subprocess.run(
                ["make", "-n", *line.split()[1:]], cwd=ROOT, capture_output=True, text=True, check=False
            )
        else:
            done = subprocess.run(
                ["bash", "-c", line], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
            )
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"


def test_the_python_of_the_readme_runs(tmp_path: Path) -> None:
    from lacuner import load
    from lacuner.demo.write import write_demo

    [code] = blocks(ROOT / "README.md", "python")
    assert len(code.strip().splitlines()) <= 11
    write_demo(tmp_path / "demo")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "F1 " in done.stdout
    assert load(tmp_path / "demo" / "python")("Mara Teel left Halden.").text == "Mara Teel left Halden."


def test_the_readme_has_commands() -> None:
    lines = commands(ROOT / "README.md")
    assert len(lines) >= 10
    assert lines[:2] == ["make demo", "make test"]


def test_our_form_in_the_readme_is_read(tmp_path: Path) -> None:
    [sample] = blocks(ROOT / "README.md", "json")
    (tmp_path / "x.jsonl").write_text(" ".join(sample.split("\n")) + "\n", encoding="utf-8")
    [doc] = read(tmp_path / "x.jsonl")
    assert [doc.text[span.start : span.end] for span in doc.spans + doc.rejected + doc.unsure] == [
        "Mara Teel",
        "left",
        "Halden",
    ]


def test_every_format_is_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name, known in FORMATS.items():
        row = next(line for line in text.splitlines() if line.startswith(f"| `{name}` |"))
        assert all(f"`{ending}`" in row for ending in known.endings if ending != ".ndjson")


@pytest.mark.parametrize("page", PAPERS, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http:", "https:")):
            assert (page.parent / target).exists(), target


def test_make_targets_are_there() -> None:
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    for target in ("setup", "demo", "test", "test-unit", "test-slow", "check", "docs", "speed"):
        assert f"make {target} " in done.stdout
