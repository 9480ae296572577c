"""Compare the tokens whose O label a `two_step` run removed with gold, which training never sees."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors

from lacuner.atomic import read_regular_file
from lacuner.data import Document
from lacuner.errors import CorpusError, ModelFileError
from lacuner.models.ragged import offsets_of, run_positions
from lacuner.reporting.svg import Axes, Figure, LineStyle, Panel, line_style
from lacuner.techniques.early_learning import smallest_values
from lacuner.techniques.filtered_tokens import VALUES, text_hashes
from lacuner.training.identity import sort_documents

SHARES = tuple(0.1 * 2.0**power for power in range(-5, 4))
"""The shares of the paper, and larger ones for corpora in which more than half of the labels are missing."""


@dataclass(frozen=True)
class FilteredTokens:
    """The unlabeled tokens of a run, with gold: which of them were removed, and which belong to entities."""

    epochs: np.ndarray
    """Epochs after which O-values were recorded, `[epochs]`."""
    values: np.ndarray
    """O-values, `[epochs, tokens]`."""
    removed: np.ndarray
    """Whether the label O of a token was removed, `[tokens]`."""
    missing: np.ndarray
    """Whether a token belongs to a gold entity, so that its label is missing, `[tokens]`."""

    @property
    def precision(self) -> float:
        """Share of the removed tokens that belong to entities."""
        return _share(self.missing, self.removed)

    @property
    def recall(self) -> float:
        """Share of the tokens of unlabeled entities that were removed."""
        return _share(self.removed, self.missing)

    def scores_at(self, share: float) -> tuple[float, float]:
        """Precision and recall if another share had been removed, by the O-values of the last epoch."""
        removed = smallest_values(self.values[-1], np.ones(len(self.missing), dtype=bool), share)
        return _share(self.missing, removed), _share(removed, self.missing)

    def as_json(self) -> dict[str, float | int]:
        counts = {"words": len(self.missing), "missing": int(self.missing.sum()), "removed": int(self.removed.sum())}
        return {**counts, "precision": self.precision, "recall": self.recall}


def _share(condition: np.ndarray, among: np.ndarray) -> float:
    return float(condition[among].mean()) if among.any() else 0.0


def audit_filtered_tokens(run_folder: str | PathLike[str], gold: Iterable[Document]) -> FilteredTokens:
    """Compare the tokens that a finished `two_step` run removed with gold for the same documents."""
    path = Path(run_folder) / VALUES
    try:
        arrays = {name: tensor.numpy() for name, tensor in load_tensors(read_regular_file(path)).items()}
        document, start, end = arrays["document"], arrays["start"], arrays["end"]
        epochs, values, removed, texts = (arrays[name] for name in ("epochs", "values", "removed", "texts"))
    except FileNotFoundError as error:
        problem = "this is not a run of two_step with a token or CRF head: it has no O-values"
        raise ModelFileError(problem, file=run_folder) from error
    except (OSError, KeyError, SafetensorError) as error:
        raise ModelFileError("the O-values of this run cannot be read", file=path) from error
    docs = sort_documents(gold)
    if not np.array_equal(text_hashes(docs).numpy(), texts):
        problem = f"the {len(docs):,} documents of --gold are not the {len(texts):,} that the run was trained on"
        raise CorpusError(problem, file=run_folder)
    return FilteredTokens(epochs, values, removed, _in_entity(docs, document, start, end))


def _in_entity(docs: Sequence[Document], document: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Whether each token shares a character with an entity; a token is a document's index and two offsets."""
    shift = offsets_of(np.array([len(doc.text) for doc in docs], dtype=np.int64))
    characters = np.zeros(int(shift[-1]) + 1, dtype=np.int64)
    spans = [(shift[i] + span.start, shift[i] + span.end) for i, doc in enumerate(docs) for span in doc.spans]
    first, last = np.array(spans, dtype=np.int64).reshape(-1, 2).T
    characters[run_positions(first, last - first)] = 1
    before = np.concatenate([[0], np.cumsum(characters)])
    overlap: np.ndarray = before[shift[document] + end] > before[shift[document] + start]
    return overlap


def removal_curve(runs: Mapping[str, FilteredTokens]) -> Iterator[tuple[str, float, float, float]]:
    """Yield run name, share, precision and recall for every run and share in `SHARES`."""
    for name, tokens in runs.items():
        for share in SHARES:
            yield (name, share, *tokens.scores_at(share))


def removal_figures(runs: Mapping[str, FilteredTokens]) -> list[Figure]:
    """Return the figures of one run, or of several side by side; `runs` maps the names to show to their tokens."""
    kinds = {"no entity": line_style(0), "unlabeled entity": line_style(1)}
    styles = {name: line_style(number) for number, name in enumerate(runs)}
    return [
        Figure(
            "o-values",
            "O-values by epoch",
            "Median score that the exploration model gives O, for tokens of unlabeled entities and for other tokens; "
            "bands cover the middle half. With each_epoch=true a run records the scores after every epoch.",
            [Panel(name, partial(_plot_values, tokens, list(kinds.values()))) for name, tokens in runs.items()],
            kinds,
        ),
        Figure(
            "removed-words",
            "Precision and recall by the share of tokens that is removed",
            "Precision: the share of the removed tokens that belong to unlabeled entities. Recall: the share of the "
            "tokens of unlabeled entities that are removed. The large mark is the share that the run removed.",
            [
                Panel(score, partial(_plot_removal, runs, styles, column))
                for column, score in enumerate(("precision", "recall"))
            ],
            styles,
        ),
    ]


def _plot_values(tokens: FilteredTokens, styles: Sequence[LineStyle], axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    epochs = tokens.epochs
    for style, selected in zip(styles, (~tokens.missing, tokens.missing), strict=True):
        if selected.any():
            low, median, high = np.quantile(tokens.values[:, selected], (0.25, 0.5, 0.75), axis=1)
            axes.fill_between(epochs, low, high, color=style.colour, alpha=0.18, linewidth=0)
            if len(epochs) == 1:  # a band over one epoch would have no width
                axes.vlines(epochs, low, high, color=style.colour, alpha=0.5)
            axes.plot(epochs, median, color=style.colour, marker=style.marker, markersize=4)
    axes.set(xlabel="epoch", ylabel="O-value")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _plot_removal(runs: Mapping[str, FilteredTokens], styles: Mapping[str, LineStyle], column: int, axes: Axes) -> None:
    """Plot precision (column 0) or recall (column 1) by share."""
    for name, tokens in runs.items():
        style = styles[name]
        scores = [100 * tokens.scores_at(share)[column] for share in SHARES]
        axes.plot([100 * share for share in SHARES], scores, color=style.colour, marker=style.marker, markersize=3)
        if tokens.removed.any():
            score = 100 * (tokens.precision, tokens.recall)[column]
            axes.plot([100 * tokens.removed.mean()], [score], color=style.colour, marker=style.marker, markersize=7)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ylabel = ("precision", "recall")[column]
    axes.set(xlabel="per cent of the unlabeled tokens that are removed", ylabel=ylabel, ylim=(0, 101))
