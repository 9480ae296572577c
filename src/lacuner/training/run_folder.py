"""The run folder: what is trained, how far it is, and the result.

Each stage has a folder of its own; its `state.json` is written last and names the tensors with their hash, so that a
kill at any moment leaves either the old state or the new one. The same command resumes an unfinished run.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from lacuner.atomic import TEMPORARY, atomic_write, read_regular_file, write_json, write_json_lines
from lacuner.errors import ConfigError, ModelFileError
from lacuner.models.storage import CONFIG
from lacuner.processes import RunRequests, lock_folder
from lacuner.training.callbacks import TrainingCallback
from lacuner.training.distributed import bytes_of_first, is_first, value_of_first
from lacuner.training.plan import EpochReport, Plan

Row = dict[str, Any]
PREPARED = "prepared"
"""The folder, in a run folder, of documents that are stored before the run starts."""
_LIBRARIES = ("lacuner", "torch", "numpy", "safetensors", "transformers", "tokenizers")


def quiet(_: str) -> None:
    """Log nothing: the default of a library."""


class Stage:
    """A resumable part of a run, with its tensors and state; `finished` once it is done."""

    def __init__(self, run: Run, name: str) -> None:
        self.run, self.name = run, name
        self.folder = run.folder / "stages" / name
        self.tensors: dict[str, Tensor] = {}
        self.state: dict[str, Any] = {}
        self._load()

    @property
    def finished(self) -> bool:
        return bool(self.state.get("finished"))

    def seed(self, *parts: object) -> int:
        """A seed that depends on the run, this stage and the given parts (such as the epoch)."""
        return self.run.seed_for(self.name, *parts)

    def save(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Write tensors and a JSON state, replacing the previous checkpoint; of several processes, the first does."""
        if not is_first():
            return
        data = save_tensors({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
        digest = hashlib.sha256(data).hexdigest()
        name = f"{digest[:16]}.safetensors"
        with atomic_write(self.folder / name) as stream:
            stream.write(data)
        self.state = {**state, "tensors": name, "sha256": digest}
        with atomic_write(self.folder / "state.json") as stream:
            stream.write(json.dumps(self.state).encode())
        for old in self.folder.glob("*.safetensors"):
            if old.name != name:
                old.unlink()

    def finish(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Write the result of the stage and mark it as finished."""
        self.save(tensors, {**state, "finished": True})

    def describe(self, settings: Mapping[str, Any]) -> None:
        """Write the resolved settings."""
        write_json(self.folder / "settings.json", settings)

    def record(self, rows: list[Row]) -> None:
        """Update this stage's rows in the run's `metrics.jsonl`."""
        self.run.record(self.name, rows)

    def _load(self) -> None:
        path = self.folder / "state.json"
        if not value_of_first(path.exists):
            return
        try:
            self.state = value_of_first(lambda: json.loads(read_regular_file(path)))
            data = bytes_of_first(read_regular_file(self.folder / self.state["tensors"]) if is_first() else b"")
            if hashlib.sha256(data).hexdigest() != self.state["sha256"]:
                raise ModelFileError("this stage's checkpoint is damaged: delete the folder to restart it", file=path)
            self.tensors = load_tensors(data)
        except (OSError, ValueError, KeyError, TypeError, RecursionError, SafetensorError) as error:
            message = "this stage's checkpoint cannot be read: delete the folder to restart it"
            raise ModelFileError(message, file=path) from error


class Run:
    """A training run in a folder. `log` receives one console line at a time."""

    def __init__(
        self,
        folder: str | PathLike[str],
        identity: Mapping[str, Any],
        log: Callable[[str], None] = quiet,
        callback: TrainingCallback | None = None,
    ) -> None:
        self.folder = Path(folder)
        """Where this process writes: of several, all but the first have a temporary folder."""
        self.identity = json.loads(json.dumps(identity, default=str))
        self.log, self.callback = log, callback
        self.read_only = False
        """Whether this is a finished run in a folder that cannot be written: it can be used, and nothing is written."""
        self.run_requests: RunRequests | None = None
        """What starts the processes of ensemble members on other machines; None: they are trained on this one."""
        self.planned = Plan()
        self._metrics: dict[str, list[Row]] = {}

    def _check_folder(self) -> None:
        """Refuse a folder that is neither empty nor a run, before a lock file is created in it."""
        if self.folder.exists() and not self.folder.is_dir():
            raise ConfigError("this is a file; --out needs a folder", file=self.folder)
        is_run = not self.folder.exists() or (self.folder / "run.json").exists()
        if not is_run and any(not _is_leftover(file) and file.name != PREPARED for file in self.folder.iterdir()):
            raise ConfigError("this folder is not empty and not a run: choose another --out", file=self.folder)

    def _claim(self) -> None:
        """Write run.json, or check that the one in the folder identifies this run."""
        path = self.folder / "run.json"
        if path.exists():
            stored = stored_identity(self.folder)
            if stored is None:
                raise ModelFileError("this is not the run.json of a run", file=path)
            if difference := _difference(stored, self.identity):
                message = f"this folder holds another run ({difference}): choose another --out"
                raise ConfigError(message, file=self.folder)
            return
        content = {"identity": self.identity, "versions": installed_versions(), "machine": platform.platform()}
        write_json(path, content)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Start or resume the run in its folder, which stays locked meanwhile."""
        with self._locked_by_first() if is_first() else self._in_temporary_folder():
            identity = value_of_first(lambda: self.identity)
            if difference := _difference(identity, self.identity):
                raise ConfigError(f"two processes train on different data or settings ({difference})")
            yield

    @contextmanager
    def _in_temporary_folder(self) -> Iterator[None]:
        with TemporaryDirectory() as folder:
            self.folder = Path(folder)
            yield

    @contextmanager
    def _locked_by_first(self) -> Iterator[None]:
        try:
            self._check_folder()
        except OSError as error:
            raise ConfigError(f"cannot read this folder: {error.strerror}", file=self.folder) from error
        if (self.folder / "finished.json").exists() and not os.access(self.folder, os.W_OK):
            self._claim()
            self.read_only = True
            yield
            return
        with lock_folder(self.folder):
            self._claim()  # under the lock: of two runs that start at once, one gets the folder
            for file in [file for file in self.folder.rglob(".*.part") if _is_leftover(file)]:
                file.unlink(missing_ok=True)
            shutil.rmtree(self.folder / TEMPORARY, ignore_errors=True)
            yield

    def stage(self, name: str) -> Stage:
        """A stage by its name, such as `train` or `models/3`, with its checkpoint or result if there is one."""
        return Stage(self, name)

    def plan(self, epochs: Mapping[str, int]) -> None:
        """Announce stages in their order, each with its number of epochs: the console shows the time left for all."""
        self.planned.add(epochs, {name: self._epochs_done(name, count) for name, count in epochs.items()})

    def _epochs_done(self, stage: str, epochs: int) -> int:
        """Epochs of a stage that an earlier process has trained; its tensors are not loaded."""
        try:
            state = json.loads(read_regular_file(self.folder / "stages" / stage / "state.json"))
            return epochs if state.get("finished") else int(state["epoch"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return 0  # a damaged state is an error when the stage is opened

    def log_epoch(self, report: EpochReport) -> None:
        """Log a trained epoch and the time left: for all planned stages, or for a stage that is not planned."""
        plan = self.planned if report.stage in self.planned else Plan({report.stage: report.epochs})
        plan.record(report)
        self.log("  ".join(filter(None, (report.line, plan.describe(report.stage)))))

    @property
    def seed(self) -> int:
        return int(self.identity.get("seed", 1))

    def seed_for(self, *parts: object) -> int:
        """A seed that depends on the run's seed and on the given parts only."""
        text = "/".join(map(str, (self.seed, *parts)))
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1

    @property
    def model_folder(self) -> Path:
        return self.folder / "model"

    @property
    def finished(self) -> bool:
        return value_of_first((self.folder / "finished.json").exists)

    @property
    def is_loadable(self) -> bool:
        """Whether the run is finished and its model is there; if the model was lost, it is rebuilt from the stages."""
        if not self.finished:
            return False
        if value_of_first((self.model_folder / CONFIG).exists):
            return True
        self.log("this run is finished, but its model is lost: it is rebuilt from the stages")
        return False

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Mark the run as finished."""
        write_json(self.folder / "finished.json", summary)

    def record(self, stage: str, rows: list[Row]) -> None:
        """Replace a stage's rows in `metrics.jsonl`."""
        self._metrics[stage] = [{"stage": stage, **row} for row in rows]
        write_json_lines(self.folder / "metrics.jsonl", itertools.chain(*self._metrics.values()))


def stored_identity(folder: Path) -> dict[str, Any] | None:
    """The identity in a folder's run.json; None if there is none, or it is unreadable."""
    try:
        identity = json.loads(read_regular_file(folder / "run.json"))["identity"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return identity if isinstance(identity, dict) else None


def _is_leftover(file: Path) -> bool:
    """Whether a file is a partial write or the lock of a killed process."""
    return file.name.startswith(".") and file.name.endswith((".part", ".lock"))


def _difference(stored: Any, current: Any, path: str = "") -> str | None:
    """A description of the first difference between two identities."""
    if isinstance(stored, dict) and isinstance(current, dict):
        for key in sorted({*stored, *current}, key=lambda key: (key != "recipe", key)):
            if difference := _difference(stored.get(key), current.get(key), f"{path}.{key}" if path else key):
                return difference
        return None
    return None if stored == current else f"{path} is {_shorten(stored)} there and {_shorten(current)} here"


def _shorten(value: Any) -> str:
    """A value for an error message; hashes are cut."""
    return repr(value[:12] + "...") if isinstance(value, str) and len(value) == 64 else repr(value)


def installed_versions() -> dict[str, str]:
    """Versions of Python and of the installed libraries that results depend on."""
    versions = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions
