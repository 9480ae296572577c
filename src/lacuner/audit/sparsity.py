"""How sparse entities are, and how likely a few random negatives are all negatives.

The paper's argument: a sentence of n words has n (n + 1) / 2 spans and seldom more than sqrt(n) entities, so
`ceil(rate * n)` spans drawn from all of them contain an unlabelled entity with a probability of at most
`4 rate sqrt(n) / (n - 1)`. That is a bound for the worst case; here are also the exact probability in that case, a
simulation of it, and the exact probability for a corpus with its own gaps and a model with a greatest width.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil, isqrt, sqrt
from typing import Any

import numpy as np
import torch

from lacuner.audit.aligned_gold import aligned, anonymous
from lacuner.corpus.words import words_of
from lacuner.data import Document, Lost
from lacuner.errors import ConfigError
from lacuner.models.targets import choose_span_width, span_targets
from lacuner.models.windows import annotation_of
from lacuner.sampling.span_negatives import negatives_per_sentence, sample_negatives


@dataclass(frozen=True)
class Sparsity:
    """Words and entities of each sentence."""

    words: np.ndarray
    entities: np.ndarray

    @property
    def dense(self) -> int:
        """Sentences that have more than sqrt(n) entities."""
        return int((self.entities > np.sqrt(self.words)).sum())

    def as_json(self) -> dict[str, Any]:
        count = len(self.words)
        return {
            "sentences": count,
            "dense": self.dense,
            "words": round(float(self.words.mean()), 4) if count else 0.0,
            "entities": round(float(self.entities.mean()), 4) if count else 0.0,
        }


def sparsity(gold: Iterable[Document]) -> Sparsity:
    """How many entities stand in how many words, sentence by sentence."""
    counts = [(len(words_of(doc)), len({span[:2] for span in doc.spans})) for doc in gold]
    table = np.array(counts, dtype=np.int64).reshape(-1, 2)
    return Sparsity(table[:, 0], table[:, 1])


def bound(words: int, rate: float) -> float:
    """At least so likely no negative is an entity: all spans, `rate * n >= 1`, at most sqrt(n) unlabelled entities."""
    if words < least_words(rate) or rate > 1:
        raise ConfigError(f"the bound holds for rates from 1/n to 1 and n from 2, not for {rate:g} and {words}")
    return 1 - 4 * rate * sqrt(words) / (words - 1)


def worst_case(words: int, rate: float) -> float:
    """The exact probability under the conditions of the bound, with as many unlabelled entities as they allow."""
    candidates, missing, drawn = _worst(words, rate)
    return float(none_drawn(*(np.array([each]) for each in (candidates, missing, drawn)))[0])


def simulated(words: int, rate: float, times: int = 1000, seed: int = 1) -> float:
    """The same by trial: how often our own sampler draws no entity."""
    candidates, missing, drawn = _worst(words, rate)
    at_once = max(1, 2_000_000 // candidates)
    clean = 0
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for first in range(0, times, at_once):
            rows = min(at_once, times - first)
            taken = sample_negatives(torch.ones(rows, candidates, dtype=torch.bool), torch.full((rows,), drawn))
            clean += int((~taken[:, :missing].any(dim=1)).sum())
    return clean / times


def _worst(words: int, rate: float) -> tuple[int, int, int]:
    spans = words * (words + 1) // 2
    return spans, isqrt(words), min(int(negatives_per_sentence(torch.tensor([words]), rate)), spans)


def least_words(rate: float) -> int:
    """The shortest sentence for which the bound is stated."""
    return max(2, ceil(1 / rate - 1e-6))


def none_drawn(candidates: np.ndarray, missing: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """The probability that none of the `missing` ones among the candidates is drawn, without replacement."""
    clean = np.ones(len(candidates))
    for i in range(int(missing.max(initial=0))):  # each of the missing ones must be among those that are left
        left = np.maximum(candidates - i, 1)
        clean *= np.where(missing > i, np.maximum(1 - drawn / left, 0), 1.0)
    return clean


@dataclass(frozen=True)
class Chances:
    """What drawing uniformly meets in each sentence of a corpus that has gaps."""

    words: np.ndarray
    candidates: np.ndarray
    missing: np.ndarray
    """Unlabelled entities among the candidates."""
    drawn: np.ndarray

    @property
    def clean(self) -> np.ndarray:
        """For each sentence the probability that no entity is drawn."""
        return none_drawn(self.candidates, self.missing, self.drawn)

    @property
    def missampling(self) -> float:
        """The share of entities that is to be expected among uniformly drawn negatives."""
        wrong = self.drawn * self.missing / np.maximum(self.candidates, 1)
        return float(wrong.sum() / max(int(self.drawn.sum()), 1))

    def as_json(self) -> dict[str, Any]:
        return {
            "candidates": int(self.candidates.sum()),
            "missing": int(self.missing.sum()),
            "drawn": int(self.drawn.sum()),
            "clean": round(float(self.clean.mean()), 6) if len(self.words) else 1.0,
            "missampling": round(self.missampling, 6),
        }


def chances(weak: Sequence[Document], gold: Sequence[Document], rate: float, widths: int | None = None) -> Chances:
    """The real conditions: spans up to a width, without what is labelled, unsure or complete, with the real gaps.

    Sentences are documents: the windows of long ones are left out of account.
    """
    pairs = aligned(weak, gold)
    given, real = (
        ([annotation_of(doc, Lost()) for doc in docs] for docs in zip(*pairs, strict=True)) if pairs else ([], [])
    )
    widths = widths or choose_span_width(given)
    labels = sorted({span[2] for annotation in (*given, *real) for span in annotation.spans})
    known = span_targets(given, labels, widths, Lost())
    open_ = span_targets([replace(each, complete=True) for each in given], labels, widths, Lost()).known & ~known.known
    entity = span_targets(anonymous(real, ""), ("",), widths, Lost()).known
    candidates, missing = (_by_sentence(each, known.offsets) for each in (open_, open_ & entity))
    words = np.diff(known.offsets)
    drawn = np.minimum(negatives_per_sentence(torch.from_numpy(words), rate).numpy(), candidates)
    return Chances(words, candidates, missing, drawn)


def _by_sentence(spans: torch.Tensor, offsets: np.ndarray) -> np.ndarray:
    """How many spans of each sentence are marked."""
    sums = np.concatenate([[0], np.cumsum(spans.sum(dim=1).numpy())])
    return np.asarray(sums[offsets[1:]] - sums[offsets[:-1]])
