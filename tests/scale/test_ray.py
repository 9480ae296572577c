"""Ray as the engine: the same bytes as one process, also if a worker, a machine or the command itself is killed."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lacuner.corpus import write
from lacuner.errors import ConfigError
from lacuner.models.storage import save
from lacuner.processes import Request
from lacuner.scale.engines import ProcessEngine, open_engine, open_launcher
from lacuner.scale.ray_engine import ENVIRONMENT, RayEngine, connect
from lacuner.scale.run import Progress, ShardedRun
from lacuner.scale.shards import Corpus
from tests.bench.conftest import SMALL
from tests.cli.conftest import Run
from tests.conftest import ROOT
from tests.demo_corpus import demo_corpus
from tests.export.conftest import make_tagger
from tests.scale.runs import PROGRAM, TEXTS, files, new_run, start_run
from tests.scale.word_count import WordCount

pytest.importorskip("ray", reason="Ray is not installed: pip install 'lacuner[scale]'")
pytestmark = pytest.mark.integration

FIRST_CONNECTION_FAILS = """
from ray.util.client.worker import Worker

init = Worker._server_init

def fail(self, *args):
    Worker._server_init = init
    raise ConnectionAbortedError("Starting Ray client server failed.")

Worker._server_init = fail
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two machines of one core each, on this machine."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
        from ray.cluster_utils import Cluster

        node = {"num_cpus": 1, "include_dashboard": False}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        cluster = Cluster(initialize_head=True, head_node_args={**node, "ray_client_server_port": port})
        cluster.client_port = port
        cluster.add_node(**node)
        patch.setenv("RAY_ADDRESS", cluster.address)
        yield cluster
        cluster.shutdown()


def test_the_same_bytes_as_one_process(cluster: Any, corpus: Path, tmp_path: Path, run: Run) -> None:
    new_run(corpus, "whole").run(ProcessEngine(1))
    new_run(corpus, "out", WordCount(str(tmp_path / "log"), workers=2)).run(open_engine("ray", None))
    assert files(tmp_path / "out") == files(tmp_path / "whole")
    opened = (tmp_path / "log").read_text().split()
    assert len(opened) == len(set(opened)) == 2, "once per worker"
    # an error of ours in a worker is one sentence here
    (tmp_path / "names.tsv").write_text("Mara\tPERSON\n")
    args = ("annotate", corpus, "--dictionary", "names.tsv", "--on", "ray", "--shard-size", "5")
    run(*args, "--out", "weak")
    assert len(list((tmp_path / "weak" / "documents").iterdir())) == 4
    corpus.write_bytes(b"Mara left\n" * 9 + b"\xff\n")
    assert "texts.txt:10: this is not utf-8 text" in run(*args, "--out", "bad", status=2).stderr


def test_a_recipe_that_trains_one_model_is_refused(run: Run) -> None:
    refused = run("train", "--recipe", "trust", "--weak", "weak.jsonl", "--out", "out", "--on", "ray", status=2)
    assert "recipe `trust` trains one model: --on is for ensemble, cupul, roster; leave it out" in refused.stderr


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("no answer\nat all", "no answer"),
        ("failure of the server:\nTraceback\n  ...\nno answer", ".*server: no answer"),
    ],
)
def test_no_cluster_there(corpus: Path, monkeypatch: pytest.MonkeyPatch, message: str, reason: str) -> None:
    monkeypatch.setattr("ray.init", lambda *_, **__: (_ for _ in ()).throw(ConnectionError(message)))
    with pytest.raises(ConfigError, match=rf"cannot connect to Ray at ray://127.0.0.1:1: {reason}; check --on"):
        new_run(corpus, "out").run(RayEngine("ray://127.0.0.1:1"))


