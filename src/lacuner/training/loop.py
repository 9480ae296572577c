"""The training loop. It knows no paper: a recipe gives it, for each epoch, a function from sentences to a loss."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from torch import Tensor

from lacuner.errors import TrainingError
from lacuner.evaluate import Count
from lacuner.models.model import AnyModel, Model
from lacuner.models.types import Features
from lacuner.training.batches import epoch_batches
from lacuner.training.config import TrainConfig
from lacuner.training.optimizer import make_optimizer, optimizer_tensors, restore_optimizer, set_rate
from lacuner.training.run_folder import Row, Stage


class StepLoss(NamedTuple):
    """What a step found: a loss summed over `size` things (words, spans, sentences), and how much of it was known."""

    total: Tensor
    size: float
    known: float
    positions: float


class HeldOut(NamedTuple):
    """How good the model is, the higher the better and never below zero, and what is to be written down about it."""

    better: float
    row: dict[str, float]


Step = Callable[[np.ndarray], StepLoss]
"""From numbers of sentences to their loss. Randomness comes from torch's own generator alone, which is saved."""
MakeStep = Callable[[int], Step]
"""What depends on the epoch is in a step made for it. It may be called twice for one epoch, if a run was killed."""


@dataclass
class _Progress:
    """Where training stands; all of it is saved."""

    epoch: int = 0
    batch: int = 0
    sums: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0, 0.0])
    rows: list[Row] = field(default_factory=list)
    best: float = -1.0
    best_epoch: int = -1
    best_weights: dict[str, Tensor] = field(default_factory=dict)


def fit(
    model: AnyModel,
    features: Features,
    make_step: MakeStep,
    config: TrainConfig,
    stage: Stage,
    dev: Callable[[], Count | HeldOut] | None = None,
    start_counts: bool = False,
) -> list[Row]:
    """Train `model` in place and return a row of metrics an epoch.

    With `dev` the weights of the epoch with the best dev F1 (or what else is better) are kept, without it the last. For
    a model that has learned something already, `start_counts` says that its weights may be the best. If the stage is
    finished, its weights are loaded instead; if it was interrupted, it goes on where it was and ends with the same
    weights.
    """
    if stage.finished:
        model.load_state_dict(_part(stage.tensors, "model."))
        stage.record(stage.state["rows"])
        return list(stage.state["rows"])
    trainer = _Trainer(model, features, config, stage)
    at = trainer.restore()
    with enough_threads(model):
        if start_counts and dev is not None and not stage.state:
            trainer.judge(start := _Progress(epoch=-1), {}, dev())
            if start.best:  # who finds nothing has nothing to lose
                at = replace(start, epoch=0)
        while at.epoch < config.epochs and not _patience_is_over(at, config):
            trainer.epoch(at, _made(make_step, at.epoch, stage), dev)
    if dev is not None and at.best_weights:
        model.load_state_dict(at.best_weights)
    stage.finish({f"model.{name}": tensor for name, tensor in model.state_dict().items()}, {"rows": at.rows})
    stage.record(at.rows)
    return at.rows


@contextmanager
def enough_threads(model: AnyModel) -> Iterator[None]:
    """One thread for a model that starts from nothing: its steps are so short that two would wait for each other."""
    before = torch.get_num_threads()
    if not model.encoder.is_transformer:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _made(make_step: MakeStep, epoch: int, stage: Stage) -> Step:
    """An epoch's step, made from a seed of its own: the same also when the epoch is already half done."""
    state = torch.get_rng_state()
    torch.manual_seed(stage.seed("make", epoch))
    step = make_step(epoch)
    torch.set_rng_state(state)
    return step


def _patience_is_over(at: _Progress, config: TrainConfig) -> bool:
    return config.patience is not None and at.best >= 0 and at.epoch - 1 - at.best_epoch >= config.patience


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


