"""How many entities have no label, judged by models that find labels again which were kept from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lacuner.types import Document, Span

FEW = 0.2
"""How many are missing is judged where at least this share of the labels that are found at all is found."""


@dataclass(frozen=True)
class Evidence:
    """How sure models were of what they found: of labels that were kept from them, and of spans without a label."""

    labels: int
    """How many labels there are, found or not."""
    labelled: np.ndarray
    others: np.ndarray

    def missing(self) -> float:
        """How many entities have no label, as it seems.

        Of these the models should find as large a share as of the labels, at each probability. What they find besides
        is wrong, and there is least of it among what they are surest of.
        """
        if not len(self.labelled):
            return 0.0
        scores = np.sort(self.labelled)[::-1]
        shares = np.arange(1, len(scores) + 1) / max(self.labels, 1)
        above = len(self.others) - np.searchsorted(np.sort(self.others), scores)
        enough = shares >= FEW * shares[-1]
        return float((above[enough] / shares[enough]).min())


def weigh(weak: Iterable[Document], found: Iterable[Document]) -> Evidence:
    """Hold what was found against the labels. What meets a label without being it says nothing."""
    labels, labelled, others = 0, [], []
    for doc, its in zip(weak, found, strict=True):
        known = {span[:3] for span in doc.spans}
        labels += len(known)
        for span in its.spans:
            if span[:3] in known:
                labelled.append(span.score or 0.0)
            elif not doc.complete and _free(doc, span):
                others.append(span.score or 0.0)
    return Evidence(labels, np.array(labelled), np.array(others))


def _free(doc: Document, span: Span) -> bool:
    """Whether nobody has said anything of this place."""
    touched = (*doc.spans, *doc.unsure, *(out for out in doc.rejected if out.label in ("", span.label)))
    return not any(span.start < other.end and other.start < span.end for other in touched)


def scaled(probs: Tensor, missing: float) -> Tensor:
    """Probabilities of O and the types, `[spans, classes]`, such that about so many of the spans are entities.

    All odds of being one are multiplied by the same number. That is what is right for models that saw few negatives, or
    gaps as negatives: both multiply the odds.
    """
    odds = (1 - probs[:, 0]) / probs[:, 0].clamp(min=1e-6)
    low, high = 1e-9, 1e9
    for _ in range(64):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if float((middle * odds).clamp(max=1).sum()) > missing else (middle, high)
    entity = (low * odds).clamp(max=1).unsqueeze(-1)
    types = probs[:, 1:] / (1 - probs[:, :1]).clamp(min=1e-9)
    return torch.cat([1 - entity, entity * types], dim=-1)
