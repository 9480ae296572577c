"""Run one grid cell in a process of its own, so that time and memory are measured per cell.

`bench.runner` starts the process and sends the request; the resulting row goes into a file.
"""

import hashlib
import json
import platform
import resource
import shlex
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import lacuner
from lacuner.audit.probes import MissamplingProbe, gold_in_training_order
from lacuner.audit.sampling import read_metrics
from lacuner.bench.datasets import DataSet
from lacuner.bench.grid import Cell, cell_from_json
from lacuner.bench.rows import Row, pack_counts, write_row
from lacuner.bench.spec import DataSpec
from lacuner.config import load_config
from lacuner.data import Splits
from lacuner.errors import CorpusError, LacunerError
from lacuner.evaluate import Count, score
from lacuner.evaluate.significance import sentence_counts
from lacuner.processes import read_request
from lacuner.recipes import RECIPES
from lacuner.trainer.train import train, uses_unlabeled
from lacuner.training.run_folder import installed_versions

CODE = ("corpus", "noise", "models", "losses", "sampling", "training", "pretraining", "techniques", "recipes")
"""Packages on which results depend, besides the settings."""


def run_cell(cell: Cell, data: DataSet, run_folder: Path) -> Row:
    """Train and test a cell. Only `cost` differs between two runs of the same cell."""
    clocks = [_clocks()]
    module = RECIPES[cell.recipe]
    splits = data.splits(roles_of(cell.recipe), cell.noise, cell.seed)
    config = load_config(module.Config, settings=cell.settings)
    probe = _missampling_probe(splits, data)
    gazetteer = data.read_gazetteer() if cell.recipe == "dictionary" else None
    clocks.append(_clocks())
    trained = train(cell.recipe, splits, run_folder, config, cell.seed, callback=probe, gazetteer=gazetteer)
    clocks.append(_clocks())
    test = data.read("test")
    predicted = list(trained.tagger.predict(test))
    clocks.append(_clocks())
    model = getattr(trained.tagger, "model", None)
    scores = score(test, predicted)
    numbers = scores.as_json()
    dev = None if splits.dev is None else score(splits.dev, trained.tagger.predict(splits.dev))
    accuracies = {"words": "token_accuracy", "spans": "span_accuracy", "sentences": "sentence_accuracy"}
    return {
        **describe_cell(cell, data),
        "test": _rounded(scores.exact),
        "per_type": {label: _rounded(count) for label, count in scores.per_type.items()},
        "boundary": _rounded(scores.boundary),
        "accuracy": {kind: round(numbers[name], 6) for kind, name in accuracies.items()},
        "dev": None if dev is None else _rounded(dev.exact),
        "epochs": read_metrics(run_folder),
        **({"sampling": probe.rows} if probe is not None and probe.rows else {}),
        "sentences_test": pack_counts(sentence_counts(test, predicted)),
        "model": model and {"encoder": model.encoder.config(), "head": model.head.config()},
        **({"contents": contents} if (contents := trained.run.identity.get("contents")) else {}),
        "versions": _versions(),
        "code": code_hash(),
        "cost": _cost([*clocks, _clocks()]),
    }


def roles_of(recipe: str) -> tuple[str, ...]:
    """The roles of the documents that a recipe uses, beside dev."""
    return (*RECIPES[recipe].NEEDS, *(["unlabeled"] if uses_unlabeled(recipe) else []))


def _clocks() -> tuple[float, float]:
    return time.monotonic(), time.process_time()


def _cost(clocks: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Return seconds from clocks read at the start, before training, after training, after testing and at the end."""
    cost: dict[str, float] = {}
    for name, first, last in (("", 0, 4), ("train_", 1, 2), ("test_", 2, 3)):
        cost[f"{name}seconds"] = round(clocks[last][0] - clocks[first][0], 2)
        cost[f"{name}cpu_seconds"] = round(clocks[last][1] - clocks[first][1], 2)
    return {**cost, "peak_mb": peak_mb()}


def describe_cell(cell: Cell, data: DataSet) -> Row:
    """Return the part of a row that says how to reproduce it."""
    commands, options = data.commands(roles_of(cell.recipe), cell.noise, cell.seed)
    if cell.recipe == "dictionary" and data.data.dictionary is not None:
        options = [*options, "--dictionary", data.dictionary_file]
    settings = [part for setting in cell.settings for part in ("--set", setting)]
    command = ["lacuner", "train", "--recipe", cell.recipe, *options, "--seed", str(cell.seed), *settings]
    commands.append(f"OMP_NUM_THREADS=1 {shlex.join([*command, '--out', 'run'])}")
    return {
        "key": cell.key,
        "cell": cell.as_json(),
        "files": data.data.model_dump(mode="json", exclude_none=True),
        "config": cell.config,
        "commands": [*commands, f"lacuner evaluate run --gold {data.test_file} --json"],
    }


def _rounded(count: Count) -> dict[str, float]:
    return {name: round(value, 6) for name, value in count.as_json().items()}


def _missampling_probe(splits: Splits, data: DataSet) -> MissamplingProbe | None:
    """Return a probe if there is gold for the weak sentences; it records nothing if no negatives are sampled."""
    if splits.weak is None or not data.has_gold:
        return None
    try:
        return MissamplingProbe(gold_in_training_order(splits.weak, data.read("gold")))
    except CorpusError:
        return None  # gold and weak have different sentences


def code_hash() -> str:
    """Return a fingerprint of the code, to see which rows come from different versions of it."""
    root = Path(lacuner.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(file for part in CODE for file in (root / part).rglob("*.py")):
        digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def _versions() -> dict[str, str]:
    return {**installed_versions(), "machine": platform.machine()}


def peak_mb() -> int:
    """Return the peak memory of this process. (`getrusage` would count the parent's memory before `exec`, too.)"""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def run_request(request: Mapping[str, Any]) -> Row:
    """Run the cell of a request; an error becomes one sentence in the row."""
    cell, run_folder = cell_from_json(request["cell"]), Path(request["run"])
    spec = DataSpec.model_validate_json(json.dumps(request["files"]))
    data = DataSet(cell.data, spec, Path(request["data_folder"]))
    shutil.rmtree(run_folder, ignore_errors=True)
    try:
        return run_cell(cell, data, run_folder)
    except LacunerError as error:
        problem = str(error)
    except Exception as error:  # a bug in one recipe must not stop the other cells
        problem = f"{type(error).__name__}: {error}"
    finally:
        shutil.rmtree(run_folder, ignore_errors=True)
    sentence = " ".join(problem.replace(str(run_folder), "RUN").split())[:500]
    return {**describe_cell(cell, data), "error": sentence, "versions": _versions(), "code": code_hash()}


def main() -> None:
    """Run the cell that the parent process requests."""
    request = read_request()
    import torch

    torch.set_num_threads(1)
    write_row(Path(request["out"]), run_request(request))
