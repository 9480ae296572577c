"""`lacuner review`: starting, ending, and what it refuses."""

from __future__ import annotations

import signal
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lacuner.processes import lock_folder
from lacuner.review.queue import save_queue
from tests.cli.conftest import Run
from tests.review.conftest import browser, open_tab, small_queue, start_command

__all__ = ["browser", "open_tab", "start_command"]  # fixtures


def test_a_run_without_a_queue_is_refused(run: Run, tmp_path: Path) -> None:
    assert "there is no such folder" in run("review", "run", status=2).stderr
    (tmp_path / "run").mkdir()
    assert "run `lacuner audit issues run --weak WEAK_LABELS` first" in run("review", "run", status=2).stderr


def test_other_machines_need_a_permission(run: Run, tmp_path: Path) -> None:
    save_queue(small_queue(), tmp_path / "run")
    done = run("review", "run", "--host", "0.0.0.0", "--no-browser", status=2)
    assert "--host 0.0.0.0 lets other machines connect: add --allow-remote" in done.stderr
    assert not (tmp_path / "run" / "review" / "server.json").exists()


def test_one_server_per_run(run: Run, tmp_path: Path) -> None:
    save_queue(small_queue(), tmp_path / "run")
    with lock_folder(tmp_path / "run" / "review"):
        assert "another process is working in this folder" in run("review", "run", status=2).stderr


@pytest.mark.integration
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_it_ends_when_it_is_told_to(
    tmp_path: Path,
    start_command: Callable[[Path], tuple[subprocess.Popen[str], dict[str, Any]]],
    open_tab: Callable[..., Any],
    number: signal.Signals,
    status: int,
) -> None:
    """Also with an open page, which was opened by the link that a browser gets."""
    save_queue(small_queue(), tmp_path)
    process, facts = start_command(tmp_path)
    link = tmp_path / "review" / "open.html"
    assert stat.S_IMODE(link.stat().st_mode) == 0o600
    tab = open_tab(link.as_uri())
    assert tab.page.url == facts["url"].partition("#")[0]
    tab.press("a")
    process.send_signal(number)
    assert process.wait(20) == status
    assert not link.exists()
    tab.errors.clear()
