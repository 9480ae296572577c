"""How sparse entities are, and how likely it is that no sampled negative is an unlabeled entity.

The argument of Li et al. (2021): a sentence of n words has n (n + 1) / 2 spans and rarely more than sqrt(n) entities,
so `ceil(rate * n)` spans sampled from all of them contain an unlabeled entity with probability at most
`4 rate sqrt(n) / (n - 1)`. That is a bound for the worst case. This module also has the exact probability in that case,
a simulation of it, and the exact probability for a corpus with its own missing labels and a maximum span width.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil, isqrt, sqrt
from typing import Any

import numpy as np
import torch

from lacuner.audit.probes import align_gold, merge_types
from lacuner.corpus.words import words_of
from lacuner.data import Document, Lost
from lacuner.errors import ConfigError
from lacuner.models.targets import choose_span_width, span_targets
from lacuner.models.windows import annotation_of
from lacuner.sampling.span_negatives import negatives_per_sentence, sample_negatives


@dataclass(frozen=True)
class Sparsity:
    """Number of words and of entities in each sentence, both `[sentences]`."""

    words: np.ndarray
    entities: np.ndarray

    @property
    def dense(self) -> int:
        """Number of sentences with more than sqrt(n) entities."""
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
    """Count words and entities per sentence; spans at the same position count once."""
    counts = [(len(words_of(doc)), len({span[:2] for span in doc.spans})) for doc in gold]
    table = np.array(counts, dtype=np.int64).reshape(-1, 2)
    return Sparsity(table[:, 0], table[:, 1])


def min_words(rate: float) -> int:
    """Return the length of the shortest sentence for which the bound holds.

    >>> min_words(0.35)
    3
    """
    return max(2, ceil(1 / rate - 1e-6))


def clean_bound(words: int, rate: float) -> float:
    """Lower bound on the probability that no negative is an entity, with at most sqrt(n) unlabeled entities.

    >>> round(clean_bound(50, 0.35), 3)
    0.798
    """
    if words < min_words(rate) or rate > 1:
        raise ConfigError(f"the bound holds for rates from 1/n to 1 and n >= 2, not for rate {rate:g} and n = {words}")
    return 1 - 4 * rate * sqrt(words) / (words - 1)


def worst_case(words: int, rate: float) -> float:
    """Exact probability that no negative is an entity, with the most unlabeled entities that the bound allows.

    >>> round(worst_case(50, 0.35), 3)
    0.905
    """
    return float(clean_probability(*(np.array([count]) for count in _worst_counts(words, rate)))[0])


def simulate_worst_case(words: int, rate: float, times: int = 1000, seed: int = 1) -> float:
    """Estimate `worst_case` with the sampler that training uses."""
    candidates, missing, count = _worst_counts(words, rate)
    batch = max(1, 2_000_000 // candidates)
    clean = 0
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for first in range(0, times, batch):
            rows = min(batch, times - first)
            sampled = sample_negatives(torch.ones(rows, candidates, dtype=torch.bool), torch.full((rows,), count))
            clean += int((~sampled[:, :missing].any(dim=1)).sum())
    return clean / times


def _worst_counts(words: int, rate: float) -> tuple[int, int, int]:
    """Return the number of spans, of unlabeled entities and of negatives in the worst case."""
    spans = words * (words + 1) // 2
    return spans, isqrt(words), min(int(negatives_per_sentence(torch.tensor([words]), rate)), spans)


def clean_probability(candidates: np.ndarray, missing: np.ndarray, sampled: np.ndarray) -> np.ndarray:
    """Probability that a sample without replacement has none of the missing entities; all arrays `[sentences]`.

    >>> clean_probability(np.array([4]), np.array([1]), np.array([2])).tolist()
    [0.5]
    """
    clean = np.ones(len(candidates))
    for i in range(int(missing.max(initial=0))):  # one entity after the other must be among the spans not sampled
        left = np.maximum(candidates - i, 1)
        clean *= np.where(missing > i, np.maximum(1 - sampled / left, 0), 1.0)
    return clean


@dataclass(frozen=True)
class SamplingOdds:
    """What uniform sampling meets in each sentence of a corpus with missing labels; all arrays `[sentences]`."""

    words: np.ndarray
    candidates: np.ndarray
    """Number of spans that may be sampled."""
    missing: np.ndarray
    """Number of unlabeled entities among the candidates."""
    sampled: np.ndarray
    """Number of spans that are sampled."""

    @property
    def clean(self) -> np.ndarray:
        """Probability that no entity is sampled, `[sentences]`."""
        return clean_probability(self.candidates, self.missing, self.sampled)

    @property
    def missampling(self) -> float:
        """Expected share of entities among a sentence's uniformly sampled negatives; mean over sentences with any."""
        sampling = self.sampled > 0
        return float((self.missing[sampling] / self.candidates[sampling]).mean()) if sampling.any() else 0.0

    def as_json(self) -> dict[str, Any]:
        return {
            "candidates": int(self.candidates.sum()),
            "missing": int(self.missing.sum()),
            "drawn": int(self.sampled.sum()),
            "clean": round(float(self.clean.mean()), 6) if len(self.words) else 1.0,
            "missampling": round(self.missampling, 6),
        }


def sampling_odds(
    weak: Sequence[Document], gold: Sequence[Document], rate: float, max_width: int | None = None
) -> SamplingOdds:
    """Count candidates and unlabeled entities as training sees them: spans up to a width that are unknown.

    Documents count as sentences; that long ones are split into windows is ignored.
    """
    pairs = align_gold(weak, gold)
    weak_spans, gold_spans = ([annotation_of(pair[side], Lost()) for pair in pairs] for side in (0, 1))
    max_width = max_width or choose_span_width(weak_spans)
    labels = sorted({label for annotation in (*weak_spans, *gold_spans) for _, _, label in annotation.spans})
    targets = span_targets(weak_spans, labels, max_width, Lost())
    as_complete = [replace(annotation, complete=True) for annotation in weak_spans]
    unknown = span_targets(as_complete, labels, max_width, Lost()).known & ~targets.known
    entity = span_targets(merge_types(gold_spans, ""), ("",), max_width, Lost()).known
    candidates, missing = (_count_by_sentence(mask, targets.offsets) for mask in (unknown, unknown & entity))
    words = np.diff(targets.offsets)
    sampled = np.minimum(negatives_per_sentence(torch.from_numpy(words), rate).numpy(), candidates)
    return SamplingOdds(words, candidates, missing, sampled)


def _count_by_sentence(mask: torch.Tensor, offsets: np.ndarray) -> np.ndarray:
    """Count the marked spans of each sentence: `[words, widths]` to `[sentences]`."""
    sums = np.concatenate([[0], np.cumsum(mask.sum(dim=1).numpy())])
    return np.asarray(sums[offsets[1:]] - sums[offsets[:-1]])
