"""Prototypes: a word has the class of the most similar prototypes, of which each class, O included, has a few.

What it does: one linear layer; the similarity of a word and a prototype is their cosine. The logit of a class is the
    log of the summed exponentials of its prototypes' similarities, times `scale`. The tag scheme is IO: adjacent words
    of one type are one span.
Assumes: a class has a few kinds of members, such as names of people and names of teams.
Departs from the authors: they compare the encoder's vectors themselves; ours has a linear layer in between, because
    small encoders are trained for other tasks. Their similarities are not scaled.
Reference: Wu et al. (2023), "MProto: multi-prototype network with denoised optimal transport for distantly supervised
    named entity recognition".
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from lacuner.data import Lost
from lacuner.errors import ConfigError
from lacuner.models.dropout import check_rate, drop_features
from lacuner.models.heads.token import decode_tags
from lacuner.models.tag_sets import TagSet
from lacuner.models.targets import CorpusTargets, token_targets
from lacuner.models.types import Annotation, DecodedSpans, PrototypeScores

MAX_PROTOTYPES = 1024
"""Most prototypes of a class."""


class PrototypeHead(nn.Module):
    """A linear layer and the prototypes `[classes * prototypes, width]`, class by class, O first."""

    def __init__(
        self, width: int, labels: Sequence[str], prototypes: int = 3, scale: float = 10.0, dropout: float = 0.3
    ) -> None:
        super().__init__()
        if type(prototypes) is not int or not 1 <= prototypes <= MAX_PROTOTYPES or not scale > 0:
            raise ConfigError(f"a class has 1 to {MAX_PROTOTYPES:,} prototypes, and their scale is above 0")
        self.labels: tuple[str, ...] = tuple(labels)
        self.tags = TagSet(self.labels, "IO")
        self.count, self.scale, self.dropout = prototypes, float(scale), check_rate(dropout)
        self.projection = nn.Linear(width, width)
        self.prototypes = nn.Parameter(functional.normalize(torch.randn(len(self.tags) * prototypes, width), dim=-1))

    def forward(self, vectors: Tensor, mask: Tensor) -> PrototypeScores:
        projected = self.projection(drop_features(vectors, self.dropout, self.training))
        directions = functional.normalize(projected, dim=-1)
        similarities = directions @ functional.normalize(self.prototypes, dim=-1).T
        by_class = (self.scale * similarities).view(*mask.shape, len(self.tags), self.count)
        return PrototypeScores(similarities, directions, by_class.logsumexp(dim=-1), mask)

    def decode(self, scores: PrototypeScores) -> DecodedSpans:
        return decode_tags(self.tags, scores.logits, scores.mask)

    def targets(self, annotations: Sequence[Annotation], lost: Lost) -> CorpusTargets:
        return token_targets(annotations, self.tags, lost)

    def config(self) -> dict[str, Any]:
        settings = {"prototypes": self.count, "scale": self.scale, "dropout": self.dropout}
        return {"kind": "prototype", "labels": list(self.labels), **settings}

    @torch.no_grad()
    def move_prototypes(self, directions: Tensor, prototype: Tensor, momentum: float) -> None:
        """Move prototypes towards the mean of the words assigned to them: an exponential moving average.

        `directions` `[words, width]` are unit vectors, `prototype` `[words]` the number of each word's prototype.
        """
        member = functional.one_hot(prototype, len(self.prototypes)).to(directions.dtype)
        counts = member.sum(dim=0).unsqueeze(1)
        means = functional.normalize(member.T @ directions, dim=-1)
        moved = functional.normalize(momentum * self.prototypes + (1 - momentum) * means, dim=-1)
        self.prototypes.copy_(torch.where(counts > 0, moved, self.prototypes))
