"""Run one grid cell in a process of its own, so that time and memory are measured per cell.

`bench.runner` starts the process and sends the request; the resulting row goes into a file.
"""

from __future__ import annotations

import base64
import hashlib
import json
import platform
import resource
import shlex
import shutil
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import lacuner
from lacuner.audit.aligned_gold import gold_in_training_order
from lacuner.audit.probes import MissamplingProbe
from lacuner.audit.sampling import read_metrics
from lacuner.bench.datasets import DataSet
from lacuner.bench.grid import Cell, cell_from_json
from lacuner.bench.rows import write_row
from lacuner.bench.spec import DataSpec
from lacuner.config import load_config
from lacuner.data import Splits
from lacuner.errors import CorpusError, LacunerError
from lacuner.evaluate import Count, Evaluation, score
from lacuner.evaluate.significance import sentence_counts
from lacuner.processes import read_request
from lacuner.recipes import RECIPES
from lacuner.trainer.train import Trained, train
from lacuner.training.run_folder import installed_versions

CODE = ("corpus", "noise", "models", "losses", "sampling", "training", "pretraining", "techniques", "recipes")
"""What decides about results besides the settings."""


def measure(cell: Cell, data: DataSet, run_folder: Path) -> dict[str, Any]:
    """Train and test a cell. `cost` differs from one time to the next; everything else does not."""
    start, cpu = time.monotonic(), time.process_time()
    module = RECIPES[cell.recipe]
    kind, rate, most = cell.gaps or (None, 0.0, None)
    splits = data.splits(module.NEEDS, kind, rate, cell.seed, most)
    config = load_config(module.Config, settings=cell.settings)
    watch = _watch(splits, data)
    ready, ready_cpu = time.monotonic(), time.process_time()
    trained = train(cell.recipe, splits, run_folder, config, cell.seed, callback=watch)
    done, done_cpu = time.monotonic(), time.process_time()
    test = data.read("test")
    found = list(trained.tagger.predict(test))
    tested, tested_cpu = time.monotonic(), time.process_time()
    scores = score(test, found)
    dev = None if splits.dev is None else score(splits.dev, trained.tagger.predict(splits.dev))
    return {
        **describe(cell, data),
        "test": _rounded(scores.exact),
        "per_type": {label: _rounded(count) for label, count in scores.per_type.items()},
        "boundary": _rounded(scores.boundary),
        "accuracy": {name: round(value, 6) for name, value in accuracies(scores).items()},
        "dev": None if dev is None else _rounded(dev.exact),
        "epochs": read_metrics(run_folder),
        **({"sampling": watch.rows} if watch is not None and watch.rows else {}),
        "sentences_test": pack(sentence_counts(test, found)),
        "model": _model(trained),
        **({"contents": contents} if (contents := trained.run.identity.get("contents")) else {}),
        "versions": _versions(),
        "code": code_hash(),
        "cost": {
            "seconds": round(time.monotonic() - start, 2),
            "cpu_seconds": round(time.process_time() - cpu, 2),
            "train_seconds": round(done - ready, 2),
            "train_cpu_seconds": round(done_cpu - ready_cpu, 2),
            "test_cpu_seconds": round(tested_cpu - done_cpu, 2),
            "test_seconds": round(tested - done, 2),
            "peak_mb": peak_mb(),
        },
    }


def describe(cell: Cell, data: DataSet) -> dict[str, Any]:
    """What a row says of its cell: everything that is needed to do it again."""
    kind, rate, most = cell.gaps or (None, 0.0, None)
    steps, options = data.commands(RECIPES[cell.recipe].NEEDS, kind, rate, cell.seed, most)
    settings = [part for each in cell.settings for part in ("--set", each)]
    command = ["lacuner", "train", "--recipe", cell.recipe, *options, "--seed", str(cell.seed), *settings]
    commands = [*steps, f"OMP_NUM_THREADS=1 {shlex.join([*command, '--out', 'run'])}"]
    return {
        "key": cell.key,
        "cell": cell.as_json(),
        "files": data.data.model_dump(mode="json", exclude_none=True),
        "config": cell.config,
        "commands": [*commands, f"lacuner evaluate run --gold {data.test_path} --json"],
    }


def _rounded(count: Count) -> dict[str, float]:
    return {name: round(value, 6) for name, value in count.as_json().items()}


def accuracies(scores: Evaluation) -> dict[str, float]:
    """The share of words, of gold's spans and of whole sentences that are right; that of spans is their recall."""
    found = scores.as_json()
    return {"words": found["token_accuracy"], "spans": found["span_accuracy"], "sentences": found["sentence_accuracy"]}


def _watch(splits: Splits, data: DataSet) -> MissamplingProbe | None:
    """Somebody who knows which negatives are entities, where that is known. It says nothing if none are drawn."""
    if splits.weak is None or not data.has_gold:
        return None
    try:
        return MissamplingProbe(gold_in_training_order(splits.weak, data.read("gold")))
    except CorpusError:
        return None  # gold of other sentences knows nothing of these


def _model(trained: Trained) -> dict[str, Any] | None:
    """What the defaults were resolved to."""
    model = getattr(trained.tagger, "model", None)
    return None if model is None else {"encoder": model.encoder.config(), "head": model.head.config()}


def pack(counts: np.ndarray) -> str:
    """Counts a sentence as text: three columns of 16-bit numbers, one after the other, deflated, in base 64."""
    data = np.ascontiguousarray(counts.T, dtype="<u2").tobytes()
    return base64.b64encode(zlib.compress(data, 9)).decode()


def unpack(text: str) -> np.ndarray:
    """The inverse of `pack`."""
    data = zlib.decompress(base64.b64decode(text))
    return np.frombuffer(data, dtype="<u2").reshape(3, -1).T.astype(np.int64)


def code_hash() -> str:
    """A fingerprint of the code that makes results, to see when rows come from different versions of it."""
    root = Path(lacuner.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(file for part in CODE for file in (root / part).rglob("*.py")):
        digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def _versions() -> dict[str, str]:
    return {**installed_versions(), "machine": platform.machine()}


def peak_mb() -> int:
    """The most memory that this process ever had. The kernel's own figure for children counts their parent's too."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def perform(request: Mapping[str, Any]) -> dict[str, Any]:
    """Measure the cell of a request; what goes wrong becomes one sentence."""
    cell, run_folder = cell_from_json(request["cell"]), Path(request["run"])
    spec = DataSpec.model_validate_json(json.dumps(request["files"]))
    data = DataSet(cell.data, spec, Path(request["data_folder"]))
    shutil.rmtree(run_folder, ignore_errors=True)
    try:
        return measure(cell, data, run_folder)
    except LacunerError as error:
        problem = str(error)
    except Exception as error:
        # a bug of ours or of a library: one bad cell must not cost the others
        problem = f"{type(error).__name__}: {error}"
    finally:
        shutil.rmtree(run_folder, ignore_errors=True)
    sentence = " ".join(problem.replace(str(run_folder), "RUN").split())[:500]
    return {**describe(cell, data), "error": sentence, "versions": _versions(), "code": code_hash()}


def main() -> None:
    """Run the cell of this process's request."""
    request = read_request()
    import torch

    torch.set_num_threads(1)
    write_row(Path(request["out"]), perform(request))
