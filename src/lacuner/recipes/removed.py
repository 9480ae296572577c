"""The words that two-step learning removed: written for people, and judged by whoever has gold."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from lacuner.corpus.words import words_of
from lacuner.errors import CorpusError, ModelFileError
from lacuner.files import atomic_write
from lacuner.models.packing import offsets_of, run_positions
from lacuner.models.schemes import span_minimum
from lacuner.recipes.o_values import Explored, smallest
from lacuner.recipes.parts import canonical
from lacuner.recipes.suspects import Suspect, Suspects, write_suspects
from lacuner.training.data import TrainingSet
from lacuner.types import Document, Span

VALUES = "o_values.safetensors"
REMOVED = "removed.jsonl"


def write_removed(folder: Path, docs: Sequence[Document], explored: Explored, epoch: int, gone: np.ndarray) -> None:
    """Write the removed words as spans, the least likely O first, and the O-values of all words that were looked at.

    The score of a span is the smallest O-value of its words: the lower, the more suspect.
    """
    document, start, end = places(docs, explored.weak.data)
    values = np.stack([opinion["value"].numpy() for opinion in explored.opinions.values()])
    plain = explored.weak.plain
    rows = {"document": document[plain], "start": start[plain], "end": end[plain], "removed": gone[plain]}
    tensors = {name: torch.from_numpy(np.ascontiguousarray(row)) for name, row in rows.items()}
    tensors |= {"values": torch.from_numpy(np.ascontiguousarray(values[:, plain])), "texts": _texts(docs)}
    tensors["epochs"] = torch.tensor(list(explored.opinions))
    with atomic_write(folder / VALUES) as stream:
        stream.write(save_tensors(tensors))
    first, last = runs(gone, offsets_of(explored.weak.data.features.lengths))
    lowest = span_minimum(explored.opinions[epoch]["value"].numpy(), first, last)
    spans = zip(document[first], start[first], end[last - 1], lowest, strict=True)
    found = [Suspect("removed", docs[d], Span(int(a), int(b), "", round(float(v), 6))) for d, a, b, v in spans]
    found.sort(key=lambda suspect: suspect.span.score or 0.0)
    write_suspects(Suspects(found, [], 0), folder / REMOVED)


def places(docs: Sequence[Document], data: TrainingSet) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each word of the row: the number of its document, and its characters there."""
    sentences, lengths = data.sentences, data.features.lengths
    windows = np.array(sentences.windows, dtype=np.int64).reshape(-1, 4)
    before = offsets_of(np.fromiter((len(words_of(doc)) for doc in docs), dtype=np.int64, count=len(docs)))
    edges = np.array([edge for doc in docs for edge in words_of(doc)], dtype=np.int64).reshape(-1, 2)
    words = run_positions(before[sentences.document] + windows[:, 0], lengths)
    return np.repeat(sentences.document, lengths), edges[words, 0], edges[words, 1]


def runs(chosen: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends of the runs of chosen words; a run ends with its sentence."""
    before = np.concatenate([[False], chosen[:-1]]) if len(chosen) else chosen
    first = np.zeros(len(chosen), dtype=bool)
    first[offsets[:-1][offsets[:-1] < len(chosen)]] = True
    start = np.flatnonzero(chosen & (first | ~before))
    stops = np.union1d(np.flatnonzero(~chosen), offsets[1:])
    return start, stops[np.searchsorted(stops, start, side="right")] if len(start) else start


def _texts(docs: Iterable[Document]) -> torch.Tensor:
    """A number for each document's text, so that gold of other documents is noticed."""
    digests = [hashlib.blake2b(doc.text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for doc in docs]
    return torch.tensor([int.from_bytes(digest, "big", signed=True) for digest in digests], dtype=torch.int64)


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
