"""What two-step learning removed, drawn: how the O-values come apart, and what another share would have found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors

from lacuner.data import Document
from lacuner.errors import CorpusError, ModelFileError
from lacuner.models.ragged import offsets_of, run_positions
from lacuner.reporting.svg import Axes, Look, Panel, Picture, look_of
from lacuner.techniques.early_learning import smallest
from lacuner.techniques.label_removal import VALUES, _texts
from lacuner.training.identity import canonical

SHARES = tuple(0.1 * 2.0**power for power in range(-5, 4))
"""The shares that the paper tries, and larger ones: what is missing may be more than half."""


def pictures(runs: Mapping[str, Judged]) -> list[Picture]:
    """Pictures of one run, or of several side by side; `runs` are by the names to show."""
    kinds = {"no entity": look_of(0), "unlabelled entity": look_of(1)}
    looks = {name: look_of(number) for number, name in enumerate(runs)}
    words = [Panel(name, _Values(judged, tuple(kinds.values()))) for name, judged in runs.items()]
    found = [Panel(title, _Shares(runs, looks, part)) for part, title in enumerate(("precision", "recall"))]
    return [
        Picture(
            "o-values",
            "O-values, epoch by epoch",
            "Medians of the scores that the explored model gives O, for words of unlabelled entities and for words "
            "that are none; bands are the middle half. A run with each_epoch=true asks after each epoch.",
            words,
            kinds,
        ),
        Picture(
            "removed-words",
            "Removed words against the share that is removed",
            "Precision: how many of the removed words belong to unlabelled entities; recall: how many of those words "
            "are removed. The large mark is the share that the run removed.",
            found,
            looks,
        ),
    ]


@dataclass(frozen=True)
class _Values:
    judged: Judged
    looks: Sequence[Look]

    def __call__(self, axes: Axes) -> None:
        from matplotlib.ticker import MaxNLocator

        epochs = self.judged.epochs
        for look, mine in zip(self.looks, (~self.judged.missing, self.judged.missing), strict=True):
            if mine.any():
                low, middle, high = np.quantile(self.judged.values[:, mine], (0.25, 0.5, 0.75), axis=1)
                axes.fill_between(epochs, low, high, color=look.colour, alpha=0.18, linewidth=0)
                if len(epochs) == 1:  # nobody asked before the end: a band would have no width
                    axes.vlines(epochs, low, high, color=look.colour, alpha=0.5)
                axes.plot(epochs, middle, color=look.colour, marker=look.marker, markersize=4)
        axes.set_xlabel("epoch")
        axes.set_ylabel("O-value")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


@dataclass(frozen=True)
class _Shares:
    runs: Mapping[str, Judged]
    looks: Mapping[str, Look]
    part: int
    """0: precision, 1: recall."""

    def __call__(self, axes: Axes) -> None:
        for name, judged in self.runs.items():
            look = self.looks[name]
            values = [100 * judged.if_removed(share)[self.part] for share in SHARES]
            axes.plot([100 * share for share in SHARES], values, color=look.colour, marker=look.marker, markersize=3)
            share = float(judged.removed.mean()) if len(judged.removed) else 0.0
            if share:
                value = 100 * (judged.precision, judged.recall)[self.part]
                axes.plot([100 * share], [value], color=look.colour, marker=look.marker, markersize=7)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_xlabel("per cent of the unlabelled words that are removed")
        axes.set_ylabel(("precision", "recall")[self.part])
        axes.set_ylim(0, 101)


def table(runs: Mapping[str, Judged]) -> Iterator[tuple[str, float, float, float]]:
    """A row a run and share: its name, the share, precision and recall."""
    for name, judged in runs.items():
        for share in SHARES:
            yield (name, share, *judged.if_removed(share))


@dataclass(frozen=True)
class Judged:
    """The words that were taken for O, and what they are."""

    epochs: np.ndarray
    """After how many epochs the model was asked."""
    values: np.ndarray
    """O-values `[epochs, words]`."""
    removed: np.ndarray
    missing: np.ndarray
    """Whether the word belongs to an entity of gold."""

    @property
    def precision(self) -> float:
        """The share of the removed words that belong to entities."""
        return _ratio(self.missing & self.removed, self.removed)

    @property
    def recall(self) -> float:
        """The share of the words of unlabelled entities that were removed."""
        return _ratio(self.missing & self.removed, self.missing)

    def if_removed(self, share: float) -> tuple[float, float]:
        """Precision and recall if another share had been removed, by the last opinion."""
        gone = smallest(self.values[-1], np.ones(len(self.missing), dtype=bool), share)
        return _ratio(self.missing & gone, gone), _ratio(self.missing & gone, self.missing)

    def as_json(self) -> dict[str, float | int]:
        counts = {"words": len(self.missing), "missing": int(self.missing.sum()), "removed": int(self.removed.sum())}
        return {**counts, "precision": self.precision, "recall": self.recall}


def _ratio(part: np.ndarray, whole: np.ndarray) -> float:
    return float(part.sum() / whole.sum()) if whole.any() else 0.0


def judge_suspects(run_folder: str | PathLike[str], gold: Iterable[Document]) -> Judged:
    """Compare what a finished `two_step` run removed with gold of the same documents; training never sees it."""
    path = Path(run_folder) / VALUES
    try:
        rows = {name: tensor.numpy() for name, tensor in load_tensors(path.read_bytes()).items()}
        document, start, end = rows["document"], rows["start"], rows["end"]
        epochs, values, removed, texts = (rows[name] for name in ("epochs", "values", "removed", "texts"))
    except FileNotFoundError as error:
        raise ModelFileError("this is no run of two_step: it has no O-values", file=run_folder) from error
    except (OSError, KeyError, SafetensorError) as error:
        raise ModelFileError("the O-values of this run cannot be read", file=path) from error
    docs = canonical(gold)
    if not np.array_equal(_texts(docs).numpy(), texts):
        raise CorpusError(
            f"gold has {len(docs):,} documents that are not the {len(texts):,} of the run", file=run_folder
        )
    return Judged(epochs, values, removed, _inside(docs, document, start, end))


def _inside(docs: Sequence[Document], document: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Which words share a character with an entity of the documents."""
    shift = offsets_of(np.array([len(doc.text) for doc in docs], dtype=np.int64))
    entity = np.zeros(int(shift[-1]) + 1, dtype=np.int64)
    spans = [(shift[i] + span.start, shift[i] + span.end) for i, doc in enumerate(docs) for span in doc.spans]
    first, last = np.array(spans, dtype=np.int64).reshape(-1, 2).T
    entity[run_positions(first, last - first)] = 1
    before = np.concatenate([[0], np.cumsum(entity)])
    inside: np.ndarray = before[shift[document] + end] > before[shift[document] + start]
    return inside
