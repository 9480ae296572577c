"""Ctrl-C ends a training, a pre-training and a benchmark with one sentence and status 130; children end with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lacuner.cli.main import main
from lacuner.corpus.jsonl import write_jsonl
from lacuner.data import Lost
from tests.cli.conftest import Run
from tests.demo_corpus import demo_corpus

SPEC = """
seeds = [1]
[data.demo]
sentences = 20
[noise]
masked = [0.5]
[recipes.trust]
recipe = "trust"
"""


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    (tmp_path / "spec.toml").write_text(SPEC)
    write_jsonl(demo_corpus().train[:60], tmp_path / "gold.jsonl", Lost())
    return tmp_path


@pytest.mark.parametrize(
    ("function", "args"),
    [
        ("lacuner.training.loop._Trainer._update", ["train", "--gold", "gold.jsonl"]),
        ("lacuner.pretraining.pretrain._train", ["pretrain", "gold.jsonl"]),
        ("lacuner.bench.runner.run_requests", ["bench", "spec.toml", "--data", "."]),
    ],
)
def test_one_sentence_and_status_130(
    function: str, args: list[str], run: Run, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(function, interrupt)
    done = run(*args, "--out", "out", status=130)
    assert done.stderr.splitlines()[-1] == (
        "lacuner: interrupted; the same command continues, and nothing before the last checkpoint is lost"
    )
    assert "Traceback" not in done.stderr


def test_an_interrupt_before_a_command_has_started(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("lacuner.cli.main.app", interrupt)
    monkeypatch.setattr("sys.argv", ["lacuner", "check"])
    with pytest.raises(SystemExit) as ending:
        main()
    assert ending.value.code == 130 and capsys.readouterr().err == "lacuner: interrupted\n"


@pytest.mark.integration
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_children_end_too(corpus: Path) -> None:
    command = [sys.executable, "-c", "from lacuner.cli.main import main; main()", "train", "--recipe", "ensemble"]
    command += ["--weak", "gold.jsonl", "--out", "run", "--encoder", "tiny", "--set", "train.epochs=500"]
    env = {**os.environ, "OMP_NUM_THREADS": "2"}
    with subprocess.Popen(command, cwd=corpus, env=env, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        first = next(line for line in process.stderr if "words/s" in line)
        assert first.startswith("models/") and " of 4, " in first and first.endswith(" left in total\n")
        children = children_of(process.pid)
        assert len(children) == 2
        process.send_signal(signal.SIGINT)
        try:
            _, rest = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "the same command continues" in rest and "Traceback" not in rest
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{child}").exists() for child in children) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(Path(f"/proc/{child}").exists() for child in children)


def children_of(parent: int) -> list[int]:
    children = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            if f"\nPPid:\t{parent}\n" in status.read_text():
                children.append(int(status.parent.name))
        except OSError:
            continue  # it has just ended
    return children
