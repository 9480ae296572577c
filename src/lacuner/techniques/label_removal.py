"""Label removal: which positions lose their label in training, and the removed ones as spans to review.

A position is a word or, with a span head, a span. This is RoSTER's form, which decides again after each epoch; two-step
learning removes tokens once (`techniques/filtered_tokens.py`).
"""

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lacuner.atomic import write_json_lines
from lacuner.data import Document, Span
from lacuner.errors import TrainingError
from lacuner.models.heads.entity_type import split_entity_and_type
from lacuner.models.inference import score_parts
from lacuner.models.model import Model
from lacuner.models.ragged import find_marked
from lacuner.models.types import EntityTypeScores, SpanScores
from lacuner.techniques.label_issues import MOST_ISSUES, REMOVED, Disagreement
from lacuner.training.dataset import PART, TrainingSet, WeakTrainingSet, character_positions, cut_range, derive_tensor


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
    """Mask of the positions of some words whose label can be removed: labeled and unlabeled ones, not unsure ones."""
    data = weak.as_complete.targets
    return weak.unlabeled[words] | (data.known[words] & (data.labels[words] > 0))


def _entity_and_type_probabilities(scores: EntityTypeScores | SpanScores) -> Tensor:
    joint = split_entity_and_type(scores)
    return torch.cat([joint.entity.sigmoid().unsqueeze(-1), joint.types.softmax(dim=-1)], dim=-1)


Mask = Callable[[slice], Tensor]
"""Returns the mask of the positions of a range of words, so that no mask of a whole corpus is in memory."""


def leave_out(weak: WeakTrainingSet, share: float, seed: int) -> Tensor:
    """Mask of the known positions, without a random share of the unlabeled ones."""
    known, generator = weak.as_complete.targets.known, torch.Generator().manual_seed(seed)

    def rest(words: slice) -> Tensor:
        unlabeled = weak.unlabeled[words]
        return known[words] & ~(unlabeled & (torch.rand(unlabeled.shape, generator=generator) < share))

    return derive_tensor(weak.as_complete, ["left out", share, seed], rest) if share else known


def removed_positions(known: Tensor, kept: Tensor, words: slice) -> Tensor:
    """Mask of the positions of some words that a model was trained on (`known`) and that were not `kept`."""
    return known[words] & ~kept[words]


def no_masks() -> Iterator[dict[str, np.ndarray]]:
    """Raise an error: the masks of a finished model are missing. Those of a streamed run are in `--cache`."""
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
    write_json_lines(folder / REMOVED, (span.row for span in removed))
    return count


class _Removed(NamedTuple):
    """A span that was removed, in the order in which they are written."""

    epochs: int
    """Number of epochs and models, negative."""
    place: tuple[int, int, int, str]
    """Document, start, end, and weak label; empty if unlabeled."""
    row: dict[str, Any]


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
                for a, b in zip(*find_marked(mask, offsets - offsets[0]), strict=True):
                    place = (int(at[a]), int(start[a]), int(end[b - 1]), names[label])
                    epochs_of[place][str(number)].append(epoch + 1)

    def as_row(place: tuple[int, int, int, str]) -> dict[str, Any]:
        number, first, last, label = place
        issue = Disagreement("doubtful" if label else "missing", own[number], Span(first, last, label)).as_json()
        del issue["score"]
        return {**issue, "models": epochs_of[place]}

    return [
        _Removed(-sum(map(len, epochs.values())), (place[0] + part.start, *place[1:]), as_row(place))
        for place, epochs in epochs_of.items()
    ]
