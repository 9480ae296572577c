"""T11: a path is read offline. The child process has no network at all; a patched socket would prove less."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytest.importorskip("transformers")
pytestmark = pytest.mark.integration

WITHOUT_NETWORK = ["unshare", "--map-root-user", "--net"]


def test_a_path_is_read_without_a_network(tmp_path: Path) -> None:
    if shutil.which("unshare") is None or subprocess.run([*WITHOUT_NETWORK, "true"], check=False).returncode:
        pytest.skip("no network namespace can be made here (unshare --net)")
    command = [*WITHOUT_NETWORK, sys.executable, "-m", "tests.hostile.offline", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["closed"], "the network must be closed, or the test shows nothing"
    assert result["attempts"] == []
    fingerprint, text, refusal = result["done"]
    assert len(fingerprint) == 64 and text == "Ada met Charles in London."
    assert "attn_implementation='owner/kernel', which lacuner refuses" in refusal
