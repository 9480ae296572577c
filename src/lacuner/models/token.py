"""Token softmax: a tag for each word by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from lacuner.models.angle import output_layer
from lacuner.models.dropout import check_rate, drop_features
from lacuner.models.schemes import Scheme, TagSet
from lacuner.models.targets import CorpusTargets, token_targets
from lacuner.types import Annotation, Found, Lost, TokenScores


class TokenHead(nn.Module):
    """Dropout, one linear (or angle-based) layer, softmax over the tags of a scheme."""

    def __init__(
        self, width: int, labels: Sequence[str], scheme: Scheme = "BIO", dropout: float = 0.3, angle: bool = False
    ) -> None:
        super().__init__()
        self.tags = TagSet(tuple(labels), scheme)
        self.dropout = check_rate(dropout)
        self.angle = angle
        self.output = output_layer(width, len(self.tags), angle)

    @property
    def labels(self) -> tuple[str, ...]:
        return self.tags.labels

    def forward(self, vectors: Tensor, mask: Tensor) -> TokenScores:
        return TokenScores(self.output(drop_features(vectors, self.dropout, self.training)), mask)

    def decode(self, scores: TokenScores) -> Found:
        return decode_tags(self.tags, scores.logits, scores.mask)

    def targets(self, annotations: Sequence[Annotation], lost: Lost) -> CorpusTargets:
        return token_targets(annotations, self.tags, lost)

    def config(self) -> dict[str, Any]:
        return {
            "kind": "token",
            "labels": list(self.labels),
            "scheme": self.tags.scheme,
            "dropout": self.dropout,
            "angle": self.angle,
        }


def decode_tags(tags: TagSet, logits: Tensor, mask: Tensor) -> Found:
    """The best tag of each word by itself, read as spans; a span is as probable as its least certain word."""
    best, chosen = logits.detach().float().softmax(dim=-1).max(dim=-1)
    chosen = chosen.masked_fill(~mask, 0)
    return tags.decode(chosen.cpu().numpy(), best.cpu().numpy())
