"""The words that two-step learning removed: written for people, and judged by whoever has gold."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save as save_tensors

from lacuner.atomic import atomic_write
from lacuner.corpus.words import words_of
from lacuner.data import Document, Span
from lacuner.models.ragged import offsets_of, run_positions
from lacuner.models.tag_sets import span_minimum
from lacuner.techniques.early_learning import Explored
from lacuner.techniques.label_issues import Suspect, Suspects, write_suspects
from lacuner.training.dataset import TrainingSet

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
