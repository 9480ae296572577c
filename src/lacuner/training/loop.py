"""The training loop. It knows no method: a recipe supplies, for each epoch, a function from a batch to its loss."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lacuner.errors import ProcessLostError, TrainingError
from lacuner.evaluate import Count
from lacuner.mapped import release_pages
from lacuner.models.model import AnyModel, Model
from lacuner.models.types import Features, HasStepEnd
from lacuner.training.batches import epoch_batches
from lacuner.training.config import TrainConfig
from lacuner.training.data_parallel import seed_dropout, sum_gradients
from lacuner.training.distributed import process_count, process_rank, value_of_first
from lacuner.training.interrupts import defer_interrupt
from lacuner.training.optimizer import (
    clip_gradients,
    gradients_of,
    make_optimizers,
    optimizer_tensors,
    restore_optimizer,
    set_rate,
    sparse_tables,
)
from lacuner.training.plan import EpochReport, format_time
from lacuner.training.run_folder import Row, Stage
from lacuner.training.steps import MakeStep, Step

RELEASE_EVERY = 1000
"""Steps after which the pages of mapped training data are released."""
REPORT_SECONDS = 60.0
"""Seconds of an epoch between two messages that it goes on."""

Keep = Literal["best", "best or start", "last"]
"""Which weights a stage with dev keeps."""


class DevMetrics(NamedTuple):
    """A selection criterion, higher is better and never below zero, and the metrics to record."""

    criterion: float
    row: dict[str, float]


@dataclass
class _Progress:
    """How far training has come; all of it is saved in a checkpoint."""

    epoch: int = 0
    batch: int = 0
    sums: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0, 0.0])
    rows: list[Row] = field(default_factory=list)
    best: float = -1.0
    best_epoch: int = -1
    best_weights: dict[str, Tensor] = field(default_factory=dict)


def fit(
    model: AnyModel,
    features: Features | Callable[[int], Features],
    make_step: MakeStep,
    config: TrainConfig,
    stage: Stage,
    dev: Callable[[], Count | DevMetrics] | None = None,
    keep: Keep = "best",
) -> list[Row]:
    """Train `model` in place and return one row of metrics per epoch.

    With `dev` the weights of the epoch with the best dev F1 (or other criterion) are kept, without it the last. For a
    model that is trained already, `keep="best or start"` makes its initial weights a candidate too. With `keep="last"`
    dev only measures: all epochs run, and the last is kept. `features` may be a function of the epoch, if each epoch
    trains on other data.

    A finished stage is not trained again: its weights are loaded. An interrupted one resumes, and ends with the same
    weights; Ctrl-C writes a checkpoint first.
    """
    if stage.finished:
        return load_weights(model, stage)
    trainer = _Trainer(model, features, config, stage)
    progress = trainer.restore()
    with limit_threads(model):
        if keep == "best or start" and dev is not None and not stage.state:
            initial = _Progress(epoch=-1)
            trainer.keep_best(initial, {}, _measure(dev))
            if initial.best:  # initial weights are a candidate only if they score above 0 on dev
                progress = replace(initial, epoch=0)
        try:
            while progress.epoch < config.epochs and (keep == "last" or not _out_of_patience(progress, config)):
                due = (progress.epoch + 1) % config.dev_every == 0 or progress.epoch + 1 == config.epochs
                trainer.start = time.monotonic()
                trainer.epoch(progress, _seeded_step(make_step, progress.epoch, stage), dev if due else None)
        except (KeyboardInterrupt, ProcessLostError):
            trainer.save_interrupted(progress)
            raise
    if dev is not None and progress.best_weights and keep != "last":
        model.load_state_dict(progress.best_weights)
    stage.finish({f"model.{name}": tensor for name, tensor in model.state_dict().items()}, {"rows": progress.rows})
    stage.record(progress.rows)
    return progress.rows


def load_weights(model: AnyModel, stage: Stage) -> list[Row]:
    """Give a model the weights of a finished stage; returns the stage's metrics."""
    model.load_state_dict(_with_prefix(stage.tensors, "model."))
    stage.record(stage.state["rows"])
    return list(stage.state["rows"])


@contextmanager
def limit_threads(model: AnyModel) -> Iterator[None]:
    """One thread for small encoders: their steps are so short that two threads would mostly wait for each other."""
    before = torch.get_num_threads()
    if not model.encoder.is_transformer:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _seeded_step(make_step: MakeStep, epoch: int, stage: Stage) -> Step:
    """The step of an epoch, made with a seed of its own: the same when an epoch is resumed half-way."""
    state = torch.get_rng_state()
    torch.manual_seed(stage.seed("make", epoch))
    step = make_step(epoch)
    torch.set_rng_state(state)
    return step


def _out_of_patience(progress: _Progress, config: TrainConfig) -> bool:
    waited = progress.epoch - 1 - max(progress.best_epoch, config.patience_after - 1)
    return config.patience is not None and progress.best >= 0 and waited >= config.patience


