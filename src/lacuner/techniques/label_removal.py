"""Label removal: which words were filtered out of training, written as spans for people to look at."""

import hashlib
import heapq
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors.torch import save as save_tensors
from torch import Tensor

from lacuner.atomic import atomic_write
from lacuner.data import Document, Span
from lacuner.errors import TrainingError
from lacuner.models.heads.entity_type import split_entity_and_type
from lacuner.models.inference import score_parts
from lacuner.models.model import Model
from lacuner.models.tag_sets import span_minimum
from lacuner.models.types import EntityTypeScores, SpanScores
from lacuner.techniques.label_issues import MOST_ISSUES, Disagreement, write_label_issues
from lacuner.training.dataset import PART, TrainingSet, WeakTrainingSet, character_positions, cut_range, derive_tensor

VALUES = "o_values.safetensors"
REMOVED = "removed.jsonl"


def keep_labels(model: Model, weak: WeakTrainingSet, tau: float, guard: float) -> Iterator[dict[str, np.ndarray]]:
    """Which positions keep their label in the next epoch: a mask `kept` `[words]` or `[words, widths]`, in parts.

    A label is kept if its probability exceeds `tau`: for unlabeled positions the probability of O, for labeled ones
    that of the type (that a labeled position is an entity is not questioned). If more than `guard` of a type's labels
    (or of O) would be removed, none of them is.
    """
    data, classes = weak.as_complete.targets, 1 + len(model.head.labels)
    counts, removed = torch.zeros(classes, dtype=torch.int64), torch.zeros(classes, dtype=torch.int64)
    parts: list[tuple[slice, np.ndarray]] = []  # as bits: they are all in memory
    for words, joint in score_parts(model, weak.as_complete.features, _entity_and_type_probabilities):
        labels, removable = data.labels[words].long(), _removable(weak, words)
        entity, types = joint[..., 0], joint[..., 1:]
        type_prob = types.gather(-1, (labels - 1).clamp(min=0).unsqueeze(-1)).squeeze(-1)
        kept = torch.where(labels > 0, type_prob, 1 - entity) > tau
        counts += labels[removable].bincount(minlength=classes)
        removed += labels[removable & ~kept].bincount(minlength=classes)
        parts.append((words, np.packbits(kept.numpy())))
    guarded = removed > guard * counts
    for words, bits in parts:
        labels, removable = data.labels[words].long(), _removable(weak, words)
        kept = torch.from_numpy(np.unpackbits(bits, count=labels.numel()).astype(bool)).view(labels.shape)
        yield {"kept": (kept | ~removable | guarded[labels]).numpy()}


def _removable(weak: WeakTrainingSet, words: slice) -> Tensor:
    """The positions of some words that are unlabeled or labeled: a mask."""
    data = weak.as_complete.targets
    return weak.unlabeled[words] | (data.known[words] & (data.labels[words] > 0))


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


Mask = Callable[[slice], Tensor]
"""A mask of positions, asked for by ranges of words."""


def leave_out(weak: WeakTrainingSet, share: float, seed: int) -> Tensor:
    """The known positions without a random share of the unlabeled ones: a mask."""
    known, generator = weak.as_complete.targets.known, torch.Generator().manual_seed(seed)

    def rest(words: slice) -> Tensor:
        unlabeled = weak.unlabeled[words]
        return known[words] & ~(unlabeled & (torch.rand(unlabeled.shape, generator=generator) < share))

    return derive_tensor(weak.as_complete, ["left out", share, seed], rest) if share else known


def removed_positions(known: Tensor, kept: Tensor, words: slice) -> Tensor:
    """The positions of some words that a model knew and that were removed: a `Mask`, given `known` and `kept`."""
    return known[words] & ~kept[words]


def no_masks() -> Iterator[dict[str, np.ndarray]]:
    """What is computed if a finished model has no masks: those of a streamed run are in the folder of `--cache`."""
    raise TrainingError("the prepared data of this run was deleted: train again, into another --out")
    yield {}


def write_removed_labels(
    folder: Path, docs: Sequence[Document], data: TrainingSet, removed_by_model: Sequence[Mapping[int, Mask]]
) -> int:
    """Write the positions that RoSTER's models removed as spans, with the epochs in which each model removed them.

    `missing` ones were unlabeled and look like part of an entity, `doubtful` ones have a label that looks wrong.
    Returns the number of spans; the `MOST_ISSUES` that were removed in most epochs are written.
    """
    removed: list[_Removed] = []
    count = 0
    for part in cut_range(len(docs), PART):
        spans = _removed_spans(docs, part, data, removed_by_model)
        count += len(spans)
        removed = heapq.nsmallest(MOST_ISSUES, [*removed, *spans])
    with atomic_write(folder / REMOVED) as stream:
        stream.writelines(row.line.encode() for row in removed)
    return count


class _Removed(NamedTuple):
    """A span that was removed, in the order in which they are written."""

    epochs: int
    """Number of epochs and models, negative."""
    place: tuple[int, int, int, str]
    """Document, start, end, and weak label; empty if unlabeled."""
    line: str


def _removed_spans(
    docs: Sequence[Document], part: slice, data: TrainingSet, removed_by_model: Sequence[Mapping[int, Mask]]
) -> list[_Removed]:
    """The removed spans or runs of tokens of some documents."""
    own, document = docs[part], data.sentences.document
    sentences = slice(*np.searchsorted(document, [part.start, part.stop]).tolist())
    offsets = data.targets.offsets[sentences.start : sentences.stop + 1]
    words = slice(int(offsets[0]), int(offsets[-1]))
    labels, (at, start, end) = data.targets.labels[words].numpy(), character_positions(own, data, part.start, sentences)
    names = ("", *data.model.head.labels)
    epochs_of: dict[tuple[int, int, int, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, removed_by_epoch in enumerate(removed_by_model, 1):
        for epoch, mask_of in removed_by_epoch.items():
            removed = mask_of(words).numpy()
            for label in np.unique(labels[removed]):
                mask = removed & (labels == label)
                if mask.ndim > 1:
                    first, width = np.nonzero(mask)
                    last = first + width + 1
                else:
                    first, last = runs(mask, offsets - offsets[0])
                for a, b in zip(first, last, strict=True):
                    place = (int(at[a]), int(start[a]), int(end[b - 1]), names[label])
                    epochs_of[place][str(number)].append(epoch + 1)

    def as_line(place: tuple[int, int, int, str]) -> str:
        number, first, last, label = place
        issue = Disagreement("doubtful" if label else "missing", own[number], Span(first, last, label)).as_json()
        del issue["score"]
        return json.dumps({**issue, "models": epochs_of[place]}, ensure_ascii=False) + "\n"

    return [
        _Removed(-sum(map(len, epochs.values())), (place[0] + part.start, *place[1:]), as_line(place))
        for place, epochs in epochs_of.items()
    ]


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
