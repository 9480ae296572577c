"""CRF head: a linear chain over the tags of a scheme, for complete and for partial annotation.

What it does: scores tag sequences; transitions that the scheme forbids are impossible. The likelihood of a sentence is
    the probability of all tag sequences that agree with its known words. With every word known that is the ordinary
    CRF, with none it is 1.
Assumes: known labels are right. Trained on entities alone it predicts too many: it needs some words known to be O.
Departs from the authors: `drop` and `observed` are two readings of a damaged formula in the two-step paper. In both the
    emission of an unknown word and the transition into it count zero in numerator and denominator. With `drop` the
    numerator sums over all tags of the unknown word; with `observed` it has the tag O that the word was given, so the
    transition from O to the next tag counts.
Reference: Tsuboi et al. (2008), "Training conditional random fields using incomplete annotations"; Greenberg et al.
    (2018), "Marginal likelihood training of BiLSTM-CRF for biomedical named entity recognition".
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from lacuner.data import Lost
from lacuner.models.dropout import check_rate, drop_features
from lacuner.models.heads.token import drop_non_entities, make_tags, output_layer
from lacuner.models.tag_sets import Scheme, TagSet
from lacuner.models.targets import CorpusTargets, token_targets
from lacuner.models.types import Annotation, CRFScores, DecodedSpans, Targets

IMPOSSIBLE = -1e30
"""Lower than any sum of scores, but finite, so that no gradient is NaN."""

Unknown = Literal["marginal", "drop", "observed"]


class CRFHead(nn.Module):
    """Dropout, a linear (or angle-based) layer for the emissions, and learned transitions.

    `non_entity` as in `TokenHead`.
    """

    allowed: Tensor
    allowed_start: Tensor
    allowed_end: Tensor

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
        count = len(self.tags)
        self.output = output_layer(width, count, angle)
        self.transitions = nn.Parameter(torch.zeros(count, count))
        self.start = nn.Parameter(torch.zeros(count))
        self.end = nn.Parameter(torch.zeros(count))
        for name, array in zip(("allowed", "allowed_start", "allowed_end"), self.tags.allowed(), strict=True):
            self.register_buffer(name, torch.from_numpy(array), persistent=False)

    def forward(self, vectors: Tensor, mask: Tensor) -> CRFScores:
        emissions = self.output(drop_features(vectors, self.dropout, self.training)).float()
        return CRFScores(
            emissions,
            self.transitions.masked_fill(~self.allowed, IMPOSSIBLE),
            self.start.masked_fill(~self.allowed_start, IMPOSSIBLE),
            self.end.masked_fill(~self.allowed_end, IMPOSSIBLE),
            mask,
        )

    def decode(self, scores: CRFScores) -> DecodedSpans:
        with torch.no_grad():
            path = viterbi(scores)
            spans = self.tags.decode(path.cpu().numpy(), np.ones(tuple(path.shape)))
            spans = spans._replace(score=_span_probability(scores, path, spans, self.tags))
            return drop_non_entities(spans, self.labels)

    def targets(self, annotations: Sequence[Annotation], lost: Lost) -> CorpusTargets:
        return token_targets(annotations, self.tags, lost)

    def config(self) -> dict[str, Any]:
        return {"kind": "crf", "labels": list(self.labels), **self.options}


def log_likelihood(scores: CRFScores, targets: Targets, unknown: Unknown = "marginal") -> Tensor:
    """Log probability of the known words, one number per sentence; exactly 0 where no word is known.

    For `observed`, unknown words have the tag that they were given as label, or -1.
    """
    known = targets.known & scores.mask
    allowed = allowed_tags(scores, replace(targets, known=targets.labels >= 0) if unknown == "observed" else targets)
    # numerator and denominator in one pass: half as many steps through time
    both = torch.cat([scores.logits, scores.logits]), torch.cat([scores.mask, scores.mask])
    skipped = None if unknown == "marginal" else torch.cat([~known, ~known])
    numerator, denominator = log_partition(
        scores, *both, torch.cat([allowed, torch.ones_like(allowed)]), skipped
    ).chunk(2)
    return torch.where(known.any(dim=1), numerator - denominator, 0.0)


def allowed_tags(scores: CRFScores, targets: Targets) -> Tensor:
    """Mask of the tags that each word may have `[batch, words, tags]`: its own if it is known, else any."""
    tags = scores.logits.shape[-1]
    known = (targets.known & scores.mask).unsqueeze(-1)
    return functional.one_hot(targets.labels.clamp(0, tags - 1), tags).bool() | ~known


def log_partition(scores: CRFScores, logits: Tensor, mask: Tensor, allowed: Tensor, skipped: Tensor | None) -> Tensor:
    """Log of the summed exponentiated scores of all sequences of allowed tags, one number per sentence.

    Emissions of `skipped` words `[batch, words]`, and transitions into them, count zero.
    """
    alpha = scores.start + logits[:, 0]
    if skipped is not None:
        alpha = alpha.masked_fill(skipped[:, 0, None], 0.0)
    alpha = alpha.masked_fill(~allowed[:, 0], IMPOSSIBLE)
    for t in range(1, logits.shape[1]):
        following = torch.logsumexp(alpha.unsqueeze(2) + scores.transitions, dim=1) + logits[:, t]
        if skipped is not None:
            free = torch.logsumexp(alpha, dim=1, keepdim=True).expand_as(following)
            following = torch.where(skipped[:, t, None], free, following)
        following = following.masked_fill(~allowed[:, t], IMPOSSIBLE)
        alpha = torch.where(mask[:, t, None], following, alpha)
    return torch.logsumexp(alpha + scores.end, dim=1)


def tag_marginals(scores: CRFScores, targets: Targets | None = None) -> Tensor:
    """Probability of each tag at each word `[batch, words, tags]`, given the known words of `targets`, if any.

    Computed as the gradient of the log partition function.
    """
    allowed = torch.ones_like(scores.logits, dtype=torch.bool) if targets is None else allowed_tags(scores, targets)
    with torch.enable_grad():
        logits = scores.logits.detach().requires_grad_()
        (marginals,) = torch.autograd.grad(log_partition(scores, logits, scores.mask, allowed, None).sum(), logits)
    return marginals


def viterbi(scores: CRFScores) -> Tensor:
    """Best tag sequence of each sentence, `[batch, words]`, O at padding."""
    logits, mask = scores.logits, scores.mask
    batch, words, tags = logits.shape
    best = scores.start + logits[:, 0]
    stay = torch.arange(tags, device=logits.device).expand(batch, tags)
    pointers = []
    for t in range(1, words):
        value, pointer = (best.unsqueeze(2) + scores.transitions).max(dim=1)
        real = mask[:, t, None]
        best = torch.where(real, value + logits[:, t], best)
        pointers.append(torch.where(real, pointer, stay))
    tag = (best + scores.end).argmax(dim=1, keepdim=True)
    path = [tag]
    for pointer in reversed(pointers):
        tag = pointer.gather(1, tag)
        path.append(tag)
    return torch.cat(path[::-1], dim=1).masked_fill(~mask, 0)


def _span_probability(scores: CRFScores, path: Tensor, spans: DecodedSpans, tags: TagSet) -> np.ndarray:
    """Exact probability of each span of the path: that these words, and neither neighbour, are one entity.

    The sum over all sequences that contain the span: the scores of everything before it (`entering`, which cannot
    continue an entity into the span), of its own words, and of everything after it (`leaving`).
    """
    logits, mask = scores.logits, scores.mask
    joined = torch.from_numpy(tags.joined()).to(logits.device)
    apart = scores.transitions.masked_fill(joined, IMPOSSIBLE)
    alpha, entering = [scores.start + logits[:, 0]], [scores.start + logits[:, 0]]
    beta, leaving = [scores.end.expand_as(alpha[0])], [scores.end.expand_as(alpha[0])]
    words = logits.shape[1]
    for t in range(1, words):
        real, before = mask[:, t, None], alpha[-1].unsqueeze(2)
        entering.append(torch.logsumexp(before + apart, dim=1) + logits[:, t])
        step = torch.logsumexp(before + scores.transitions, dim=1) + logits[:, t]
        alpha.append(torch.where(real, step, alpha[-1]))
    for t in range(words - 2, -1, -1):
        real, after = mask[:, t + 1, None], (logits[:, t + 1] + beta[-1]).unsqueeze(1)
        leaving.append(torch.where(real, torch.logsumexp(apart + after, dim=2), scores.end))
        beta.append(torch.where(real, torch.logsumexp(scores.transitions + after, dim=2), scores.end))
    total = torch.logsumexp(alpha[-1] + scores.end, dim=1)
    into, out_of = torch.stack(entering, 1), torch.stack(leaving[::-1], 1)
    chosen = logits.gather(2, path.unsqueeze(2)).squeeze(2)
    chosen[:, 1:] += scores.transitions[path[:, :-1], path[:, 1:]].masked_fill(~mask[:, 1:], 0.0)
    sums = chosen.double().cumsum(dim=1)
    columns = spans.sentence, spans.start, spans.end - 1
    sentence, first, last = (torch.from_numpy(column).to(logits.device) for column in columns)
    inner = sums[sentence, last] - sums[sentence, first]
    log = into[sentence, first, path[sentence, first]] + inner + out_of[sentence, last, path[sentence, last]]
    probability: np.ndarray = (log - total[sentence]).exp().clamp(0.0, 1.0).float().cpu().numpy()
    return probability
