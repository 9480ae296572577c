"""The run folder: what was asked for, how far it has come, and what came out.

`run.json` says what the run is: recipe, settings, seed, hashes of the data, versions. Each stage keeps its state in a
folder of its own; `state.json` is always written last and names the tensors with their hash, so that a kill at any
moment leaves either the old state or the new one. The same command continues an unfinished run.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from lacuner.atomic import atomic_write
from lacuner.errors import ConfigError, ModelFileError
from lacuner.processes import lock_folder
from lacuner.training.callbacks import TrainingCallback

Row = dict[str, Any]
_LIBRARIES = ("lacuner", "torch", "numpy", "safetensors", "accelerate", "transformers", "tokenizers")


def quiet(_: str) -> None:
    """Say nothing: what a library does unless somebody listens."""


class Stage:
    """A part of a run that is done once. `finished` says that it has been."""

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
        """A seed for this stage, and for an epoch or whatever else of it."""
        return self.run.seed_for(self.name, *parts)

    def save(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Keep tensors and a JSON-able state, in place of what was kept before."""
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
        self.save(tensors, {**state, "finished": True})

    def describe(self, settings: Mapping[str, Any]) -> None:
        """Write down the settings as they were resolved."""
        with atomic_write(self.folder / "settings.json") as stream:
            stream.write((json.dumps(settings, indent=1) + "\n").encode())

    def record(self, rows: list[Row]) -> None:
        """The stage's metrics so far; the run's `metrics.jsonl` has those of all stages."""
        self.run.record(self.name, rows)

    def _load(self) -> None:
        path = self.folder / "state.json"
        if not path.exists():
            return
        try:
            self.state = json.loads(path.read_text(encoding="utf-8"))
            data = (self.folder / self.state["tensors"]).read_bytes()
            if hashlib.sha256(data).hexdigest() != self.state["sha256"]:
                raise ModelFileError(
                    "the state of this stage is damaged: remove the folder to begin it again", file=path
                )
            self.tensors = load_tensors(data)
        except (OSError, ValueError, KeyError, TypeError, RecursionError, SafetensorError) as error:
            raise ModelFileError("the state of this stage cannot be read: remove the folder", file=path) from error


class Run:
    """A folder in which something is trained. `say` is given a line for people now and then."""

    def __init__(
        self,
        folder: str | PathLike[str],
        identity: Mapping[str, Any],
        say: Callable[[str], None] = quiet,
        callback: TrainingCallback | None = None,
    ) -> None:
        self.folder = Path(folder)
        self.identity = json.loads(json.dumps(identity, default=str))
        self.say, self.callback = say, callback
        self._metrics: dict[str, list[Row]] = {}

    def _check_place(self) -> None:
        """Leave alone what is neither a run nor empty. Without a lock: it would be a file in somebody's folder."""
        if self.folder.exists() and not self.folder.is_dir():
            raise ConfigError("this is a file, not a folder for a run", file=self.folder)
        known = not self.folder.exists() or (self.folder / "run.json").exists()
        if not known and any(not _left_behind(file) for file in self.folder.iterdir()):
            raise ConfigError("this folder is not empty, and not a run: choose another one", file=self.folder)

    def _claim(self) -> None:
        """Write down whose folder this is, or see that it is ours."""
        path = self.folder / "run.json"
        if path.exists():
            try:
                known = json.loads(path.read_text(encoding="utf-8"))["identity"]
            except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
                raise ModelFileError("this is not the description of a run", file=path) from error
            difference = _difference(known, self.identity)
            if difference:
                raise ConfigError(f"another run is in this folder ({difference}): choose another one", file=self.folder)
            return
        about = {"identity": self.identity, "versions": installed_versions(), "machine": platform.platform()}
        with atomic_write(path) as stream:
            stream.write((json.dumps(about, indent=1, ensure_ascii=False) + "\n").encode())

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Begin the run in its folder, or go on with it; nobody else may work there meanwhile."""
        try:
            self._check_place()
        except OSError as error:
            raise ConfigError(f"cannot read this folder: {error.strerror}", file=self.folder) from error
        with lock_folder(self.folder):
            self._claim()  # only now: of two that begin at once, one has the folder
            for file in [file for file in self.folder.rglob(".*.part") if _left_behind(file)]:
                file.unlink(missing_ok=True)
            yield

    @contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        """A stage by its name, such as `train` or `ensemble/3`; if it is finished, it has its results already."""
        stage = Stage(self, name)
        yield stage

    @property
    def seed(self) -> int:
        return int(self.identity.get("seed", 1))

    def seed_for(self, *parts: object) -> int:
        """A number that depends on the run's seed and on what it is for, and on nothing else."""
        text = "/".join(map(str, (self.seed, *parts)))
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1

    @property
    def model_folder(self) -> Path:
        return self.folder / "model"

    @property
    def finished(self) -> bool:
        return (self.folder / "finished.json").exists()

    def finish(self, summary: Mapping[str, Any]) -> None:
        with atomic_write(self.folder / "finished.json") as stream:
            stream.write((json.dumps(summary, indent=1, ensure_ascii=False) + "\n").encode())

    def record(self, stage: str, rows: list[Row]) -> None:
        self._metrics[stage] = [{"stage": stage, **row} for row in rows]
        lines = [json.dumps(row) + "\n" for part in self._metrics.values() for row in part]
        with atomic_write(self.folder / "metrics.jsonl") as stream:
            stream.write("".join(lines).encode())


def _left_behind(file: Path) -> bool:
    """Half of a file that a killed process was writing, or its lock."""
    return file.name.startswith(".") and file.name.endswith((".part", ".lock"))


def _difference(known: Any, asked: Any, where: str = "") -> str | None:
    """The first place where two descriptions differ, in words."""
    if isinstance(known, dict) and isinstance(asked, dict):
        for key in sorted({*known, *asked}, key=lambda key: (key != "recipe", key)):
            found = _difference(known.get(key), asked.get(key), f"{where}.{key}" if where else key)
            if found:
                return found
        return None
    return None if known == asked else f"{where} is {_short(known)} there and {_short(asked)} here"


def _short(value: Any) -> str:
    """A value in words; of a hash enough to tell it from another."""
    return repr(value[:12] + "...") if isinstance(value, str) and len(value) == 64 else repr(value)


def installed_versions() -> dict[str, str]:
    """Versions of Python and of the libraries that results depend on, as far as they are installed."""
    versions = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions
