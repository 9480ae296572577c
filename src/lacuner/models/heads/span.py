"""Span classifier: every span of words up to a width gets a label or O.

What it does: the first layer of a feed-forward network over `[start; end; ...]` is a sum of one part per start word,
    one per end word and one per width. The parts are computed once per word, so a span costs one addition. `width` is
    the scorer of NRCES: start, end, width embedding. `product` is that of negative sampling: start, end, their
    difference (already contained in the parts of start and end) and their product, with tanh. `biaffine` is that of
    Yu et al.: `[s; 1]' U_c [e; 1]` for each class, with one hidden layer for start words and one for end words.
Assumes: entities are not wider than the limit; `targets` counts those that are.
Departs from the authors: dropout acts on word vectors, not on a copy per span (else spans could share nothing);
    `width` has one hidden layer with ReLU, where NRCES does not say; `biaffine` has 96 hidden units (theirs is
    `head.hidden=150`) and no LSTM between a transformer and the classifier.
Reference: Li et al. (2022), "Rethinking negative sampling for handling missing entity annotations";
    Kang et al. (2022), "A noise-robust loss for unlabeled entity problem in named entity recognition" (NRCES); Yu et
    al. (2020), "Named entity recognition as dependency parsing" (biaffine).
"""

from collections.abc import Sequence
from math import log
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from lacuner.data import Lost
from lacuner.errors import ConfigError
from lacuner.models.dropout import check_rate, drop_features
from lacuner.models.tag_sets import check_labels, keep_disjoint
from lacuner.models.targets import CorpusTargets, span_targets
from lacuner.models.types import Annotation, DecodedSpans, SpanScores

Variant = Literal["width", "product", "biaffine"]
MAX_HIDDEN_VALUES = 2**24
"""Values of the hidden layer that are computed at once (64 MB); above that, widths are computed in groups."""
CACHED_VALUES = 2**18
"""The same without gradients: small enough (1 MB) to stay in the cache of a core."""