def _with_prefix(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


class _Trainer:
    """Model, optimiser and device of one `fit`."""

    def __init__(
        self, model: AnyModel, features: Features | Callable[[int], Features], config: TrainConfig, stage: Stage
    ) -> None:
        if config.learning_rate is None or config.head_learning_rate is None or config.budget is None:
            raise TrainingError("learning rates and batch budget must be resolved before training")
        self.model, self.features, self.config, self.stage = model, features, config, stage
        self.device = torch.device("cuda" if config.device == "auto" and torch.cuda.is_available() else "cpu")
        model.to(self.device)
        self.optimizers = make_optimizers(model, config.learning_rate, config.head_learning_rate, config.weight_decay)
        self.budget = config.budget
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.sparse = sparse_tables(model)
        self.start = self.last_checkpoint = self.last_report = time.monotonic()
        self.unsaved = False  # whether there was a step since the last checkpoint
        self.mid_step = False  # whether the weights are ahead of the progress
        self.random: dict[str, Tensor] = {}  # state of the generators after the last step
        stage.describe(config.model_dump(mode="json"))

    def epoch(self, progress: _Progress, step: Step, dev: Callable[[], Count | DevMetrics] | None) -> None:
        """Train one epoch, or what is left of it."""
        config, start, first = self.config, time.monotonic(), progress.batch
        seed = self.stage.seed("epoch", progress.epoch)
        features = self.features if isinstance(self.features, Features) else self.features(progress.epoch)
        batches = epoch_batches(features.costs, self.budget, seed, config.batch_size)
        if progress.batch == 0:
            torch.manual_seed(seed)
            progress.sums = [0.0, 0.0, 0.0, 0.0]
        words = sum(int(features.lengths[indices].sum()) for indices in batches[progress.batch :])
        self.model.train()
        while progress.batch < len(batches):
            fraction = (progress.epoch + (progress.batch + 0.5) / len(batches)) / config.epochs
            set_rate(self.optimizers, fraction, config.warmup)
            seed_dropout(self.stage.seed("dropout", progress.epoch, progress.batch, process_rank()))
            with defer_interrupt():
                sums = self._update(step, batches[progress.batch], progress.epoch)
                progress.sums = [a + b for a, b in zip(progress.sums, sums, strict=True)]
                progress.batch += 1
                self.mid_step, self.unsaved, self.random = False, True, _random_state()
            if progress.batch % RELEASE_EVERY == 0:
                release_pages()
            if progress.batch < len(batches):
                self._checkpoint_if_due(progress)
                self._report_if_due(progress, first, len(batches), start)
        loss, count, known, positions = progress.sums
        if not known:
            raise TrainingError("no label is known in this data: nothing can be learned from it")
        row: Row = {
            "epoch": progress.epoch,
            "loss": round(loss / count, 6),
            "known": round(known / max(positions, 1), 6),
        }
        words_per_second = words / max(time.monotonic() - start, 1e-9)
        scores = None if dev is None else _measure(dev)
        run = self.stage.run
        if run.callback is not None and isinstance(self.model, Model):
            run.callback.on_epoch_end(self.stage.name, progress.epoch, self.model)
        with defer_interrupt():
            if scores is not None:
                self.keep_best(progress, row, scores)
            progress.rows.append(row)
            progress.epoch, progress.batch = progress.epoch + 1, 0
        self.stage.record(progress.rows)
        trained = 1 - first / len(batches)
        seconds = (time.monotonic() - self.start) / trained if trained else None
        line = _progress_line(row, config.epochs, words_per_second, self.stage.name)
        run.log_epoch(EpochReport(self.stage.name, line, progress.epoch, config.epochs, seconds))
        self._checkpoint_if_due(progress)

    def keep_best(self, progress: _Progress, row: Row, scores: Count | DevMetrics) -> None:
        """Record the dev scores, and keep the weights if they are the best so far."""
        scores = _as_metrics(scores)
        row["dev"] = scores.row
        if scores.criterion > progress.best:
            progress.best, progress.best_epoch = scores.criterion, progress.epoch
            progress.best_weights = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}

    def _update(self, step: Step, indices: np.ndarray, epoch: int) -> tuple[float, float, float, float]:
        """One optimiser step. If memory runs out, the batch is halved and gradients are accumulated."""
        parts = [indices]
        while True:
            self.optimizers.zero_grad()
            sums = np.zeros(4)
            try:
                for part in parts:
                    sums += self._backward(step, part)
                break
            except RuntimeError as error:
                if not _is_out_of_memory(error):
                    raise
                if process_count() > 1:
                    message = f"process {process_rank()} has too little memory for its share of a batch"
                    raise TrainingError(f"{message}: set a smaller train.budget") from error
                if max(map(len, parts)) == 1:
                    raise TrainingError("there is not enough memory for a single sentence of this data") from error
                parts = [half for part in parts for half in np.array_split(part, 2) if len(half)]
        loss, count, known, positions = sums.tolist()
        if not math.isfinite(loss):
            raise TrainingError(f"the loss is not a number in epoch {epoch + 1}: try a lower train.learning_rate")
        if known:
            sum_gradients(self.parameters, self.sparse)
            gradients = gradients_of(self.parameters)
            torch._foreach_div_(gradients, count)  # the mean over the whole batch, however it was split
            clip_gradients(gradients, self.config.clip)
            self.mid_step = True
            self.optimizers.step()
            if isinstance(self.model, HasStepEnd):
                self.model.after_step()
        return loss, count, known, positions

    def _backward(self, step: Step, indices: np.ndarray) -> np.ndarray:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.precision == "bf16"):
            loss = step(indices)
        if loss.known:
            loss.total.backward()  # type: ignore[no-untyped-call]
        return np.array([float(loss.total.detach()), loss.size, loss.known, loss.positions])

    def _checkpoint_if_due(self, progress: _Progress) -> None:
        if time.monotonic() - self.last_checkpoint > self.config.checkpoint_seconds:
            self.save(progress)

    def _report_if_due(self, progress: _Progress, first: int, batches: int, start: float) -> None:
        """Log once a minute how far a long epoch is that began with batch `first`."""
        if (now := time.monotonic()) - max(start, self.last_report) > REPORT_SECONDS:
            self.last_report = now
            left = format_time((now - start) * (batches - progress.batch) / (progress.batch - first))
            epoch = f"{self.stage.name}: epoch {progress.epoch + 1}/{self.config.epochs}"
            self.stage.run.log(f"{epoch}  {100 * progress.batch / batches:.0f} % done, {left} left in this epoch")

    def save_interrupted(self, progress: _Progress) -> None:
        """Write a checkpoint after Ctrl-C, unless there is nothing new, or a step has changed half of the weights."""
        if self.unsaved and not self.mid_step:
            self.save(progress, self.random)  # an interrupted step may have drawn numbers

    def save(self, progress: _Progress, random: Mapping[str, Tensor] | None = None) -> None:
        """Write a checkpoint: everything that the rest of the training depends on."""
        tensors = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        tensors |= {f"best.{name}": tensor for name, tensor in progress.best_weights.items()}
        tensors |= optimizer_tensors(self.optimizers)
        tensors |= _random_state() if random is None else random
        processes = {"processes": process_count()} if process_count() > 1 else {}
        self.stage.save(tensors, {name: getattr(progress, name) for name in _SAVED} | processes)
        self.last_checkpoint, self.unsaved = time.monotonic(), False

    def restore(self) -> _Progress:
        """The progress of an interrupted stage, or the beginning."""
        state, tensors = self.stage.state, self.stage.tensors
        if not state:
            return _Progress()
        self.model.load_state_dict(_with_prefix(tensors, "model."))
        restore_optimizer(self.optimizers, tensors)
        torch.set_rng_state(tensors["random"])
        if "random.cuda" in tensors and torch.cuda.is_available():
            torch.cuda.set_rng_state(tensors["random.cuda"])
        progress = _Progress(**{name: state[name] for name in _SAVED}, best_weights=_with_prefix(tensors, "best."))
        self.stage.run.log(f"{self.stage.name}: resuming in epoch {progress.epoch + 1}, batch {progress.batch + 1}")
        if (before := state.get("processes", 1)) != process_count():
            self.stage.run.log(
                f"{self.stage.name}: {before} processes trained so far, now {process_count()}: dropout is drawn "
                "differently, so the result will not be the same as without the change"
            )
        return progress