class _Trainer:
    """Model, optimizer and device of one `fit`."""

    def __init__(self, model: AnyModel, features: Features, config: TrainConfig, stage: Stage) -> None:
        if config.learning_rate is None or config.head_learning_rate is None or config.budget is None:
            raise TrainingError("learning rates and batch budget must be resolved before training")
        self.model, self.features, self.config, self.stage = model, features, config, stage
        precision = "no" if config.precision == "fp32" else config.precision
        AcceleratorState._reset_state()  # else a second training with another precision in one process is refused
        self.accelerator = Accelerator(cpu=config.device == "cpu", mixed_precision=precision)
        model.to(self.accelerator.device)
        self.optimizer = make_optimizer(model, config.learning_rate, config.head_learning_rate, config.weight_decay)
        self.budget = config.budget
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.saved = time.monotonic()
        stage.describe(config.model_dump(mode="json"))

    def epoch(self, at: _Progress, step: Step, dev: Callable[[], Count | HeldOut] | None) -> None:
        """One epoch, or what is left of it."""
        config, start = self.config, time.monotonic()
        seed = self.stage.seed("epoch", at.epoch)
        batches = epoch_batches(self.features.costs, self.budget, seed)
        if at.batch == 0:
            torch.manual_seed(seed)
            at.sums = [0.0, 0.0, 0.0, 0.0]
        words = sum(int(self.features.lengths[indices].sum()) for indices in batches[at.batch :])
        self.model.train()
        while at.batch < len(batches):
            progress = (at.epoch + (at.batch + 0.5) / len(batches)) / config.epochs
            set_rate(self.optimizer, progress, config.warmup)
            found = self._learn(step, batches[at.batch], at.epoch)
            at.sums = [a + b for a, b in zip(at.sums, found, strict=True)]
            at.batch += 1
            if time.monotonic() - self.saved > config.checkpoint_seconds and at.batch < len(batches):
                self.save(at)
        loss, count, known, positions = at.sums
        if not known:
            raise TrainingError("no label is known in this data: nothing can be learned from it")
        row: Row = {"epoch": at.epoch, "loss": round(loss / count, 6), "known": round(known / max(positions, 1), 6)}
        seconds = time.monotonic() - start
        if dev is not None:
            self.judge(at, row, dev())
        if self.stage.run.callback is not None and isinstance(self.model, Model):
            self.stage.run.callback.on_epoch_end(self.stage.name, at.epoch, self.model)
        at.rows.append(row)
        at.epoch, at.batch = at.epoch + 1, 0
        self.stage.record(at.rows)
        self.stage.run.say(_line(row, config.epochs, words / max(seconds, 1e-9), seconds, self.stage.name))
        if time.monotonic() - self.saved > config.checkpoint_seconds:
            self.save(at)

    def judge(self, at: _Progress, row: Row, scores: Count | HeldOut) -> None:
        """Keep the weights if they are the best so far."""
        if not isinstance(scores, HeldOut):
            scores = HeldOut(scores.f1, {"precision": scores.precision, "recall": scores.recall, "f1": scores.f1})
        row["dev"] = scores.row
        if scores.better > at.best:
            at.best, at.best_epoch = scores.better, at.epoch
            at.best_weights = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}

    def _learn(self, step: Step, indices: np.ndarray, epoch: int) -> tuple[float, float, float, float]:
        """One step of the optimizer. When memory runs out, the batch is halved and its gradients are added up."""
        parts = [indices]
        while True:
            self.optimizer.zero_grad(set_to_none=True)
            sums = np.zeros(4)
            try:
                for part in parts:
                    with self.accelerator.autocast():
                        found = step(part)
                    sums += self._backward(found)
                break
            except RuntimeError as error:
                if not _out_of_memory(error):
                    raise
                if max(map(len, parts)) == 1:
                    raise TrainingError("there is not enough memory for a single sentence of this data") from error
                parts = [half for part in parts for half in np.array_split(part, 2) if len(half)]
        loss, count, known, positions = sums.tolist()
        if not math.isfinite(loss):
            raise TrainingError(f"the loss is not a number in epoch {epoch + 1}: try a lower learning rate")
        if known:
            gradients = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
            torch._foreach_div_(gradients, count)  # the mean over the whole batch, however it was cut
            torch.nn.utils.clip_grad_norm_(self.parameters, self.config.clip)
            self.optimizer.step()
        return loss, count, known, positions

    def _backward(self, found: StepLoss) -> np.ndarray:
        if found.known:
            self.accelerator.backward(found.total)
        return np.array([float(found.total.detach()), found.size, found.known, found.positions])

    def save(self, at: _Progress) -> None:
        """Everything that the rest of the training depends on."""
        tensors = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        tensors |= {f"best.{name}": tensor for name, tensor in at.best_weights.items()}
        tensors |= optimizer_tensors(self.optimizer)
        tensors["random"] = torch.get_rng_state()
        if torch.cuda.is_available():
            tensors["random.cuda"] = torch.cuda.get_rng_state()
        names = ("epoch", "batch", "sums", "rows", "best", "best_epoch")
        self.stage.save(tensors, {name: getattr(at, name) for name in names})
        self.saved = time.monotonic()

    def restore(self) -> _Progress:
        """Where an interrupted run was, or the beginning."""
        state, tensors = self.stage.state, self.stage.tensors
        if not state:
            return _Progress()
        self.model.load_state_dict(_part(tensors, "model."))
        restore_optimizer(self.optimizer, tensors)
        torch.set_rng_state(tensors["random"])
        if "random.cuda" in tensors and torch.cuda.is_available():
            torch.cuda.set_rng_state(tensors["random.cuda"])
        names = ("epoch", "batch", "sums", "rows", "best", "best_epoch")
        at = _Progress(**{name: state[name] for name in names}, best_weights=_part(tensors, "best."))
        self.stage.run.say(f"{self.stage.name}: goes on in epoch {at.epoch + 1}, batch {at.batch + 1}")
        return at


def _out_of_memory(error: RuntimeError) -> bool:
    text = str(error)
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in text or "not enough memory" in text


def _line(row: dict[str, Any], epochs: int, rate: float, seconds: float, stage: str) -> str:
    """One line an epoch: what a person wants to see."""
    parts = [
        f"{stage}: epoch {row['epoch'] + 1}/{epochs}",
        f"loss {row['loss']:.4f}",
        f"known {100 * row['known']:.1f} %",
    ]
    if "f1" in row.get("dev", {}):
        parts.append("dev P {precision:.3f} R {recall:.3f} F1 {f1:.3f}".format(**row["dev"]))
    elif "dev" in row:
        parts.append("held out: " + " ".join(f"{name} {value:.3g}" for name, value in row["dev"].items()))
    left = (epochs - row["epoch"] - 1) * seconds
    parts += [f"{rate:,.0f} words/s", f"{int(left) // 60}:{int(left) % 60:02d} left"]
    return "  ".join(parts)