class SpanHead(nn.Module):
    """Scores `[batch, words, widths, classes]`; class 0 is O, class `1 + l` is label `l`."""

    def __init__(
        self,
        width: int,
        labels: Sequence[str],
        widths: int = 10,
        variant: Variant = "width",
        hidden: int = 96,
        dropout: float = 0.3,
        threshold: float | None = None,
    ) -> None:
        super().__init__()
        check_labels(labels)
        if threshold is not None and not 0 < threshold < 1:
            raise ConfigError(f"a threshold must be between 0 and 1, not {threshold}")
        if variant not in get_args(Variant):
            raise ConfigError(f"unknown span scorer {variant!r}; choose width, product or biaffine")
        if widths < 1 or hidden < 1:
            raise ConfigError(f"a span classifier needs a width and hidden units, not {widths} and {hidden}")
        self.labels: tuple[str, ...] = tuple(labels)
        self.widths, self.variant, self.hidden, self.dropout = widths, variant, hidden, check_rate(dropout)
        self.threshold = threshold
        """Minimum label probability of a predicted span; None: the label must beat O."""
        self.start = nn.Linear(width, hidden)
        self.end = nn.Linear(width, hidden, bias=variant == "biaffine")
        if variant == "width":
            self.by_width = nn.Parameter(torch.zeros(widths, hidden))
        elif variant == "product":
            self.product = nn.Linear(width, hidden, bias=False)
        classes = 1 + len(self.labels)
        self.output = nn.Linear(hidden, classes * (hidden + 1) if variant == "biaffine" else classes)

    def forward(self, vectors: Tensor, mask: Tensor) -> SpanScores:
        vectors = drop_features(vectors, self.dropout, self.training)
        batch, words, width = vectors.shape
        start, end = self.word_parts(vectors)
        numbers = batch * words * (self.hidden + width if self.variant == "product" else end.shape[-1])
        limit = MAX_HIDDEN_VALUES if torch.is_grad_enabled() else CACHED_VALUES
        at_once = max(1, min(self.widths, limit // max(1, numbers)))
        groups = [(first, min(first + at_once, self.widths)) for first in range(0, self.widths, at_once)]
        if len(groups) > 1 and torch.is_grad_enabled():
            # groups alone would save nothing: autograd keeps what each of them computed
            parts = [checkpoint(self.score_group, vectors, start, end, group, use_reentrant=False) for group in groups]
        else:
            parts = [self.score_group(vectors, start, end, group) for group in groups]
        steps = torch.arange(words, device=mask.device)[:, None] + torch.arange(self.widths, device=mask.device)
        fits = steps < mask.sum(dim=1)[:, None, None]
        return SpanScores(parts[0] if len(parts) == 1 else torch.cat(parts, dim=2), fits)

    def word_parts(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """What each word contributes as the first word of spans, and as the last; the latter padded to the widest."""
        start, end = self.start(vectors), self.end(vectors)
        if self.variant == "biaffine":
            start, end = self.output(start.relu()), functional.pad(end.relu(), (0, 1), value=1.0)
        return start, functional.pad(end, (0, 0, 0, self.widths - 1))

    def score_group(self, vectors: Tensor, start: Tensor, end: Tensor, group: tuple[int, int]) -> Tensor:
        """Logits of the spans whose width is in this group."""
        words = vectors.shape[1]
        first, last = group
        logits: Tensor
        if self.variant == "biaffine":
            ends = torch.stack([end[:, w : w + words] for w in range(first, last)], dim=2)
            logits = ends @ start.reshape(*start.shape[:2], self.hidden + 1, 1 + len(self.labels))
            return logits
        if last - first == 1:
            hidden = (end[:, first : first + words] + start).unsqueeze(2)
        else:
            hidden = torch.stack([end[:, w : w + words] for w in range(first, last)], dim=2)
            hidden = hidden.add_(start.unsqueeze(2))  # in place: nothing else has seen the stack
        if self.variant == "width":
            hidden = functional.relu_(hidden.add_(self.by_width[first:last]))
        else:
            ends = functional.pad(vectors, (0, 0, 0, last - 1))
            both = torch.stack([ends[:, w : w + words] for w in range(first, last)], dim=2).mul(vectors.unsqueeze(2))
            hidden = torch.tanh(hidden + self.product(both))
        logits = self.output(hidden)
        return logits

    def decode(self, scores: SpanScores) -> DecodedSpans:
        return decode_greedily(scores, self.threshold)

    def targets(self, annotations: Sequence[Annotation], lost: Lost) -> CorpusTargets:
        return span_targets(annotations, self.labels, self.widths, lost)

    def config(self) -> dict[str, Any]:
        names = ("widths", "variant", "hidden", "dropout", "threshold")
        return {"kind": "span", "labels": list(self.labels), **{name: getattr(self, name) for name in names}}


def decode_greedily(scores: SpanScores, threshold: float | None = None) -> DecodedSpans:
    """Non-overlapping spans with a probable label, most probable first; ties go to the wider, then the leftmost span.

    >>> logits = torch.tensor([[[0.0, 2.0], [0.0, 1.0]], [[0.0, -1.0], [0.0, -1.0]]])  # two words, two widths
    >>> spans = decode_greedily(SpanScores(logits[None], torch.tensor([[[True, True], [True, False]]])))
    >>> [column.tolist() for column in spans[:3]]  # "word 0" beats "words 0 and 1"
    [[0], [0], [1]]
    """
    batch, words, _, _ = scores.logits.shape
    logits = scores.logits.detach().float()
    # softmax over all spans would take longer than the rest: first drop those whose odds against O are too low by far
    odds = 0.0 if threshold is None else min(log(threshold / (1 - threshold)), 5.0)
    at = ((logits[..., 1:].amax(dim=-1) >= logits[..., 0] + (odds - 0.01)) & scores.mask).nonzero(as_tuple=True)
    probs = logits[at].softmax(dim=-1)
    best, chosen = probs[:, 1:].max(dim=-1)
    enough = best > probs[:, 0] if threshold is None else best >= threshold
    sentence, first, width = (index[enough].cpu().numpy() for index in at)
    score, label = best[enough].cpu().numpy(), chosen[enough].cpu().numpy()
    start = sentence * words + first
    end = start + width + 1
    kept = keep_disjoint(start, end, (-start, width, score), batch * words)
    sentence, first, width = sentence[kept], first[kept], width[kept]
    return DecodedSpans(sentence, first, first + width + 1, label[kept], score[kept])
