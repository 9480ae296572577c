"""Several processes train together: the losses of one process, equal weights in all, and a death ends all of them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from lacuner.cli.main import main
from lacuner.errors import ConfigError
from lacuner.training import distributed
from lacuner.training.distributed import join_processes, read_environment
from tests.conftest import ROOT
from tests.training.kill import digest
from tests.training.together import CASES

SECONDS = 240


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run_together(arguments: list[str], processes: int, program: str = "tests.training.together") -> list[Any]:
    """Run a program in several processes; returns exit status, output and error of each."""
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(processes)}
    command = [sys.executable, "-m", program, *arguments]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": ROOT}
    common = {**os.environ, "OMP_NUM_THREADS": "1", **(address if processes > 1 else {})}
    children = [
        subprocess.Popen(command, env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)}, **pipes)
        for rank in range(processes)
    ]
    try:
        outputs = [child.communicate(timeout=SECONDS) for child in children]
    finally:
        for child in children:
            child.kill()
    return [(child.returncode, *output) for child, output in zip(children, outputs, strict=True)]


def losses(run: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (run / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A folder with the runs of one process and of two, and the hashes of the weights of the latter."""
    folder = tmp_path_factory.mktemp("together")
    [alone] = run_together([str(folder / "one"), "all"], 1)
    assert alone[0] == 0, alone[2]
    first, second = run_together([str(folder / "two"), "all"], 2)
    assert first[0] == second[0] == 0, first[2] + second[2]
    assert json.loads(first[1]) == json.loads(second[1]), "weights are equal, bit by bit"
    return folder, json.loads(first[1])


@pytest.mark.integration
def test_two_processes_have_the_losses_of_one_and_equal_weights(trained: tuple[Path, dict[str, str]]) -> None:
    folder, weights = trained
    assert set(weights) == {*CASES, "pretrain", "dropout", "pretrain_dropout"}
    for case in (*CASES, "pretrain"):
        one, two = losses(folder / "one" / case), losses(folder / "two" / case)
        assert len(one) >= 2 and two == pytest.approx(one, abs=1e-4, rel=1e-4), case
        names = [
            {str(file.relative_to(folder / count / case)) for file in (folder / count / case).rglob("*.json*")}
            for count in ("one", "two")
        ]
        assert names[0] == names[1], "one process writes, and it writes what a single one would"


@pytest.mark.integration
@pytest.mark.parametrize("case", ["dropout", "pretrain_dropout"])
def test_if_a_process_dies_all_stop_and_the_same_command_ends_with_the_same_bytes(
    case: str, trained: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    folder, weights = trained
    for rank in (1, 0):
        ended = run_together([str(tmp_path), case, f"{rank}:3"], 2)
        assert ended[rank][0] < 0, "this process was killed"
        assert ended[1 - rank][0] == 1 and "ProcessLostError: another process of this job has" in ended[1 - rank][2]
    resumed = run_together([str(tmp_path), case], 2)
    assert [status for status, _, _ in resumed] == [0, 0], resumed[0][2] + resumed[1][2]
    assert json.loads(resumed[0][1])[case] == json.loads(resumed[1][1])[case] == weights[case]
    assert digest(tmp_path / case) == digest(folder / "two" / case)
    assert digest(folder / "one" / case) != digest(folder / "two" / case), "dropout draws other numbers"


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        ({"WORLD_SIZE": "2"}, "WORLD_SIZE is set, but RANK is not"),
        ({"WORLD_SIZE": "2", "RANK": "x", "MASTER_ADDR": "a", "MASTER_PORT": "1"}, "must be numbers"),
        ({"WORLD_SIZE": "2", "RANK": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"}, "RANK is 2, but WORLD_SIZE is 2"),
    ],
)
def test_a_wrong_environment_is_one_sentence(environment: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        read_environment(environment)


@pytest.mark.integration
def test_a_job_explains_an_error_once(tmp_path: Path) -> None:
    arguments = [
        "train",
        "--recipe",
        "trust",
        "--weak",
        str(tmp_path / "missing.jsonl"),
        "--out",
        str(tmp_path / "run"),
    ]
    ended = run_together(arguments, 2, "lacuner")
    assert sorted(status for status, _, _ in ended) == [1, 2]
    assert "".join(error for _, _, error in ended).count("there is no such file") == 1


@pytest.mark.integration
def test_a_process_that_is_left_alone_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "RANK": "1",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(distributed, "JOIN_SECONDS", 1.0)
    with (
        pytest.raises(ConfigError, match="process 1 of 2, but the others did not come within 1 seconds"),
        join_processes(),
    ):
        pass


@pytest.mark.parametrize(("join", "status"), [(False, 0), (True, 2)])
def test_the_plain_command_ignores_the_variables_of_torchrun(
    join: bool, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "texts.txt").write_text("Mara Teel left Halden.\n")
    monkeypatch.setattr(sys, "argv", ["lacuner", "check", str(tmp_path / "texts.txt")])
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(SystemExit) as ended:
        main(join=join)
    assert (ended.value.code or 0) == status
    assert ("only train and pretrain run in several processes" in capsys.readouterr().err) == join


def test_a_process_that_the_launcher_terminates_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def app(prog_name: str) -> None:
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("lacuner.cli.main.app", app)
    monkeypatch.setattr(distributed, "join_processes", nullcontext)
    monkeypatch.setattr(sys, "argv", ["lacuner", "train"])
    monkeypatch.setenv("WORLD_SIZE", "2")
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit) as ended:
            main(join=True)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended.value.code == 1
    assert capsys.readouterr().err.count("terminated, as the launcher does") == 1
