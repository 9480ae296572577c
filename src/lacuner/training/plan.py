"""How far a run with several stages is, and how long the rest will take."""

import heapq
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple


class EpochReport(NamedTuple):
    """What is known after an epoch; child processes send it to their parent as JSON."""

    stage: str
    line: str
    """The metrics, for the console."""
    done: int
    """Epochs of this stage that are trained."""
    epochs: int
    seconds: float | None
    """Duration of a whole epoch; None if it was not measured."""

    def as_json(self) -> str:
        return json.dumps(self._asdict())


def read_report(line: str) -> EpochReport | None:
    """The report in a line of a child process; None if it is any other line.

    >>> read_report(EpochReport("models/1", "loss 0.5", 1, 2, 30.0).as_json()).stage
    'models/1'
    >>> read_report("models/1: resuming in epoch 2, batch 1")
    """
    try:
        return EpochReport(**json.loads(line))
    except (ValueError, TypeError):
        return None


@dataclass
class _StageTimes:
    epochs: int
    done: int
    measured: int = 0
    """Number of epochs that took `seconds` in total."""
    seconds: float = 0.0


class Plan:
    """The stages of a run in their order, with the epochs that are trained and the time that they took.

    >>> plan = Plan({"models/1": 10, "models/2": 10, "train": 20}, done={"models/1": 10})
    >>> plan.record(EpochReport("models/2", "", done=4, epochs=10, seconds=3.0))
    >>> plan.describe("models/2")
    'stage 2 of 3, 1:18 left in total'
    """

    def __init__(self, epochs: Mapping[str, int] | None = None, done: Mapping[str, int] | None = None) -> None:
        self._stages: dict[str, _StageTimes] = {}
        self._parallel: list[str] = []
        self._workers = 1
        self.repetitions = 0
        """How many times more all stages are trained after these, for other models."""
        self.add(epochs or {}, done or {})

    def __contains__(self, stage: str) -> bool:
        return stage in self._stages

    def add(self, epochs: Mapping[str, int], done: Mapping[str, int]) -> None:
        """Insert stages before those planned earlier: a recipe that calls another one plans its own stages first."""
        self._stages = {name: _StageTimes(count, done.get(name, 0)) for name, count in epochs.items()} | self._stages

    def run_in_parallel(self, stages: Iterable[str], workers: int) -> None:
        """From now on, estimate for these stages that `workers` run at a time, and for all others that one does."""
        self._parallel, self._workers = [name for name in stages if name in self._stages], workers

    def record(self, report: EpochReport) -> None:
        """Add an epoch. Stages planned before that of the epoch are over: finished, stopped early, or left out."""
        for name, stage in self._stages.items():
            if name == report.stage:
                break
            if name not in self._parallel:
                stage.done = stage.epochs
        stage = self._stages[report.stage]
        stage.done, stage.epochs = report.done, report.epochs
        if report.seconds is not None:
            stage.measured, stage.seconds = stage.measured + 1, stage.seconds + report.seconds

    def finish(self, stage: str) -> None:
        """Note that a stage is over, perhaps by early stopping."""
        if stage in self._stages:
            self._stages[stage].done = self._stages[stage].epochs

    def describe(self, stage: str) -> str:
        """The position of a stage among all, and the time left for all of them if it can be estimated."""
        names = list(self._stages)
        position = [f"stage {names.index(stage) + 1} of {len(names)}"] if len(names) > 1 else []
        seconds = self.seconds_left()
        in_total = " in total" if position or self.repetitions else ""
        left = [] if seconds is None else [f"{format_time(seconds)} left{in_total}"]
        return ", ".join(position + left)

    def seconds_left(self) -> float | None:
        """Estimated time for the epochs to come; a stage without measured epochs is taken to be like the others."""
        measured = sum(stage.measured for stage in self._stages.values())
        if not measured:
            return None
        mean = sum(stage.seconds for stage in self._stages.values()) / measured
        per_epoch = {
            name: stage.seconds / stage.measured if stage.measured else mean for name, stage in self._stages.items()
        }
        left = {name: (stage.epochs - stage.done) * per_epoch[name] for name, stage in self._stages.items()}
        whole = {name: stage.epochs * per_epoch[name] for name, stage in self._stages.items()}
        return self._add_up(left) + self.repetitions * self._add_up(whole)

    def _add_up(self, seconds: dict[str, float]) -> float:
        """The time that these stages take together."""
        ends = [0.0] * self._workers
        for name in self._parallel:  # each is started by the worker that is free first
            heapq.heapreplace(ends, ends[0] + seconds.pop(name))
        return max(ends) + sum(seconds.values())


def format_time(seconds: float) -> str:
    """A duration for the console.

    >>> format_time(220.4), format_time(7325)
    ('3:40', '2:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
