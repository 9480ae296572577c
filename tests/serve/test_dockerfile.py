"""The Dockerfile and the documentation of the service: not run here, but their options and files exist."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lacuner.cli.serve import serve
from tests.conftest import ROOT

LINES = [line for line in (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
TEXT = "\n".join(LINES)


def arguments(instruction: str) -> list[str]:
    """The arguments of an instruction in JSON form."""
    [line] = [line for line in LINES if line.startswith(f"{instruction} [")]
    values: list[str] = json.loads(line.removeprefix(f"{instruction} "))
    return values


@pytest.mark.integration
def test_hadolint_has_no_objections() -> None:
    program = Path(sys.executable).parent / "hadolint"
    if not program.exists():
        pytest.skip("hadolint is not installed: pip install 'lacuner[dev]'")
    done = subprocess.run([program, ROOT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_image_runs_without_rights() -> None:
    stages = [line.split()[1] for line in LINES if line.startswith("FROM")]
    assert stages == ["python:3.11-slim"] * 2
    last_stage = TEXT[TEXT.rindex("FROM") :]
    [user] = re.findall(r"^USER (\S+)$", last_stage, re.MULTILINE)
    assert user.isdigit() and int(user) > 0, "a number, so that Kubernetes can check that it is not root"
    assert last_stage.index("USER") < last_stage.index("ENTRYPOINT")


def test_the_command_exists() -> None:
    command = [*arguments("ENTRYPOINT"), *arguments("CMD")]
    assert command[:3] == ["lacuner", "serve", "/model"]
    options = {name.removeprefix("--").replace("-", "_") for name in command if name.startswith("--")}
    assert options <= set(inspect.signature(serve).parameters)


def test_what_is_copied_exists_and_is_not_ignored() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {name for line in LINES if line.startswith("COPY") and "--from" not in line for name in line.split()[1:-1]}
    assert copied == allowed and all((ROOT / name).exists() for name in copied)


def test_the_extras_exist() -> None:
    [extras] = re.findall(r"'\.\[([a-z,]+)\]'", TEXT)
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert all(f"\n{extra} = [" in declared for extra in extras.split(","))


def test_the_options_in_the_documentation_exist() -> None:
    text = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    named = set(re.findall(r"--[a-z][a-z-]+", text.partition("## Docker")[0]))
    others = {"--json", "--seconds"}  # of curl and of the load test
    options = {"--" + name.replace("_", "-") for name in inspect.signature(serve).parameters}
    assert named - others <= options
    assert options - {"--run", "--port"} <= named, "every option is documented"
