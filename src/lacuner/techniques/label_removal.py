"""Label removal: which words were filtered out of training, written as spans for people to look at."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save as save_tensors
from torch import Tensor

from lacuner.atomic import atomic_write
from lacuner.data import Document, Span
from lacuner.models.heads.entity_type import split_entity_and_type
from lacuner.models.inference import score_corpus
from lacuner.models.model import Model
from lacuner.models.tag_sets import span_minimum
from lacuner.models.types import EntityTypeScores, SpanScores
from lacuner.techniques.label_issues import Disagreement, write_label_issues
from lacuner.training.dataset import TrainingSet, WeakTrainingSet, character_positions

VALUES = "o_values.safetensors"
REMOVED = "removed.jsonl"


def keep_labels(model: Model, weak: WeakTrainingSet, tau: float, guard: float) -> Tensor:
    """Which positions keep their label in the next epoch: a mask `[words]` or `[words, widths]`.

    A label is kept if its probability exceeds `tau`: for unlabeled positions the probability of O, for labeled ones
    that of the type (that a labeled position is an entity is not questioned). If more than `guard` of a type's labels
    (or of O) would be removed, none of them is.
    """
    joint = score_corpus(model, weak.as_complete.features, _entity_and_type_probabilities)
    labels = weak.as_complete.targets.labels.long()
    entity, types = joint[..., 0], joint[..., 1:]
    type_prob = types.gather(-1, (labels - 1).clamp(min=0).unsqueeze(-1)).squeeze(-1)
    kept = torch.where(labels > 0, type_prob, 1 - entity) > tau
    removable = weak.unlabeled | weak.labeled
    kept |= ~removable
    for label in range(types.shape[-1] + 1):
        positions = removable & (labels == label)
        if (~kept[positions]).sum() > guard * positions.sum():
            kept |= positions
    return kept


def _entity_and_type_probabilities(scores: EntityTypeScores | SpanScores) -> Tensor:
    joint = split_entity_and_type(scores)
    return torch.cat([joint.entity.sigmoid().unsqueeze(-1), joint.types.softmax(dim=-1)], dim=-1)


def write_removed(
    folder: Path,
    docs: Sequence[Document],
    weak: WeakTrainingSet,
    ranking: Mapping[int, np.ndarray],
    epoch: int,
    removed: np.ndarray,
) -> None:
    """Write what two-step learning removed as spans and, of tokens, the values that ranked all unlabeled ones.

    `ranking` has what ranks the positions, `[words]` or `[words, widths]`, by the number of epochs after which it was
    recorded; that of `epoch` decided. The lower a span's score, the more likely it is an unlabeled entity; the score of
    a run of tokens is their lowest.
    """
    document, start, end = character_positions(docs, weak.as_complete)
    if removed.ndim > 1:
        first, width = np.nonzero(removed)
        last, lowest = first + width + 1, ranking[epoch][removed]
    else:
        first, last = runs(removed, weak.as_complete.targets.offsets)
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


def write_removed_labels(
    folder: Path, docs: Sequence[Document], data: TrainingSet, removed_by_model: Sequence[Mapping[int, np.ndarray]]
) -> int:
    """Write the positions that RoSTER's models removed as spans, with the epochs in which each model removed them.

    `missing` ones were unlabeled and look like part of an entity, `doubtful` ones have a label that looks wrong.
    Returns the number of spans.
    """
    epochs_of: dict[tuple[int, int, int, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    positions = character_positions(docs, data)
    for number, removed_by_epoch in enumerate(removed_by_model, 1):
        for epoch, removed in removed_by_epoch.items():
            for key in _removed_spans(data, positions, removed):
                epochs_of[key][str(number)].append(epoch + 1)

    def row(key: tuple[int, int, int, str]) -> dict[str, Any]:
        document, start, end, label = key
        issue = Disagreement("doubtful" if label else "missing", docs[document], Span(start, end, label)).as_json()
        del issue["score"]
        return {**issue, "models": epochs_of[key]}

    order = sorted(epochs_of, key=lambda key: (-sum(map(len, epochs_of[key].values())), key))
    with atomic_write(folder / REMOVED) as stream:
        stream.writelines((json.dumps(row(key), ensure_ascii=False) + "\n").encode() for key in order)
    return len(order)


def _removed_spans(
    data: TrainingSet, positions: tuple[np.ndarray, np.ndarray, np.ndarray], removed: np.ndarray
) -> Iterator[tuple[int, int, int, str]]:
    """Document, start, end and weak label (empty if unlabeled) of each removed span or run of tokens."""
    document, start, end = positions
    labels = data.targets.labels.numpy()
    names = ("", *data.model.head.labels)
    for label in np.unique(labels[removed]):
        mask = removed & (labels == label)
        if mask.ndim > 1:
            first, width = np.nonzero(mask)
            last = first + width + 1
        else:
            first, last = runs(mask, data.targets.offsets)
        for a, b in zip(first, last, strict=True):
            yield int(document[a]), int(start[a]), int(end[b - 1]), names[label]


def runs(mask: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends of the runs of True in a row of words; a run ends with its sentence.

    >>> starts, ends = runs(np.array([True, True, False, True, True]), np.array([0, 4, 5]))
    >>> starts.tolist(), ends.tolist()
    ([0, 3, 4], [2, 4, 5])
    """
    before = np.concatenate([[False], mask[:-1]]) if len(mask) else mask
    first = np.zeros(len(mask), dtype=bool)
    first[offsets[:-1][offsets[:-1] < len(mask)]] = True
    start = np.flatnonzero(mask & (first | ~before))
    stops = np.union1d(np.flatnonzero(~mask), offsets[1:])
    return start, stops[np.searchsorted(stops, start, side="right")] if len(start) else start


def text_hashes(docs: Iterable[Document]) -> torch.Tensor:
    """One 64-bit hash per document text, so that gold of other documents is noticed: `[documents]`."""
    digests = [hashlib.blake2b(doc.text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for doc in docs]
    return torch.tensor([int.from_bytes(digest, "big", signed=True) for digest in digests], dtype=torch.int64)
