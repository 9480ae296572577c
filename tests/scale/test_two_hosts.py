"""Training with torchrun and a Ray cluster on two machines: network namespaces, each with an address of its own."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lacuner.corpus import write
from lacuner.scale.engines import ProcessEngine
from tests.conftest import ROOT
from tests.demo_corpus import demo_corpus
from tests.scale.namespaces import ADDRESSES, on_host, two_hosts
from tests.scale.runs import PROGRAM, files, new_run

pytestmark = pytest.mark.slow
SECONDS = 120
TRAIN = "train --recipe trust --weak weak.jsonl --encoder tiny --set train.epochs=2 --out run"


@pytest.fixture(scope="module")
def hosts() -> Iterator[dict[str, str]]:
    with two_hosts() as names:
        yield names


def test_torchrun_on_two_machines(hosts: dict[str, str], tmp_path: Path) -> None:
    """Both machines see the same folder; only the first one writes."""
    write(demo_corpus().train[:60], tmp_path / "weak.jsonl")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"]
    torchrun += ["--master-addr", ADDRESSES[0], "--master-port", "29611"]
    processes = []
    for rank, (host, interface) in enumerate(hosts.items()):
        env = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": interface}
        command = [*torchrun, "--node-rank", str(rank), "-m", "lacuner", *TRAIN.split()]
        processes.append(on_host(host, command, cwd=tmp_path, env=env))
    outputs = [process.communicate(timeout=SECONDS)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], "\n".join(outputs)
    assert (tmp_path / "run" / "model" / "model.safetensors").exists()
    assert [text.count("epoch 2/2") for text in outputs] == [1, 0], "one process reports"


def test_ray_on_two_machines(hosts: dict[str, str], tmp_path: Path) -> None:
    corpus = tmp_path / "texts.txt"
    corpus.write_text("".join(f"Mara met Teel {i} times\n" for i in range(60)))
    new_run(corpus, "whole").run(ProcessEngine(1))
    ray = str(Path(sys.executable).parent / "ray")
    env = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_agent_register_timeout_ms": "120000"}
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT), env.get("PYTHONPATH", "")])
    env |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}  # all machines need the same one
    folder = tempfile.mkdtemp(prefix="ray")  # the names of sockets are limited to 107 characters
    log = (tmp_path / "ray.log").open("w")
    node = [ray, "start", "--block", "--num-cpus", "1", "--temp-dir", folder, "--node-ip-address"]
    first, second = hosts
    head = on_host(
        first, [*node, ADDRESSES[0], "--head", "--port", "6399", "--include-dashboard", "false"], env=env, stdout=log
    )
    address = f"{ADDRESSES[0]}:6399"
    other = None
    try:
        time.sleep(10)
        other = on_host(second, [*node, ADDRESSES[1], "--address", address], env=env, stdout=log)
        time.sleep(10)
        arguments = [str(corpus), str(tmp_path / "out"), "ray"]
        run = on_host(first, [sys.executable, "-c", PROGRAM, *arguments], env={**env, "RAY_ADDRESS": address})
        output, _ = run.communicate(timeout=SECONDS)
        assert run.returncode == 0, output + (tmp_path / "ray.log").read_text()
    finally:
        for process in (head, other):
            if process is not None:
                process.terminate()
                process.wait()
        shutil.rmtree(folder, ignore_errors=True)
    assert files(tmp_path / "out") == files(tmp_path / "whole")
    workers = {line.split()[0] for line in (tmp_path / "out.log").read_text().splitlines()}
    assert len(workers) == 2, "one worker on each machine"
