"""Token classifier: a softmax over tags for each word by itself."""

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
