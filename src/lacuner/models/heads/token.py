"""Token softmax: a tag for each word by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from lacuner.data import Lost
from lacuner.models.dropout import check_rate, drop_features
from lacuner.models.heads.simplex import output_layer
from lacuner.models.tag_sets import Scheme, TagSet
from lacuner.models.targets import CorpusTargets, token_targets
from lacuner.models.types import Annotation, DecodedSpans, TokenScores


class TokenHead(nn.Module):
    """Dropout, one linear (or angle-based) layer, softmax over the tags of a scheme.

    With `non_entity` there are tags for one more label, which training may give to spans that are none; it is not among
    `labels`, and what is decoded to it is no entity.
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
        self.tags = add_non_entity_tags(labels, scheme) if non_entity else TagSet(tuple(labels), scheme)
        self.non_entity = non_entity
        self.dropout = check_rate(dropout)
        self.angle = angle
        self.output = output_layer(width, len(self.tags), angle)

    @property
    def labels(self) -> tuple[str, ...]:
        return self.tags.labels[:-1] if self.non_entity else self.tags.labels

    def forward(self, vectors: Tensor, mask: Tensor) -> TokenScores:
        return TokenScores(self.output(drop_features(vectors, self.dropout, self.training)), mask)

    def decode(self, scores: TokenScores) -> DecodedSpans:
        return drop_non_entities(decode_tags(self.tags, scores.logits, scores.mask), self.labels)

    def targets(self, annotations: Sequence[Annotation], lost: Lost) -> CorpusTargets:
        return token_targets(annotations, self.tags, lost)

    def config(self) -> dict[str, Any]:
        return {
            "kind": "token",
            "labels": list(self.labels),
            "scheme": self.tags.scheme,
            "dropout": self.dropout,
            "angle": self.angle,
            "non_entity": self.non_entity,
        }


def add_non_entity_tags(labels: Sequence[str], scheme: Scheme) -> TagSet:
    """Tags for the labels and, last, for spans that are no entity; its name is empty, as no label's may be."""
    return TagSet((*labels, ""), scheme)


def drop_non_entities(found: DecodedSpans, labels: Sequence[str]) -> DecodedSpans:
    """Without the spans of a label that is not among these."""
    return DecodedSpans._make(column[found.label < len(labels)] for column in found)


def decode_tags(tags: TagSet, logits: Tensor, mask: Tensor) -> DecodedSpans:
    """The best tag of each word by itself, read as spans; a span is as probable as its least certain word."""
    best, chosen = logits.detach().float().softmax(dim=-1).max(dim=-1)
    chosen = chosen.masked_fill(~mask, 0)
    return tags.decode(chosen.cpu().numpy(), best.cpu().numpy())
