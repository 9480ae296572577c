"""Tokens that two-step learning filtered out of training: as spans to review, and with their values for audits."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save as save_tensors

from lacuner.atomic import atomic_write
from lacuner.data import Document, Span
from lacuner.models.ragged import find_marked
from lacuner.models.tag_sets import span_minimum
from lacuner.techniques.label_issues import REMOVED, Disagreement, write_label_issues
from lacuner.training.dataset import WeakTrainingSet, character_positions

VALUES = "o_values.safetensors"


def write_removed(
    folder: Path,
    docs: Sequence[Document],
    weak: WeakTrainingSet,
    ranking: Mapping[int, np.ndarray],
    epoch: int,
    removed: np.ndarray,
) -> None:
    """Write the removed positions as spans and, of tokens, the values that ranked all unlabeled ones.

    `ranking` has the values that rank the positions, `[words]` or `[words, widths]`, by the number of epochs after
    which they were recorded; those of `epoch` decided. The lower a span's score, the more likely it is an unlabeled
    entity; the score of a run of tokens is their lowest.
    """
    document, start, end = character_positions(docs, weak.as_complete)
    first, last = find_marked(removed, weak.as_complete.targets.offsets)
    if removed.ndim > 1:
        lowest = ranking[epoch][removed]
    else:
        lowest = span_minimum(ranking[epoch], first, last)
        unlabeled = weak.unlabeled.numpy()
        columns = {
            "document": document[unlabeled],
            "start": start[unlabeled],
            "end": end[unlabeled],
            "removed": removed[unlabeled],
            "values": np.stack(list(ranking.values()))[:, unlabeled],
        }
        tensors = {name: torch.from_numpy(np.ascontiguousarray(column)) for name, column in columns.items()}
        tensors |= {"texts": text_hashes(docs), "epochs": torch.tensor(list(ranking))}
        with atomic_write(folder / VALUES) as stream:
            stream.write(save_tensors(tensors))
    spans = zip(document[first], start[first], end[last - 1], lowest, strict=True)
    issues = [Disagreement("removed", docs[d], Span(int(a), int(b), "", round(float(v), 6))) for d, a, b, v in spans]
    write_label_issues(sorted(issues, key=lambda issue: issue.span.score or 0.0), folder / REMOVED)


def text_hashes(docs: Iterable[Document]) -> torch.Tensor:
    """One 64-bit hash per document text, so that gold of other documents is noticed: `[documents]`."""
    digests = [hashlib.blake2b(doc.text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for doc in docs]
    return torch.tensor([int.from_bytes(digest, "big", signed=True) for digest in digests], dtype=torch.int64)
