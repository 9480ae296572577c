"""How probable it is that a sentence is labelled rightly: a model's own score, calibrated on gold it has not seen."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lacuner.files import atomic_write
from lacuner.models.crf import CRFHead, best_path, log_likelihood
from lacuner.models.files import AnyTagger
from lacuner.models.model import Model
from lacuner.models.sentences import cut_sentences
from lacuner.models.tagger import BUDGET, Tagger, assemble, budget_batches
from lacuner.recipes.gold_pictures import reliability_picture
from lacuner.types import Document, Features, Targets

MOST_BINS = 50
LEAST = 10
"""Sentences that a bin has at least, where there are so many."""
MOST_CONFIDENCE = 0.95


def scored(tagger: AnyTagger, docs: Sequence[Document]) -> tuple[list[Document], np.ndarray]:
    """What a tagger finds in documents, and how sure it is of each one as a whole.

    A CRF knows how probable its best sequence is; of any other model the least certain span must do.
    """
    if not isinstance(tagger, Tagger) or not isinstance(tagger.model.head, CRFHead):
        found = list(tagger.predict(docs))
        least = [min((1.0 if s.score is None else s.score for s in doc.spans), default=1.0) for doc in found]
        return found, np.array(least, dtype=np.float64)
    sentences = cut_sentences(docs, tagger.model.encoder)
    features = tagger.model.encoder.prepare(sentences.words)
    found = list(assemble(docs, sentences, tagger.find(features), tagger.labels))
    logs = np.zeros(len(docs))
    np.add.at(logs, sentences.document, _best_logs(tagger.model, features))
    return found, np.exp(np.minimum(logs, 0.0))


def _best_logs(model: Model, features: Features) -> np.ndarray:
    """The log probability of the best tag sequence of each sentence."""
    logs = np.zeros(len(features))
    device = next(model.parameters()).device
    model.eval()
    with torch.inference_mode():
        for indices in budget_batches(features.costs, np.argsort(features.costs, kind="stable"), BUDGET):
            scores = model(model.encoder.collate(features, indices).to(device))
            path = best_path(scores)
            best = Targets(path, scores.mask, torch.ones(path.shape, device=device))
            logs[indices] = log_likelihood(scores, best).double().cpu().numpy()
    return logs


@dataclass(frozen=True)
class Calibration:
    """Histogram binning: from scores to the share of held-out sentences with such scores that were wholly right."""

    edges: np.ndarray
    """Between bins: one less than there are bins."""
    right: np.ndarray
    """The share of each bin's sentences that were right."""
    sizes: np.ndarray
    means: np.ndarray
    """Each bin's mean score."""

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        if not len(self.right):
            return scores  # nobody knows better
        found: np.ndarray = self.right[np.searchsorted(self.edges, scores, side="right")]
        return found

    def as_json(self) -> dict[str, Any]:
        rows = zip(self.means.tolist(), self.right.tolist(), self.sizes.tolist(), strict=True)
        bins = [{"score": round(mean, 6), "right": round(share, 6), "sentences": size} for mean, share, size in rows]
        return {"sentences": int(self.sizes.sum()), "bins": bins, "edges": [round(e, 9) for e in self.edges.tolist()]}


def calibrate(scores: np.ndarray, right: np.ndarray, most: int = MOST_BINS) -> Calibration:
    """Bins of about as many sentences each; fewer where there are few sentences, or where scores are the same."""
    nothing = np.zeros(0)
    if not len(scores):
        return Calibration(nothing, nothing, nothing.astype(np.int64), nothing)
    count = max(min(most, len(scores) // LEAST), 1)
    ranked = np.sort(scores)
    edges = np.unique(ranked[[len(ranked) * i // count for i in range(1, count)]])
    edges = edges[edges > ranked[0]]  # else the lowest bin would be empty
    place = np.searchsorted(edges, scores, side="right")
    sizes = np.bincount(place, minlength=len(edges) + 1)
    shares, means = (np.bincount(place, each, minlength=len(edges) + 1) / sizes for each in (right, scores))
    return Calibration(edges, shares, sizes, means)


def confidence(trusted: np.ndarray, accuracy: np.ndarray) -> np.ndarray:
    """`min(0.95, m + (1 - m) p)`: weak labels are trusted, the rest is as good as the prediction."""
    found: np.ndarray = np.minimum(MOST_CONFIDENCE, trusted + (1 - trusted) * accuracy)
    return found


def judgeable(docs: Sequence[Document]) -> list[Document]:
    """Those that can tell whether a sentence is wholly right."""
    return [doc for doc in docs if doc.complete and not doc.unsure]


def rightness(gold: Sequence[Document], predicted: Sequence[Document]) -> np.ndarray:
    """Of which documents every span is right and there."""
    both = zip(gold, predicted, strict=True)
    return np.array([{s[:3] for s in a.spans} == {s[:3] for s in b.spans} for a, b in both], dtype=bool)


def parts_of(docs: Sequence[Document], parts: int) -> np.ndarray:
    """The part of each document, all of about the same size; copies of a text stay together."""
    texts = {doc.text for doc in docs}
    ranked = sorted(texts, key=lambda text: hashlib.blake2b(text.encode("utf-8", "surrogatepass")).digest())
    part = {text: rank % parts for rank, text in enumerate(ranked)}
    return np.array([part[doc.text] for doc in docs], dtype=np.int64)


Learn = Callable[[np.ndarray, str], AnyTagger | None]
"""A tagger that has learned from the documents of a mask, under a name; None if these say nothing."""


def held_out(gold: Sequence[Document], parts: int, learn: Learn, all_parts: bool) -> tuple[np.ndarray, np.ndarray]:
    """Scores of gold sentences by models that have not seen them, and whether they were right.

    Each part is judged by the model of all others; where there is enough gold, one part is enough.
    """
    part = parts_of(gold, parts)
    scores, right = [np.zeros(0)], [np.zeros(0, dtype=bool)]
    for number in range(parts if all_parts else 1):
        asked = judgeable([doc for doc, its in zip(gold, part.tolist(), strict=True) if its == number])
        tagger = learn(part != number, f"calibrate/{number + 1}") if asked else None
        if tagger is not None:
            found, sure = scored(tagger, asked)
            scores.append(sure)
            right.append(rightness(asked, found))
    return np.concatenate(scores), np.concatenate(right)


def write_confidence(folder: Path, calibration: Calibration, found: np.ndarray, round_: int = 1) -> None:
    """Write the bins, how confident the completed sentences are, and the picture of both."""
    end = "" if round_ == 1 else f"-{round_}"
    quantiles = np.quantile(found, (0, 0.25, 0.5, 0.75, 1)).round(6).tolist() if len(found) else []
    about = {"calibration": calibration.as_json(), "confidence": {"sentences": len(found), "quartiles": quantiles}}
    with atomic_write(folder / f"confidence{end}.json") as stream:
        stream.write((json.dumps(about, indent=1) + "\n").encode())
    picture = reliability_picture(calibration.means, calibration.right, calibration.sizes, found)
    with atomic_write(folder / f"reliability{end}.svg") as stream:
        stream.write(picture.encode())
