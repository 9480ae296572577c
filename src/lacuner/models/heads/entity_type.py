"""Entity and type as two classifiers per word: is it part of an entity, and of which type.

What it does: a sigmoid `s` says how probable it is that a word is part of an entity, a softmax `t` over the types says
    of which; `P(O) = 1 - s`, `P(type) = s * t`. The tag scheme is IO: adjacent words of one type are one span.
Assumes: weak labels are better at the type of an entity than at its boundaries.
Departs from the authors: nothing that this module decides.
Reference: Meng et al. (2021), "Distantly-supervised named entity recognition with noise-robust learning and language
    model augmented self-training" (RoSTER).
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from lacuner.data import Lost
from lacuner.models.dropout import check_rate, drop_features
from lacuner.models.heads.token import decode_tags, output_layer
from lacuner.models.tag_sets import TagSet
from lacuner.models.targets import CorpusTargets, token_targets
from lacuner.models.types import Annotation, DecodedSpans, EntityTypeScores, SpanScores


class EntityTypeHead(nn.Module):
    """Two linear layers. Class 0 of the joint scores is O, class `1 + t` is type `t`."""

    def __init__(self, width: int, labels: Sequence[str], dropout: float = 0.3, angle: bool = False) -> None:
        super().__init__()
        self.labels: tuple[str, ...] = tuple(labels)
        self.tags = TagSet(self.labels, "IO")
        self.dropout = check_rate(dropout)
        self.angle = angle
        self.entity = nn.Linear(width, 1)
        self.types = output_layer(width, len(labels), angle and len(labels) > 1)  # a simplex needs two types

    def forward(self, vectors: Tensor, mask: Tensor) -> EntityTypeScores:
        vectors = drop_features(vectors, self.dropout, self.training)
        entity, types = self.entity(vectors).squeeze(-1), self.types(vectors)
        return EntityTypeScores(entity, types, joint_log_probs(entity, types), mask)

    def decode(self, scores: EntityTypeScores) -> DecodedSpans:
        return decode_tags(self.tags, scores.logits, scores.mask)

    def targets(self, annotations: Sequence[Annotation], lost: Lost) -> CorpusTargets:
        return token_targets(annotations, self.tags, lost)

    def config(self) -> dict[str, Any]:
        return {"kind": "entity_type", "labels": list(self.labels), "dropout": self.dropout, "angle": self.angle}


def joint_log_probs(entity: Tensor, types: Tensor) -> Tensor:
    """Log probabilities of O and of each type, `[..., 1 + types]`, from the logits of both classifiers."""
    inside = functional.logsigmoid(entity).unsqueeze(-1) + types.log_softmax(dim=-1)
    return torch.cat([functional.logsigmoid(-entity).unsqueeze(-1), inside], dim=-1)


def split_entity_and_type(scores: EntityTypeScores | SpanScores) -> EntityTypeScores:
    """The scores as entity and type logits, also those of a span classifier."""
    if isinstance(scores, EntityTypeScores):
        return scores
    none, types = scores.logits[..., 0], scores.logits[..., 1:]
    return EntityTypeScores(types.logsumexp(dim=-1) - none, types, scores.logits.log_softmax(dim=-1), scores.mask)
