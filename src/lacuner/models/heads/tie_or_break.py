"""Tie or break: do two neighbouring words belong to one entity, and of which type is the chunk between two breaks?

What it does: a binary classifier per gap decides whether the words on both sides are in one entity (tie) or not
    (break). The words between two breaks are a chunk. A softmax over the types and "no entity" classifies a chunk by
    the vectors of its first and its last word.
Assumes: the boundaries of entities can be learned without their types, so a phrase of unknown type may be left out.
Departs from the authors: all gaps that touch an unsure word are left out, for theirs are phrases of unknown type; a
    chunk has one label, where they allow a set; the vectors are those of the encoder, without their language model.
Reference: Shang et al. (2018), "Learning named entity tagger using domain-specific dictionary" (AutoNER).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from lacuner.data import Lost
from lacuner.models.dropout import check_rate, drop_features
from lacuner.models.tag_sets import TagSet, check_labels
from lacuner.models.targets import CorpusTargets, token_targets
from lacuner.models.types import Annotation, DecodedSpans, TieOrBreakScores


class TieOrBreakHead(nn.Module):
    """One linear layer for gaps and one for chunks. Class 0 of a chunk is "no entity", class `1 + l` is label `l`."""

    def __init__(self, width: int, labels: Sequence[str], dropout: float = 0.3) -> None:
        super().__init__()
        check_labels(labels)
        self.labels: tuple[str, ...] = tuple(labels)
        self.dropout = check_rate(dropout)
        self.before = nn.Linear(width, 1, bias=False)
        self.words = nn.Linear(width, 1 + 2 * (1 + len(self.labels)))

    def forward(self, vectors: Tensor, mask: Tensor) -> TieOrBreakScores:
        vectors = drop_features(vectors, self.dropout, self.training)
        words = self.words(vectors)
        before = functional.pad(self.before(vectors), (0, 0, 1, 0))[:, :-1]  # what the word before adds to a gap
        logits = torch.cat([words[..., :1] + before, words[..., 1:]], dim=-1)
        return TieOrBreakScores(logits, mask.unsqueeze(-1).expand(-1, -1, 2))

    def decode(self, scores: TieOrBreakScores) -> DecodedSpans:
        return decode_chunks(scores)

    def targets(self, annotations: Sequence[Annotation], lost: Lost) -> CorpusTargets:
        """Targets `[words, 2]`: whether a word is tied to the one before it, and the class of the chunk it begins."""
        tags = token_targets(annotations, TagSet(self.labels, "BIO"), lost)
        known, numbers = tags.known.numpy(), tags.labels.numpy()
        inside = (numbers > 0) & (numbers % 2 == 0)  # the tags are O, B, I, B, I, ...
        first = np.zeros(len(known), dtype=bool)
        first[tags.offsets[:-1][np.diff(tags.offsets) > 0]] = True
        labels = np.stack([inside, np.where(inside, 0, (numbers + 1) // 2)], axis=1).astype(np.int16)
        both = np.stack([known & np.roll(known, 1) & ~first, known & ~inside], axis=1)
        return CorpusTargets(torch.from_numpy(labels), torch.from_numpy(both), tags.offsets)

    def config(self) -> dict[str, Any]:
        return {"kind": "tie_or_break", "labels": list(self.labels), "dropout": self.dropout}


def decode_chunks(scores: TieOrBreakScores) -> DecodedSpans:
    """The chunks between breaks that have a type; the score is the lowest probability of all these decisions.

    >>> logits = torch.tensor([[[0.0, 0, 4, 0, 0], [3.0, 0, 0, 0, 4], [-3.0, 4, 0, 4, 0]]])  # a tie, then a break
    >>> spans = decode_chunks(TieOrBreakScores(logits, torch.ones(1, 3, 2, dtype=torch.bool)))
    >>> [column.tolist() for column in spans[:4]]
    [[0], [0], [2], [0]]
    """
    tie, first, last = (part.detach().float() for part in scores.split())
    mask = scores.mask[..., 0].cpu().numpy()
    sentence, word = np.nonzero(mask)
    tied = (tie.sigmoid().cpu().numpy()[mask] > 0.5) & (word > 0)
    # probability of what was decided at the gap before each word; before the first word there is nothing to decide
    sure = np.where(word > 0, tie.abs().sigmoid().cpu().numpy()[mask], 1.0)
    start = np.flatnonzero(~tied)
    end = np.append(start[1:], len(word))
    if not len(start):
        none = np.zeros(0, dtype=np.int64)
        return DecodedSpans(none, none, none, none, np.zeros(0, dtype=np.float32))
    row = torch.from_numpy(sentence[start]).to(first.device)
    ends = torch.from_numpy(word[start]), torch.from_numpy(word[end - 1])
    probs = (first[row, ends[0].to(row.device)] + last[row, ends[1].to(row.device)]).softmax(dim=-1)
    best, chosen = (column.cpu().numpy() for column in probs.max(dim=-1))
    score = np.minimum(best, np.minimum.reduceat(sure, start))
    score[:-1] = np.minimum(score[:-1], sure[start[1:]])  # 1 at the first word of the next sentence
    kept = chosen > 0
    columns = sentence[start], word[start], word[end - 1] + 1, chosen - 1, score.astype(np.float32)
    return DecodedSpans._make(column[kept] for column in columns)
