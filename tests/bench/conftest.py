"""A bench whose cells run in the test process, and one with invented rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from lacuner.bench import report as files
from lacuner.bench import runner as run
from lacuner.bench.grid import make_grid
from lacuner.bench.rows import pack_counts, write_row
from lacuner.bench.runner import Bench
from lacuner.bench.spec import Spec, load_spec
from lacuner.bench.worker import run_request
from lacuner.processes import Request

OnExit = Callable[[Request, str | None], None]

SMALL = """
seeds = [1, 2]
settings = ["train.epochs=1"]
[data.demo]
sentences = 40
[noise]
masked = [0.5]
[recipes.dictionary]
recipe = "dictionary"
[recipes.trust]
recipe = "trust"
settings = ["head.kind=token"]
"""


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """As in a cell's own process; besides, waiting threads that spin would slow everybody down."""
    torch.set_num_threads(1)


@pytest.fixture
def spec_file(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "spec.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def load(spec_file: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Spec]:
    return lambda text: load_spec(spec_file(text), tmp_path)


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Cells run in this process, which has loaded torch already; the keys of those that ran."""
    ran: list[str] = []

    def run_here(_: str, requests: list[Request], workers: int, on_exit: OnExit, *__: object) -> None:
        for request in requests:
            ran.append(request["key"])
            write_row(Path(request["out"]), run_request(request))
            on_exit(request, None)

    monkeypatch.setattr(run, "run_requests", run_here)
    return ran


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pictures: they take longer than all the rest."""
    monkeypatch.setattr(files, "bench_figures", lambda *_: [])


def invented(spec: Spec) -> Bench:
    """A bench with plausible invented rows: the higher the masking rate, the lower the scores."""
    bench = Bench(spec, make_grid(spec, {name: {"demo": name} for name in spec.data}))
    for key, cell in bench.cells.items():
        rng = np.random.default_rng(int(hashlib.sha256(key.encode()).hexdigest()[:8], 16))
        gold = rng.integers(0, 3, 50)
        correct = rng.binomial(gold, 0.9 - 0.5 * (cell.noise.rate if cell.noise else 0.0))
        counts = np.stack([correct, correct + rng.binomial(1, 0.2, 50), gold], 1)
        right, found, there = counts.sum(0).tolist()
        scores = {"precision": right / found, "recall": right / there, "f1": 2 * right / (found + there)}
        bench.rows[key] = {
            "key": key,
            "cell": cell.as_json(),
            "config": cell.config,
            "code": "x",
            "test": scores,
            "boundary": scores,
            "accuracy": {"words": 0.9, "spans": scores["recall"], "sentences": 0.4},
            "dev": scores,
            "epochs": [{"epoch": i, "dev": {"f1": scores["f1"] * (i + 1) / 3}} for i in range(3)],
            "sentences_test": pack_counts(counts),
            "cost": {"train_cpu_seconds": rng.uniform(1, 5), "test_cpu_seconds": 0.5, "peak_mb": 400},
        }
    return bench