def test_a_server_for_the_client_that_crashes_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It did in one of five runs of `test_through_the_client_server` (ray-project/ray#63202)."""
    attempts: list[str] = []

    def crash(address: str, **_: object) -> None:
        attempts.append(address)
        if len(attempts) < 3 or address.endswith(":1"):
            raise ConnectionAbortedError("Initialization failure from server:\nStarting Ray client server failed.")

    monkeypatch.setattr("ray.init", crash)
    with connect("ray://127.0.0.1:2"):
        assert attempts == ["ray://127.0.0.1:2"] * 3
    with pytest.raises(ConfigError, match="Starting Ray client server failed"), connect("ray://127.0.0.1:1"):
        pass


def test_a_killed_worker_and_a_killed_machine_are_replaced(cluster: Any, corpus: Path, tmp_path: Path) -> None:
    corpus.write_text("\n".join([*TEXTS[:7], "kill", *TEXTS[7:]]) + "\n")
    new_run(corpus, "whole", WordCount(str(tmp_path / "whole.log"), kills=0)).run(ProcessEngine(1))
    node = cluster.add_node(num_cpus=1)
    killed: list[int] = []

    def kill_node(progress: Progress) -> None:
        if not killed:
            killed.append(progress.done)
            cluster.remove_node(node, allow_graceful=False)

    job = WordCount(str(tmp_path / "log"), seconds=0.5)
    run = ShardedRun(job, Corpus(corpus), tmp_path / "out", 3, on_progress=kill_node)
    run.run(open_engine("ray", None))
    assert killed and killed[0] < len(TEXTS) and (tmp_path / "log.killed").exists()
    assert files(tmp_path / "out") == files(tmp_path / "whole")


def test_child_processes_on_the_cluster(cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As in `tests/test_processes.py`; the worker that has started one of them is killed."""
    requests: list[Request] = [{"number": 0}, {"number": 1, "exit": 7}, {"number": 2, "kill": str(tmp_path / "killed")}]
    results: dict[int, str | None] = {}
    lines: list[str] = []

    def on_exit(request: Request, failure: str | None) -> None:
        results[request["number"]] = failure

    open_launcher("ray")("tests.test_processes", requests, 3, on_exit, lines.append, 1)
    assert results == {0: None, 1: "the process ended with status 7", 2: None}
    assert set(lines) == {f"request {number} with 1 threads" for number in range(3)}
    assert (tmp_path / "killed").exists()
    assert not capsys.readouterr().out, "standard output is for results"


@pytest.mark.slow
def test_predictions_and_label_issues_have_the_same_bytes(cluster: Any, tmp_path: Path, run: Run) -> None:
    save(make_tagger("span"), tmp_path / "run")
    write(demo_corpus().train[:40], tmp_path / "weak.jsonl")
    for command in ("predict", "audit labels"):
        options = (*command.split(), "run", "weak.jsonl", "--shard-size", "9", "--out")
        run(*options, f"{command} here", "--on", "processes", "--workers", "1")
        run(*options, f"{command} there", "--on", "ray")
        here, there = files(tmp_path / f"{command} here"), files(tmp_path / f"{command} there")
        assert here == there and len(here) == 12, "five shards with a record each, manifest and summary"


@pytest.mark.slow
def test_models_trained_on_the_cluster_have_the_same_bytes(cluster: Any, tmp_path: Path, run: Run) -> None:
    write(demo_corpus().train[:40], tmp_path / "weak.jsonl")
    options = ("--recipe", "ensemble", "--weak", "weak.jsonl", "--encoder", "tiny", "--set", "train.epochs=1")
    run("train", *options, "--out", "here")
    done = run("train", *options, "--out", "there", "--on", "ray")
    assert "ensemble: training 3 models on the cluster" in done.stderr and "models/2: epoch 1/1" in done.stderr
    assert "in this process" not in done.stderr
    assert files(tmp_path / "there") == files(tmp_path / "here")


@pytest.mark.slow
def test_bench_cells_on_the_cluster_have_the_same_rows(cluster: Any, tmp_path: Path, run: Run) -> None:
    (tmp_path / "spec.toml").write_text(SMALL.replace("[1, 2]", "[1]"))
    rows = {}
    for out, on in {"here": "processes", "there": "ray"}.items():
        run("bench", "spec.toml", "--data", ".", "--out", out, "--on", on)
        cells = {file.name: json.loads(file.read_text()) for file in (tmp_path / out / "cells").iterdir()}
        rows[out] = {name: {**row, "cost": None} for name, row in cells.items()}
    assert rows["here"] == rows["there"] and not any("error" in row for row in rows["here"].values())


@pytest.mark.slow
def test_a_killed_command_continues(cluster: Any, corpus: Path, tmp_path: Path) -> None:
    new_run(corpus, "whole").run(ProcessEngine(1))
    process = start_run(corpus, tmp_path / "out", "ray")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(1)  # its workers may still write what they have begun: the same bytes
    assert 1 <= len(list((tmp_path / "out" / "records").glob("0*.json"))) < 7
    new_run(corpus, "out").run(open_engine("ray", None))
    assert files(tmp_path / "out") == files(tmp_path / "whole")


@pytest.mark.slow
def test_through_the_client_server(cluster: Any, corpus: Path, tmp_path: Path) -> None:
    """In a process of its own, because Ray's client changes the whole library. The first connection fails."""
    new_run(corpus, "whole").run(ProcessEngine(1))
    address = f"ray://127.0.0.1:{cluster.client_port}"
    assert start_run(corpus, tmp_path / "out", address, FIRST_CONNECTION_FAILS + PROGRAM).wait() == 0
    assert files(tmp_path / "out") == files(tmp_path / "whole")


@pytest.mark.slow
def test_ray_started_by_the_command(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    new_run(corpus, "whole").run(ProcessEngine(1))
    new_run(corpus, "out").run(open_engine("ray", 2))
    assert files(tmp_path / "out") == files(tmp_path / "whole")