def _measure(dev: Callable[[], Count | DevMetrics]) -> Count | DevMetrics:
    """The dev scores; of several processes those of the first count, so that all decide alike."""
    scores = dev()
    return scores if process_count() == 1 else DevMetrics(*value_of_first(lambda: _as_metrics(scores)))


def _as_metrics(scores: Count | DevMetrics) -> DevMetrics:
    if isinstance(scores, DevMetrics):
        return scores
    return DevMetrics(scores.f1, {"precision": scores.precision, "recall": scores.recall, "f1": scores.f1})


_SAVED = ("epoch", "batch", "sums", "rows", "best", "best_epoch")


def _random_state() -> dict[str, Tensor]:
    """The state of torch's generators, by the names that they have in a checkpoint."""
    state = {"random": torch.get_rng_state()}
    return state | {"random.cuda": torch.cuda.get_rng_state()} if torch.cuda.is_available() else state


def _is_out_of_memory(error: RuntimeError) -> bool:
    text = str(error)
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in text or "not enough memory" in text


def _progress_line(row: dict[str, Any], epochs: int, words_per_second: float, stage: str) -> str:
    """One line per epoch for the console."""
    parts = [
        f"{stage}: epoch {row['epoch'] + 1}/{epochs}",
        f"loss {row['loss']:.4f}",
        f"trained on {100 * row['known']:.1f} % of positions",
    ]
    if "f1" in row.get("dev", {}):
        parts.append("dev P {precision:.3f} R {recall:.3f} F1 {f1:.3f}".format(**row["dev"]))
    elif "dev" in row:
        parts.append("held out: " + " ".join(f"{name} {value:.3g}" for name, value in row["dev"].items()))
    return "  ".join([*parts, f"{words_per_second:,.0f} words/s"])
