"""Token classifier: a softmax over tags for each word by itself, by a linear or an angle-based layer."""

from collections.abc import Sequence
from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn

from lacuner.data import Lost
from lacuner.errors import ConfigError
from lacuner.models.dropout import check_rate, drop_features
from lacuner.models.tag_sets import Scheme, TagSet
from lacuner.models.targets import CorpusTargets, token_targets
from lacuner.models.types import Annotation, DecodedSpans, TokenScores

MAX_CLASSES = 4096
"""The simplex has one number per pair of classes and is not stored, so no weight limits its size."""


class TokenHead(nn.Module):
    """Dropout, one linear (or angle-based) layer, softmax over the tags of a scheme.

    With `non_entity` there are tags for one more label, which training may assign to spans that are no entity. It is
    not among `labels`, and spans that are decoded to it are dropped.
    """

    def __init__(
        self,
        width: int,
        labels: Sequence[str],
        scheme: Scheme = "BIO",
        dropout: float = 0.3,
        angle: bool = False,
        non_entity: bool = False,
    ) -> None:
        super().__init__()
        self.labels: tuple[str, ...] = tuple(labels)
        self.tags = make_tags(labels, scheme, non_entity)
        self.dropout = check_rate(dropout)
        self.options = {"scheme": scheme, "dropout": dropout, "angle": angle, "non_entity": non_entity}
        self.output = output_layer(width, len(self.tags), angle)

    def forward(self, vectors: Tensor, mask: Tensor) -> TokenScores:
        return TokenScores(self.output(drop_features(vectors, self.dropout, self.training)), mask)

    def decode(self, scores: TokenScores) -> DecodedSpans:
        return drop_non_entities(decode_tags(self.tags, scores.logits, scores.mask), self.labels)

    def targets(self, annotations: Sequence[Annotation], lost: Lost) -> CorpusTargets:
        return token_targets(annotations, self.tags, lost)

    def config(self) -> dict[str, Any]:
        return {"kind": "token", "labels": list(self.labels), **self.options}


def make_tags(labels: Sequence[str], scheme: Scheme, non_entity: bool) -> TagSet:
    """Tags of the labels and, with `non_entity`, of one more label, which is empty because no real label may be."""
    return TagSet((*labels, "") if non_entity else tuple(labels), scheme)


def drop_non_entities(spans: DecodedSpans, labels: Sequence[str]) -> DecodedSpans:
    """Drop the spans whose label is not among these."""
    return DecodedSpans._make(column[spans.label < len(labels)] for column in spans)


def decode_tags(tags: TagSet, logits: Tensor, mask: Tensor) -> DecodedSpans:
    """Spans of the best tag of each word; a span's score is the probability of its least probable word."""
    best, chosen = logits.detach().float().softmax(dim=-1).max(dim=-1)
    chosen = chosen.masked_fill(~mask, 0)
    return tags.decode(chosen.cpu().numpy(), best.cpu().numpy())


def output_layer(width: int, classes: int, angle: bool) -> nn.Module:
    """The last layer of a head: linear, or angle-based."""
    return AngleOutput(width, classes) if angle else nn.Linear(width, classes)


class AngleOutput(nn.Module):
    """A linear layer to k - 1 numbers; each of the k logits is their product with one corner of a regular simplex.

    The logits sum to zero, so a single logit has a meaning of its own.
    Reference: Zhang and Liu (2014), "Multicategory angle-based large-margin classification", Biometrika 101.
    """

    corners: Tensor

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, classes - 1)
        # computed, not learned: not stored in model files
        self.register_buffer("corners", simplex(classes).to(torch.get_default_dtype()), persistent=False)

    def forward(self, vectors: Tensor) -> Tensor:
        logits: Tensor = self.linear(vectors) @ self.corners.T
        return logits


def simplex(corners: int) -> Tensor:
    """Corners `[k, k - 1]` of a regular simplex around the origin: length 1, equal angles, sum zero."""
    if not 2 <= corners <= MAX_CLASSES:
        raise ConfigError(f"an angle-based output needs from two to {MAX_CLASSES:,} classes, not {corners:,}")
    sides = corners - 1
    # on the CPU even when a model is built on the meta device, where arithmetic takes seconds to load
    real: dict[str, Any] = {"dtype": torch.float64, "device": "cpu"}
    points = torch.empty(corners, sides, **real)
    points[0] = 1 / sqrt(sides)
    points[1:] = -(1 + sqrt(corners)) / sides**1.5 + sqrt(corners / sides) * torch.eye(sides, **real)
    return points
